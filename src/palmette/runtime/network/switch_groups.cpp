#include "palmette/runtime/network/switch_groups.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <new>
#include <vector>

#include "palmette/aggregate/sha256.hpp"
#include "palmette/base/error.hpp"
#include "palmette/runtime/network/leaders.hpp"

namespace palmette::runtime {

using aggregate::Problem;
using aggregate::Reason;

/// A leader's part, which may outlive the communicator's state.
struct SwitchGroups::Joined {
    Leaders leaders;
    std::unique_ptr<aggregate::sharp::Group> group;
    bool all_have_groups = false;  ///< the other leaders, too

    Joined(MPI_Comm comm, int leader) : leaders(comm, leader) {}

    /// Collective over the leaders.
    void close() {
        if (all_have_groups) group->close();
        group.reset();
        leaders.free();
    }
};

namespace {

/// The channel's service: the group belongs to Joined.
class Forwarded final : public aggregate::Service {
  public:
    explicit Forwarded(aggregate::sharp::Group& group) : group_(group) {}
    void progress() noexcept override { group_.progress(); }
    void leave() noexcept override { group_.leave(); }
    bool ready() const override { return group_.ready(); }
    bool failed() const override { return group_.failed(); }
    Reason reason() const override { return group_.reason(); }
    std::string_view detail() const override { return group_.detail(); }
    Reason post(const aggregate::Operation& operation, std::uint32_t& number) noexcept override {
        return group_.post(operation, number);
    }
    bool done(std::uint32_t number) const override { return group_.done(number); }
    Watch watch() const override { return group_.watch(); }

  private:
    aggregate::sharp::Group& group_;
};

std::mutex listing;
std::atomic<int> joined_count{0};
std::vector<std::shared_ptr<void>>& all_joined() {
    static auto* const all = new std::vector<std::shared_ptr<void>>;
    return *all;
}

}  // namespace

SwitchGroups::SwitchGroups(MPI_Comm comm, const topology::Job& job, int rank, std::size_t level, std::string library)
    : comm_(comm), job_(job), rank_(rank), level_(level), library_(std::move(library)) {}

SwitchGroups::~SwitchGroups() = default;

Problem SwitchGroups::pass(std::size_t stage, const execute::BoundProgram& program) {
    if (stage == 0) return find(program);
    if (stage == 4) return share_capabilities();
    if (leader_ < 0) return {};
    joined_->all_have_groups = true;
    Leaders& leaders = joined_->leaders;
    aggregate::sharp::Group& group = *joined_->group;
    try {
        if (stage == 2) return group.create();
        if (stage == 3) {
            if (Problem problem = group.prove(); problem.reason != Reason::none) return problem;
            channels.push_back({peer_, 0, std::make_unique<Forwarded>(group)});
            return {};
        }
        std::uint64_t job_id = 0;
        if (leader_ == 0 && !aggregate::fill_random(&job_id, sizeof job_id)) leaders.abort(Reason::library);
        if (leaders.bcast(&job_id, sizeof job_id, 0) != 0)
            return {leaders.aborted().member >= 0 ? Reason::member_lost : Reason::out_of_band,
                    "the leaders don't reach each other over the MPI"};
        return group.init(job_id);
    } catch (const std::bad_alloc&) {
        leaders.abort(Reason::no_resource);
        return {Reason::no_resource, "this process is out of memory"};
    }
}

Problem SwitchGroups::find(const execute::BoundProgram& program) {
    const topology::Partition& groups = job_.levels()[level_].groups;
    const auto messages = execute::channels_of(program, job_.size());
    leader_ = messages.empty() ? -1 : groups.group_of(job_.position_of(topology::Rank{rank_}).value);
    auto joined = std::make_shared<Joined>(comm_, leader_);
    if (leader_ < 0) return {};
    joined_ = std::move(joined);
    peer_ = messages.front().first;
    if (!joined_->leaders.works()) return {Reason::no_resource, "the MPI has no communicator for the leaders"};
    const aggregate::sharp::LibraryLookup& found = aggregate::sharp::find_library(library_);
    if (!found.library) return {found.reason, found.detail};
    int level = MPI_THREAD_SINGLE;
    PMPI_Query_thread(&level);
    joined_->group = std::make_unique<aggregate::sharp::Group>(*found.library, joined_->leaders, leader_,
                                                               groups.count(), level == MPI_THREAD_MULTIPLE);
    const std::lock_guard lock(listing);
    all_joined().push_back(joined_);
    joined_count.fetch_add(1);
    return {};
}

/// Only leaders know what the switches combine, and all ranks decide by it.
Problem SwitchGroups::share_capabilities() {
    constexpr std::uint64_t anything = ~std::uint64_t{0};
    std::array<std::uint64_t, 2> masks{anything, anything};
    if (leader_ >= 0) masks = {joined_->group->combines().types, joined_->group->combines().ops};
    if (PMPI_Allreduce(MPI_IN_PLACE, masks.data(), 2, MPI_UINT64_T, MPI_BAND, comm_) != MPI_SUCCESS)
        return {Reason::out_of_band, "the MPI's reduction has failed"};
    combines_ = {masks[0], masks[1]};
    return {};
}

void SwitchGroups::leave() {
    channels.clear();
    if (!joined_) return;
    joined_->close();
    const std::lock_guard lock(listing);
    if (std::erase(all_joined(), std::static_pointer_cast<void>(joined_)) > 0) joined_count.fetch_sub(1);
    joined_.reset();
}

bool SwitchGroups::combine(kernels::Operator op, kernels::Element element) const { return combines_(op, element); }

bool SwitchGroups::any() { return joined_count.load(std::memory_order_relaxed) > 0; }

void SwitchGroups::end_all() {
    for (;;) {
        std::shared_ptr<void> first;
        {
            const std::lock_guard lock(listing);
            if (all_joined().empty()) return;
            first = all_joined().front();
            all_joined().erase(all_joined().begin());
            joined_count.fetch_sub(1);
        }
        static_cast<Joined*>(first.get())->close();
    }
}

}  // namespace palmette::runtime
