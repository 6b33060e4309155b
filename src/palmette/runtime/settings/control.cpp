#include "palmette/runtime/settings/control.hpp"

#include "palmette/base/error.hpp"
#include "palmette/base/hash.hpp"
#include "palmette/collectives/neighbours/neighbour_program.hpp"
#include "palmette/collectives/registry.hpp"

namespace palmette::runtime {

Settings::ForcedChoice forced_by(select::Function function, std::string_view text, std::string source) {
    if (text == "mpi") return {std::nullopt, std::move(source)};
    select::Spec spec = select::Spec::parse(text);
    if (select::is_neighbourhood(function)) {
        (void)collectives::combined_up_to(spec);
        return {std::move(spec), std::move(source)};
    }
    const plan::Collective collective = select::collective_of(function);
    // Whether it supports the job is checked when a plan is made; keys and values now.
    (void)collectives::algorithm_named(collective, spec.name)
        .refuse(topology::Job::flat(2), {collective, plan::Rank{0}, 1}, spec);
    return {std::move(spec), std::move(source)};
}

void hash_field(std::uint64_t& hash, std::string_view text) {
    base::hash_append(hash, text);
    base::hash_append(hash, "\xFF");
}

void Control::force(const Settings& usual, select::Function function, std::string_view text) {
    const auto index = static_cast<std::size_t>(function);
    if (!text.empty()) (void)forced_by(function, text, source);
    const std::lock_guard lock(mutex_);
    texts_[index] = text;
    std::shared_ptr<Settings> made;
    for (std::size_t f = 0; f < texts_.size(); ++f) {
        if (texts_[f].empty()) continue;
        if (!made) made = std::make_shared<Settings>(usual);
        const auto which = static_cast<select::Function>(f);
        made->forced[f] = forced_by(which, texts_[f], source);
        // Ranks that force differently must not come to different plans: a communicator is served only where all hashes
        // are equal.
        hash_field(made->hash, base::cat(select::name_of(which), "=", texts_[f]));
    }
    settings_ = std::move(made);
}

std::shared_ptr<const Settings> Control::settings() const {
    const std::lock_guard lock(mutex_);
    return settings_;
}

}  // namespace palmette::runtime
