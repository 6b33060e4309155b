#include "palmette/runtime/observe/report_gain.hpp"

#include <algorithm>
#include <cmath>

#include "palmette/base/text.hpp"
#include "palmette/base/units.hpp"

namespace palmette::runtime {
namespace {

using base::Json;

/// Less of the served time than this is no difference to speak of.
constexpr double worth_telling = 0.01;

std::string count_text(std::int64_t count, const char* one) {
    return base::cat(count, " ", one, count == 1 ? "" : "s");
}

}  // namespace

std::string Gain::sentence(double seconds) const {
    const double share = seconds > 0 ? 100 * served_s / seconds : 0;
    std::string text = base::cat("served collectives took ", base::format_duration(served_s), " of a rank's time (",
                                 base::number_text(share, share < 1 ? 1 : 2), " %)");
    if (settled == 0) {
        if (pairs > 0)
            text += base::cat("; whether the MPI alone is slower isn't known yet (", count_text(pairs, "pair"),
                              " of calls compared)");
        else
            text += "; not compared with the MPI alone";
        return text + "; run longer, or: palmette run --compare mpiexec ...";
    }
    if (std::abs(saved_s) < worth_telling * served_s)
        text += "; about as long as with the MPI alone";
    else
        text += base::cat("; about ", base::format_duration(std::abs(saved_s)), saved_s > 0 ? " less" : " more",
                          " than with the MPI alone");
    text += base::cat(" (", count_text(pairs, "pair"), " of calls compared");
    if (open > 0) text += base::cat("; ", open, " of ", count_text(kinds, "kind"), " still open");
    if (const std::int64_t others = kinds - settled - open; others > 0)
        text += base::cat("; ", count_text(others, "kind"), " not compared");
    return text + ")";
}

Json Gain::to_json(double seconds) const {
    Json out = Json::object();
    out.set("sentence", sentence(seconds)).set("served_seconds", served_s);
    if (settled > 0) out.set("saved_seconds", saved_s);
    out.set("pairs", pairs).set("kinds", kinds).set("settled_kinds", settled).set("open_kinds", open);
    return out;
}

void Gain::add(const Kind& kind, int ranks) {
    served_s += kind.rank_seconds / ranks;
    ++kinds;
    pairs += kind.pairs;
    if (kind.pairs == 0) return;
    if (kind.open) {
        ++open;
        return;
    }
    ++settled;
    const auto calls = static_cast<double>(kind.rank_calls);
    // A communicator's comparing costs its own ranks only.
    const double members = calls / static_cast<double>(std::max<std::int64_t>(kind.operations, 1));
    saved_s += (calls * kind.saved_s_a_call - members * kind.cost_s) / ranks;
}

}  // namespace palmette::runtime
