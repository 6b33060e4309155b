#include "nccl_shared.hpp"

#include <algorithm>
#include <cstring>

namespace fake_nccl {

std::string Transfer::move(Shared& shared, int rank) {
    Channel& channel = sends ? shared.channels[rank][peer] : shared.channels[peer][rank];
    if (!started && sends) {
        channel.size = size;
        channel.function = function;
        channel.written.store(0);
        channel.read.store(0);
        channel.sent.fetch_add(1);
        started = true;
    }
    if (!started) {
        if (channel.sent.load() == channel.received.load()) return "";
        if (channel.size != size || channel.function != function) {
            return "rank " + std::to_string(rank) + " awaits " + std::to_string(size) + " bytes of rank " +
                   std::to_string(peer) + ", which sent " + std::to_string(channel.size) +
                   (channel.function != function ? " in another function" : "");
        }
        started = true;
    }
    while (moved < size) {
        const std::uint64_t written = channel.written.load(), read = channel.read.load();
        const std::uint64_t at = sends ? written : read;
        const std::size_t room = sends ? ring - (written - read) : written - read;
        const std::size_t part = std::min({room, ring - at % ring, size - moved});
        if (part == 0) return "";
        char* const place = channel.data + at % ring;
        std::memcpy(sends ? place : data + moved, sends ? data + moved : place, part);
        (sends ? channel.written : channel.read).fetch_add(part);
        moved += part;
    }
    if (!sends) channel.received.fetch_add(1);
    done = !sends || channel.received.load() == channel.sent.load();
    return "";
}

}  // namespace fake_nccl
