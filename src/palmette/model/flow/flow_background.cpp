#include "palmette/model/flow/flow_background.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>

#include "palmette/base/error.hpp"
#include "palmette/base/units.hpp"

namespace palmette::model {
namespace {

/// Vigna's splitmix64: the same sequence on every machine.
std::uint64_t random_number(std::uint64_t& state) {
    std::uint64_t z = (state += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

std::optional<double> share_in(std::string_view text) {
    if (text == "half") return 0.5;
    if (text == "all") return 1;
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || text.find('.') == std::string_view::npos)
        return std::nullopt;
    return value;
}

}  // namespace

FlowTraffic parse_traffic(std::string_view text) {
    FlowTraffic out;
    if (text.empty() || text == "none") return out;
    const auto bad = [&](auto... why) {
        base::fail(
            "traffic '", text, "': ", why...,
            "; expected alltoall[:half|SHARE][:SIZE][@RATE], such as alltoall:half:64K or alltoall:0.25:1M@1GB/s");
    };
    std::string_view rest = text;
    if (const std::size_t at = rest.find('@'); at != std::string_view::npos) {
        out.bytes_per_s = base::parse_rate(rest.substr(at + 1));
        if (out.bytes_per_s <= 0) bad("a rate must be above 0");
        rest = rest.substr(0, at);
    }
    out.share = 0.5;
    for (bool first = true, sized = false; !rest.empty() || first; first = false) {
        const std::size_t colon = rest.find(':');
        const std::string_view word = rest.substr(0, colon);
        rest = colon == std::string_view::npos ? std::string_view() : rest.substr(colon + 1);
        if (first) {
            if (word != "alltoall") bad("'", word, "' is no pattern");
        } else if (const std::optional<double> share = share_in(word)) {
            if (!(*share > 0 && *share <= 1)) bad("a share lies above 0 and is at most 1");
            out.share = *share;
        } else {
            if (sized) bad("'", word, "' is a second size");
            sized = true;
            out.bytes = base::parse_size(word);
            if (out.bytes < 1) bad("a message must have at least a byte");
        }
    }
    return out;
}

FlowBackground::FlowBackground(const topology::Job& job, const FlowTraffic& traffic, FlowRoutes& routes)
    : traffic_(traffic), routes_(routes) {
    if (traffic.share <= 0) return;
    std::uint64_t state = traffic.seed;
    const topology::Partition& groups = job.levels().front().groups;
    for (std::int32_t g = 0; g < groups.count(); ++g) {
        std::vector<std::int32_t> own(static_cast<std::size_t>(groups.size_of(g)));
        std::iota(own.begin(), own.end(), groups.first(g));
        const double wanted = std::round(traffic.share * static_cast<double>(own.size()));
        const auto chosen = std::min(own.size(), std::max<std::size_t>(1, static_cast<std::size_t>(wanted)));
        for (std::size_t i = 0; i < chosen; ++i) std::swap(own[i], own[i + random_number(state) % (own.size() - i)]);
        positions_.insert(positions_.end(), own.begin(), own.begin() + static_cast<std::ptrdiff_t>(chosen));
    }
    for (std::size_t i = 0; i < positions_.size(); ++i) sources_.push_back({random_number(state) % positions_.size()});
}

std::optional<BundleId> FlowBackground::next(std::size_t source) {
    const std::size_t others = positions_.size() - 1;
    const double cap = traffic_.bytes_per_s > 0 ? traffic_.bytes_per_s : FairSharing::unlimited;
    for (std::size_t tries = 0; tries < others; ++tries) {
        const std::size_t distance = sources_[source].turn++ % others + 1;
        const std::size_t peer = (source + distance) % positions_.size();
        const Route route = routes_.background(positions_[source], positions_[peer], cap);
        if (route.shares) return route.bundle;
    }
    return std::nullopt;
}

}  // namespace palmette::model
