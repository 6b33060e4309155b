#include "palmette/runtime/network/kept_members.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <new>
#include <thread>

#include "palmette/base/text.hpp"
#include "palmette/collectives/exchanges/network_share.hpp"
#include "palmette/runtime/transport/agreement.hpp"
#include "palmette/runtime/transport/outstanding.hpp"

namespace palmette::runtime {
namespace {

using aggregate::Reason;
using aggregate::kept::Peers;

constexpr std::chrono::seconds longest_meeting{5};

std::mutex listing_of_kept;
std::atomic<int> kept_count{0};
std::vector<KeptMembers*>& all_kept() {
    static auto* const all = new std::vector<KeptMembers*>;
    return *all;
}

}  // namespace

std::unique_ptr<KeptMembers> KeptMembers::meet(MPI_Comm comm, const topology::Job& job, int rank, std::size_t level,
                                               Count count, std::string& why) {
    std::vector<std::int32_t> ranks;
    for (std::int32_t group = 0; group < job.levels()[level].groups.count(); ++group)
        ranks.push_back(collectives::in_network_owner(job, level, group).value);
    std::unique_ptr<KeptMembers> made(new KeptMembers(comm, std::move(ranks), count));
    {
        const std::lock_guard lock(listing_of_kept);
        all_kept().push_back(made.get());
    }
    kept_count.fetch_add(1);
    bool met = false;
    try {
        met = made->gather(rank, why);
    } catch (const std::bad_alloc&) {
        why = "this process is out of memory";
    }
    if (all_true(comm, met).value_or(false)) return made;
    return nullptr;
}

bool KeptMembers::gather(int rank, std::string& why) {
    const auto me = std::ranges::find(ranks_, rank);
    const auto count = static_cast<std::uint32_t>(ranks_.size());
    aggregate::kept::Opening opening;
    if (me == ranks_.begin()) peers_ = Peers::open(count, opening, why);
    if (PMPI_Bcast(&opening, static_cast<int>(sizeof opening), MPI_BYTE, ranks_.front(), comm_) != MPI_SUCCESS) {
        why = "the MPI's broadcast has failed";
        return false;
    }
    if (opening.port == 0) return false;
    if (me == ranks_.end()) return true;
    if (me != ranks_.begin())
        peers_ = Peers::join(static_cast<std::uint32_t>(me - ranks_.begin()), count, opening, why);
    if (!peers_) return false;
    const auto end = std::chrono::steady_clock::now() + longest_meeting;
    while (!peers_->meet()) {
        if (std::chrono::steady_clock::now() > end) {
            why = "ranks don't reach each other by datagrams";
            return false;
        }
        if (has_outstanding()) progress_background();
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return true;
}

KeptMembers::~KeptMembers() { close(); }

void KeptMembers::close() {
    const std::lock_guard lock(listing_of_kept);
    if (std::erase(all_kept(), this) > 0) kept_count.fetch_sub(1);
    tally();
    if (peers_) peers_->close();
    peers_.reset();
}

void KeptMembers::end() {
    MPI_Request request = MPI_REQUEST_NULL;
    complete(PMPI_Ibarrier(comm_, &request), request);
    close();
}

Reason KeptMembers::reason() const {
    if (!peers_ || !peers_->frozen()) return Reason::none;
    return peers_->failure().reason == Reason::none ? Reason::left : peers_->failure().reason;
}

std::string KeptMembers::why() const {
    if (!peers_) return {};
    const Peers::Failure failure = peers_->failure();
    return base::cat(aggregate::name_of(failure.reason), ": ", failure.detail, " (rank ", ranks_[failure.member], ")");
}

void KeptMembers::tally() {
    if (!peers_ || peers_->member() != 0) return;
    const std::uint64_t by_hosts = peers_->by_hosts(), given = peers_->given();
    if (by_hosts > by_hosts_) count_(why(), static_cast<std::int64_t>(by_hosts - by_hosts_));
    if (given > from_others_)
        count_(why() + "; a rank that had the result gave it to the others",
               static_cast<std::int64_t>(given - from_others_));
    by_hosts_ = by_hosts;
    from_others_ = given;
}

bool KeptMembers::any() { return kept_count.load(std::memory_order_relaxed) > 0; }

void KeptMembers::end_all() {
    std::vector<KeptMembers*> all;
    {
        const std::lock_guard lock(listing_of_kept);
        all = all_kept();
    }
    // All begin before one is waited for: ranks may have them in different orders.
    std::vector<MPI_Request> requests(all.size(), MPI_REQUEST_NULL);
    for (std::size_t i = 0; i < all.size(); ++i) PMPI_Ibarrier(all[i]->comm_, &requests[i]);
    PMPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
    for (KeptMembers* one : all) one->close();
}

}  // namespace palmette::runtime
