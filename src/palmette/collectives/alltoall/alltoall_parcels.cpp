#include "palmette/collectives/alltoall/alltoall_parcels.hpp"

#include <algorithm>

namespace palmette::collectives {

using plan::Interval;

std::int32_t Parcels::leaders_of(std::int32_t group) const { return std::min(leaders_, groups_.size_of(group)); }

Interval Parcels::part(std::int32_t group, std::int32_t leader) const {
    const std::int64_t size = groups_.size_of(group);
    const std::int64_t parts = leaders_of(group);
    const std::int64_t begin = size * leader / parts;
    return {groups_.first(group) + begin, size * (leader + 1) / parts - begin};
}

std::int32_t Parcels::leader_at(std::int32_t group, std::int32_t leader) const {
    return static_cast<std::int32_t>(part(group, leader).first);
}

std::optional<std::int32_t> Parcels::leads(std::int32_t group, std::int32_t position) const {
    // The part that contains index i of a group of `size` in `parts` parts.
    const std::int64_t index = position - groups_.first(group);
    const std::int64_t parts = leaders_of(group);
    const auto holder = static_cast<std::int32_t>(((index + 1) * parts - 1) / groups_.size_of(group));
    if (leader_at(group, holder) == position) return holder;
    return std::nullopt;
}

std::int32_t Parcels::lane(std::int32_t source_group, std::int32_t target_group) const {
    return (target_group - source_group + groups_.count()) % groups_.count() - 1;
}

std::int32_t Parcels::turned(std::int32_t lane, std::int32_t senders, std::int32_t receivers) {
    return static_cast<std::int32_t>(std::int64_t{lane} * senders % receivers);
}

std::vector<Parcel> Parcels::from(std::int32_t position) const {
    std::vector<Parcel> out;
    const std::int32_t own = groups_.group_of(position);
    const auto led = leads(own, position);
    if (!led) return out;
    for (std::int32_t other = 0; other < groups_.count(); ++other) {
        if (other == own) continue;
        const std::int32_t number = lane(own, other);
        if (split_ == Split::sources) {
            const std::int32_t receiver =
                (*led + turned(number, leaders_of(own), leaders_of(other))) % leaders_of(other);
            out.push_back({position, leader_at(other, receiver), part(own, *led), other, *led, leaders_of(own)});
            continue;
        }
        if (number % leaders_of(own) == *led)
            out.push_back({position, leader_at(other, number % leaders_of(other)), members(own), other});
    }
    return out;
}

std::vector<Parcel> Parcels::to(std::int32_t position) const {
    std::vector<Parcel> out;
    const std::int32_t own = groups_.group_of(position);
    const auto led = leads(own, position);
    if (!led) return out;
    for (std::int32_t other = 0; other < groups_.count(); ++other) {
        if (other == own) continue;
        const std::int32_t number = lane(other, own);
        if (split_ == Split::sources) {
            const std::int32_t receivers = leaders_of(own);
            const std::int32_t first = (*led + receivers - turned(number, leaders_of(other), receivers)) % receivers;
            for (std::int32_t l = first; l < leaders_of(other); l += receivers)
                out.push_back({leader_at(other, l), position, part(other, l), own, l, leaders_of(other)});
            continue;
        }
        if (number % leaders_of(own) == *led)
            out.push_back({leader_at(other, number % leaders_of(other)), position, members(other), own});
    }
    return out;
}

std::int64_t Parcels::most_sources() const {
    std::int64_t largest = groups_.even_size();
    std::int64_t fewest_leaders = std::min<std::int64_t>(leaders_, groups_.size_of(groups_.count() - 1));
    if (largest == 0)
        for (std::int32_t g = 0; g < groups_.count(); ++g) {
            largest = std::max<std::int64_t>(largest, groups_.size_of(g));
            fewest_leaders = std::min<std::int64_t>(fewest_leaders, leaders_of(g));
        }
    const std::int64_t others = groups_.count() - 1;
    if (split_ == Split::destinations) return (others + fewest_leaders - 1) / fewest_leaders * largest;
    const std::int64_t most_leaders = std::min<std::int64_t>(leaders_, largest);
    const std::int64_t largest_part = (largest + most_leaders - 1) / most_leaders;
    return others * ((most_leaders + fewest_leaders - 1) / fewest_leaders) * largest_part;
}

}  // namespace palmette::collectives
