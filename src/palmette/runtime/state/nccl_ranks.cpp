#include "palmette/runtime/state/nccl_ranks.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <mutex>
#include <string_view>
#include <vector>

#include "palmette/base/hash.hpp"
#include "palmette/base/text.hpp"
#include "palmette/runtime/state/control.hpp"
#include "palmette/runtime/transport/agreement.hpp"
#include "palmette/runtime/transport/outstanding.hpp"

namespace palmette::runtime {
namespace {

using device::Progress;

constexpr int meeting_tag = 12, up_tag = 13, down_tag = 14;

/// Never two operations of NCCL's at once in a process: on one device they could wait for each other. A thread that
/// doesn't get it has its rank say no.
constinit std::mutex one_operation;

/// Of the machine, for containers as well: names may be the same or differ there.
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

/// Along the tree of `agree`: each rank tells its parent once, and is told once.
class Verdict {
  public:
    Verdict(MPI_Comm comm, int rank, int size) : comm_(comm), is_root_(rank == 0) {
        int distance = 1;
        for (; distance < size && rank % (2 * distance) == 0; distance *= 2)
            if (rank + distance < size) children_.push_back(rank + distance);
        parent_ = rank - distance;
        from_children_.resize(children_.size());
        requests_.assign(2 * children_.size() + 2, MPI_REQUEST_NULL);
        for (std::size_t c = 0; c < children_.size(); ++c)
            check(PMPI_Irecv(&from_children_[c], 1, MPI_INT, children_[c], up_tag, comm_, &requests_[c]));
        if (!is_root_) check(PMPI_Irecv(&told_, 1, MPI_INT, parent_, down_tag, comm_, &request_from_parent()));
    }

    bool some_failed() const { return some_failed_; }
    bool broken() const { return broken_; }

    /// Goes on; `mine`: this rank's progress. Whether this rank needn't come again.
    bool step(Progress mine) {
        int done = 1;
        std::size_t left = 0;
        for (std::size_t c = 0; c < children_.size(); ++c) {
            check(PMPI_Test(&requests_[c], &done, MPI_STATUS_IGNORE));
            if (!done)
                ++left;
            else if (!from_children_[c])
                some_failed_ = true;
        }
        done = is_root_ ? 0 : 1;
        if (!is_root_) check(PMPI_Test(&request_from_parent(), &done, MPI_STATUS_IGNORE));
        if (broken_) return true;
        if (done) decided_ = true;
        if (decided_ && !told_) some_failed_ = true;
        if (mine == Progress::failed) some_failed_ = true;
        const bool known = some_failed_ || (mine == Progress::done && left == 0);
        if (known && is_root_) {
            if (!decided_) told_ = some_failed_ ? 0 : 1;
            decided_ = true;
        }
        if (known && !is_root_ && !told_up_) {
            told_up_ = true;
            mine_ = some_failed_ ? 0 : 1;
            check(PMPI_Isend(&mine_, 1, MPI_INT, parent_, up_tag, comm_, &request_to_parent()));
        }
        if (decided_ && !told_down_) {
            told_down_ = true;
            for (std::size_t c = 0; c < children_.size(); ++c)
                check(PMPI_Isend(&told_, 1, MPI_INT, children_[c], down_tag, comm_, &requests_[children_.size() + c]));
        }
        if (!decided_ || left > 0 || mine == Progress::under_way || (!is_root_ && !told_up_)) return broken_;
        check(PMPI_Testall(static_cast<int>(requests_.size()), requests_.data(), &done, MPI_STATUSES_IGNORE));
        return done != 0 || broken_;
    }
    bool all_succeeded() const { return decided_ && told_ && !broken_; }

  private:
    MPI_Request& request_from_parent() { return requests_[requests_.size() - 2]; }
    MPI_Request& request_to_parent() { return requests_[requests_.size() - 1]; }
    void check(int code) { broken_ = broken_ || code != MPI_SUCCESS; }

    MPI_Comm comm_;
    bool is_root_;
    int parent_ = 0;
    std::vector<int> children_, from_children_;
    std::vector<MPI_Request> requests_;  ///< from children, to children, from and to the parent
    int told_ = 0, mine_ = 0;
    bool decided_ = false, told_up_ = false, told_down_ = false, some_failed_ = false, broken_ = false;
};

}  // namespace

bool NcclRanks::all_succeed(const std::function<Progress()>& poll) {
    auto verdict = std::make_unique<Verdict>(comm_, rank_, size_);
    Progress mine = Progress::under_way;
    wait_until([&] {
        if (mine == Progress::under_way) mine = poll();
        const bool over = verdict->step(mine);
        if (mine == Progress::under_way && verdict->some_failed()) mine = Progress::failed;
        return over;
    });
    // The MPI may write to it yet.
    if (verdict->broken()) static_cast<void>(verdict.release());
    return verdict && verdict->all_succeeded();
}

void NcclRanks::give_up(const std::string& why) {
    in_service_ = false;
    why_ = why;
    if (nccl_) nccl_->abort();
    nccl_.reset();
}

bool NcclRanks::meets(const Part& part, device::NcclId& id) {
    Member mine;
    if (rank_ == 0 && device::make_nccl_id(mine.id)) mine.has_id = 0;
    const std::array<char, 16> bus = part.place.driver->bus_id(part.place.device);
    mine.device = machine_hash();
    hash_field(mine.device, std::string_view(bus.data(), bus.size()));
    mine.version = device::nccl_version();
    const char* several = std::getenv("NCCL_MULTI_RANK_GPU_ENABLE");
    mine.shares = mine.version >= device::nccl_shares_devices_from && several && std::string_view(several) == "1";
    const std::vector<Member> all = all_members(comm_, rank_, size_, mine);
    if (const std::string why = obstacle(all); !why.empty()) {
        give_up(why);
        return false;
    }
    id = all[0].id;
    return true;
}

bool NcclRanks::has_communicator(const Part& part) {
    if (nccl_) return true;
    device::NcclId id;
    if (!meets(part, id)) return false;
    nccl_ = std::make_unique<device::Nccl>(part.place, size_, rank_, id, 2 * limit_);
    if (all_succeed([&] { return nccl_->join(); })) return true;
    give_up(nccl_->why());
    return false;
}

NcclRanks::Outcome NcclRanks::run(const Part* part) {
    std::unique_lock lock(one_operation, std::try_to_lock);
    const bool mine = part && lock.owns_lock() && part->scratch <= device::Nccl::most_scratch && part->place.context &&
                      part->place.driver->name() == std::string_view("cuda") &&
                      (!nccl_ || same_queue(nccl_->place(), part->place));
    if (!all_true(comm_, mine).value_or(false)) return Outcome::not_tried;
    if (!has_communicator(*part)) return Outcome::not_tried;
    void* const scratch = part->scratch > 0 ? nccl_->scratch(part->scratch) : nullptr;
    if (part->scratch > 0 && !scratch) {
        nccl_->fail("no device memory for a result");
    } else {
        nccl_->begin();
        part->add(*nccl_, scratch);
        nccl_->commit(part->bytes, limit_);
    }
    if (!all_succeed([&] { return nccl_->poll(); })) {
        give_up(nccl_->why());
        return Outcome::failed;
    }
    if (part->scratch > 0 && nccl_->copy(part->result, scratch, part->scratch)) return Outcome::not_copied_back;
    return Outcome::done;
}

}  // namespace palmette::runtime
