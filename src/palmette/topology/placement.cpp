#include "palmette/topology/placement.hpp"

#include <charconv>
#include <iterator>
#include <string>
#include <utility>

#include "palmette/base/error.hpp"
#include "palmette/base/files.hpp"
#include "palmette/base/text.hpp"
#include "palmette/topology/limits.hpp"

namespace palmette::topology {
namespace {

using base::fail;

/// The first `places` seats, host by host.
Placement block(const Machine& machine, std::int64_t places) {
    Placement seats;
    for (std::int32_t h = 0; h < static_cast<std::int32_t>(machine.hosts().size()); ++h)
        for (std::int32_t s = 0; s < machine.slots_of(h) && std::ssize(seats) < places; ++s) seats.push_back({h, s});
    return seats;
}

/// The first `places` seats, one of each host in turn.
Placement cyclic(const Machine& machine, std::int64_t places) {
    Placement seats;
    for (std::int32_t s = 0; std::ssize(seats) < places; ++s)
        for (std::int32_t h = 0; h < static_cast<std::int32_t>(machine.hosts().size()); ++h)
            if (s < machine.slots_of(h) && std::ssize(seats) < places) seats.push_back({h, s});
    return seats;
}

/// Steele, Lea, Flood: "Fast splittable pseudorandom number generators", OOPSLA 2014.
std::uint64_t splitmix64(std::uint64_t& state) {
    state += 0x9E3779B97F4A7C15U;
    std::uint64_t z = state;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
    return z ^ (z >> 31);
}

Placement shuffled(const Machine& machine, std::string_view seed_text) {
    std::uint64_t state = 0;
    const auto [end, error] = std::from_chars(seed_text.data(), seed_text.data() + seed_text.size(), state);
    if (error != std::errc() || end != seed_text.data() + seed_text.size())
        fail("placement 'random:", seed_text, "': the seed must be a whole number, like random:1");
    Placement seats = block(machine, machine.total_slots());
    for (std::size_t i = seats.size(); i-- > 1;) std::swap(seats[i], seats[splitmix64(state) % (i + 1)]);
    return seats;
}

std::vector<std::string> hosts_in_file(std::string_view path) {
    std::string contents;
    try {
        contents = base::read_file(std::string(path));
    } catch (const base::Error& error) {
        fail("placement '", path, "' is neither block, cyclic, random:SEED nor hosts=A,B,..., and as a file ",
             error.what());
    }
    std::vector<std::string> hosts;
    int number = 0;
    for (const std::string_view line : base::split(contents, '\n')) {
        ++number;
        std::string_view text = base::trim(line.substr(0, line.find('#')));
        if (text.empty()) continue;
        int count = 1;
        if (const std::size_t colon = text.find(':'); colon != std::string_view::npos) {
            const std::string_view digits = base::trim(text.substr(colon + 1));
            const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), count);
            if (error != std::errc() || end != digits.data() + digits.size() || count < 1)
                fail(path, ", line ", number, ": '", digits, "' is not a count of ranks");
            text = base::trim(text.substr(0, colon));
        }
        if (std::ssize(hosts) + count > most_places)
            fail(path, ", line ", number, ": more than ", most_places, " ranks in all; correct the count");
        hosts.insert(hosts.end(), static_cast<std::size_t>(count), std::string(text));
    }
    if (hosts.empty()) fail(path, ": names no host");
    return hosts;
}

}  // namespace

Placement placement_on_hosts(const Machine& machine, const std::vector<std::string>& hosts) {
    Placement seats;
    std::vector<std::int32_t> used(machine.hosts().size(), 0);
    for (std::size_t rank = 0; rank < hosts.size(); ++rank) {
        const std::int32_t host = machine.find_host(hosts[rank]);
        if (host < 0)
            fail("rank ", rank, " sits on host '", hosts[rank],
                 "', which the topology doesn't have; discover the fabric anew or correct the name");
        seats.push_back({host, used[static_cast<std::size_t>(host)]++ % machine.slots_of(host)});
    }
    return seats;
}

Placement make_placement(const Machine& machine, std::string_view form, std::int32_t ranks) {
    if (ranks < 0) fail("a job can't have ", ranks, " ranks");
    const bool listed = !(form == "block" || form == "cyclic" || form.starts_with("random:"));
    const std::int64_t total = machine.total_slots();
    if (!listed && ranks > total)
        fail(ranks, " ranks don't fit: placement '", form, "' has ", total, " slots on this machine");
    // A shuffle draws all slots, however few the job takes.
    const std::int64_t places = ranks > 0 && !form.starts_with("random:") ? ranks : total;
    if (!listed && places > most_places)
        fail("placement '", form, "' has ", places, " slots on this machine, and jobs of at most ", most_places,
             " ranks are planned; name fewer --ranks or a smaller machine");
    Placement seats;
    if (form == "block") {
        seats = block(machine, places);
    } else if (form == "cyclic") {
        seats = cyclic(machine, places);
    } else if (form.starts_with("random:")) {
        seats = shuffled(machine, form.substr(7));
    } else if (form.starts_with("hosts=")) {
        std::vector<std::string> hosts;
        for (const std::string_view name : base::split(form.substr(6), ',')) hosts.emplace_back(base::trim(name));
        seats = placement_on_hosts(machine, hosts);
    } else {
        seats = placement_on_hosts(machine, hosts_in_file(form));
    }
    if (static_cast<std::size_t>(ranks) > seats.size())
        fail(ranks, " ranks don't fit: placement '", form, "' has ", seats.size(), " slots on this machine");
    if (ranks > 0) seats.resize(static_cast<std::size_t>(ranks));
    return seats;
}

}  // namespace palmette::topology
