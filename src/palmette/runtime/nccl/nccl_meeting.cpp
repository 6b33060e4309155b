#include "palmette/runtime/nccl/nccl_meeting.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string_view>
#include <vector>

#include "palmette/base/hash.hpp"
#include "palmette/base/text.hpp"
#include "palmette/runtime/settings/control.hpp"
#include "palmette/runtime/transport/consensus.hpp"
#include "palmette/runtime/transport/outstanding.hpp"

namespace palmette::runtime {
namespace {

using device::Progress;

constexpr int meeting_tag = 12, consensus_tag = 13;

/// Hash of the machine, also inside of containers, where host names may coincide or differ.
std::uint64_t machine_hash() {
    std::string text;
    if (std::ifstream file("/proc/sys/kernel/random/boot_id"); !std::getline(file, text)) {
        std::array<char, 256> name{};
        gethostname(name.data(), name.size() - 1);
        text = name.data();
    }
    std::uint64_t hash = base::fnv1a_start;
    hash_field(hash, text);
    return hash;
}

/// What all ranks know of each other before they make a communicator of NCCL's.
struct Member {
    device::NcclId id{};  ///< rank 0's counts
    std::uint64_t device = 0;
    std::int32_t version = 0;
    std::int32_t has_id = 1;
    std::int32_t shares = 0;  ///< NCCL lets ranks share a device

    bool operator<(const Member& other) const { return device < other.device; }
};

/// All ranks' members by rank; in a logarithmic number of messages. Empty on an MPI error.
std::vector<Member> all_members(MPI_Comm comm, int rank, int size, const Member& mine) {
    std::vector<Member> from_mine(static_cast<std::size_t>(size));
    from_mine[0] = mine;
    for (int have = 1; have < size; have *= 2) {
        const int more = std::min(have, size - have);
        const int bytes = more * static_cast<int>(sizeof(Member));
        if (PMPI_Sendrecv(from_mine.data(), bytes, MPI_BYTE, (rank - have + size) % size, meeting_tag,
                          from_mine.data() + have, bytes, MPI_BYTE, (rank + have) % size, meeting_tag, comm,
                          MPI_STATUS_IGNORE) != MPI_SUCCESS)
            return {};
    }
    std::rotate(from_mine.begin(), from_mine.begin() + (size - rank) % size, from_mine.end());
    return from_mine;
}

/// Why ranks on these devices can't use NCCL together; empty: they can. The same on all ranks.
std::string obstacle(std::vector<Member> all) {
    if (all.empty()) return "an error of the MPI";
    if (!all[0].has_id) return "ncclGetUniqueId failed at rank 0";
    bool shares = true;
    for (const Member& member : all) {
        if (member.version != all[0].version) return "versions of NCCL differ between ranks";
        shares = shares && member.shares != 0;
    }
    std::sort(all.begin(), all.end());
    const auto same = std::adjacent_find(all.begin(), all.end(),
                                         [](const Member& a, const Member& b) { return a.device == b.device; });
    return same != all.end() && !shares ? "two ranks use one GPU" : "";
}

}  // namespace

bool all_succeed(const Meeting& ranks, const std::function<Progress()>& poll) {
    auto consensus = std::make_unique<Consensus>(ranks.comm, ranks.rank, ranks.size, consensus_tag);
    consensus->begin();
    Progress mine = Progress::under_way;
    wait_until([&] {
        if (mine == Progress::under_way) mine = poll();
        const bool over = consensus->step(mine);
        if (mine == Progress::under_way && consensus->some_failed()) mine = Progress::failed;
        return over;
    });
    // The MPI may write to it yet.
    if (consensus->broken()) static_cast<void>(consensus.release());
    return consensus && consensus->all_succeeded();
}

std::unique_ptr<device::Nccl> make_nccl(const Meeting& ranks, const device::Place& place, std::chrono::seconds limit,
                                        device::Nccl::Order order, std::string& why) {
    Member mine;
    if (ranks.rank == 0 && device::make_nccl_id(mine.id)) mine.has_id = 0;
    const std::array<char, 16> bus = place.driver->bus_id(place.device);
    mine.device = machine_hash();
    hash_field(mine.device, std::string_view(bus.data(), bus.size()));
    mine.version = device::nccl_version();
    const char* several = std::getenv("NCCL_MULTI_RANK_GPU_ENABLE");
    mine.shares = mine.version >= device::nccl_shares_devices_from && several && std::string_view(several) == "1";
    const std::vector<Member> all = all_members(ranks.comm, ranks.rank, ranks.size, mine);
    why = obstacle(all);
    if (!why.empty()) return nullptr;
    auto nccl = std::make_unique<device::Nccl>(place, ranks.size, ranks.rank, all[0].id, 2 * limit, order);
    if (all_succeed(ranks, [&] { return nccl->join(); })) return nccl;
    why = nccl->why();
    return nullptr;
}

}  // namespace palmette::runtime
