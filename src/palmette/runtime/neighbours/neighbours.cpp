#include "palmette/runtime/neighbours/neighbours.hpp"

#include <algorithm>
#include <bit>
#include <numeric>

#include "palmette/base/error.hpp"
#include "palmette/base/text.hpp"
#include "palmette/base/units.hpp"
#include "palmette/runtime/data/device_library.hpp"
#include "palmette/runtime/state/process.hpp"
#include "palmette/runtime/transport/agreement.hpp"
#include "palmette/runtime/transport/outstanding.hpp"
#include "palmette/runtime/ways/neighbours.hpp"

namespace palmette::runtime {

using collectives::NeighbourBlocks;
using collectives::NeighbourRoute;
using select::Function;

namespace {

/// Larger blocks go from end to end: relaying them costs more than messages do. Those of an allgather cross less often.
/// Measured: docs/results/2026-11-28-neighbours.md.
struct Limits {
    std::int64_t alltoall, allgather;
};
constexpr Limits over_slow_links{512, 65536};
/// Over faster ones, and unknown ones, relays' copies and hops soon cost more than messages.
constexpr Limits over_fast_links{8, 64};
constexpr double slow_link_bytes_per_s = 1e9;
/// Each copy of a block for the same target has a buffer of its own.
constexpr std::int32_t most_parallel_edges = static_cast<std::int32_t>(plan::most_caller_buffers) - 1;
constexpr std::size_t most_plans = 64;
constexpr const char* no_pairs = "no two ranks share a node, or all do";

bool completed(int code, MPI_Request& request) { return complete(code, request) == MPI_SUCCESS; }

bool send(const std::vector<std::int32_t>& words, int to, int tag, MPI_Comm comm) {
    MPI_Request request = MPI_REQUEST_NULL;
    const int code = PMPI_Isend(words.data(), static_cast<int>(words.size()), MPI_INT32_T, to, tag, comm, &request);
    return completed(code, request);
}

/// Appends a message of any length.
bool receive(std::vector<std::int32_t>& words, int from, int tag, MPI_Comm comm) {
    MPI_Status status;
    int code = MPI_SUCCESS;
    int count = 0;
    if (!has_outstanding()) {
        code = PMPI_Probe(from, tag, comm, &status);
    } else {
        int there = 0;
        wait_until([&] {
            code = PMPI_Iprobe(from, tag, comm, &there, &status);
            return code != MPI_SUCCESS || there != 0;
        });
    }
    if (code != MPI_SUCCESS || PMPI_Get_count(&status, MPI_INT32_T, &count) != MPI_SUCCESS) return false;
    const std::size_t before = words.size();
    words.resize(before + static_cast<std::size_t>(count));
    return PMPI_Recv(words.data() + before, count, MPI_INT32_T, from, tag, comm, MPI_STATUS_IGNORE) == MPI_SUCCESS;
}

/// MPI_PROC_NULL is some negative number.
int neighbour_or_none(int rank) { return rank == MPI_PROC_NULL ? -1 : rank; }

bool read_grid(MPI_Comm comm, collectives::Neighbours& own) {
    int dimensions = 0;
    if (PMPI_Cartdim_get(comm, &dimensions) != MPI_SUCCESS) return false;
    for (int d = 0; d < dimensions; ++d) {
        int before = MPI_PROC_NULL;
        int after = MPI_PROC_NULL;
        if (PMPI_Cart_shift(comm, d, 1, &before, &after) != MPI_SUCCESS) return false;
        own.targets.push_back(neighbour_or_none(before));
        own.targets.push_back(neighbour_or_none(after));
    }
    own.sources = own.targets;
    return true;
}

bool read_old_graph(MPI_Comm comm, collectives::Neighbours& own) {
    int rank = 0;
    int degree = 0;
    PMPI_Comm_rank(comm, &rank);
    if (PMPI_Graph_neighbors_count(comm, rank, &degree) != MPI_SUCCESS) return false;
    own.targets.resize(static_cast<std::size_t>(degree));
    if (PMPI_Graph_neighbors(comm, rank, degree, own.targets.data()) != MPI_SUCCESS) return false;
    own.sources = own.targets;
    return true;
}

bool read_graph(MPI_Comm comm, collectives::Neighbours& own) {
    int in = 0;
    int out = 0;
    int weighted = 0;
    if (PMPI_Dist_graph_neighbors_count(comm, &in, &out, &weighted) != MPI_SUCCESS) return false;
    own.sources.resize(static_cast<std::size_t>(in));
    own.targets.resize(static_cast<std::size_t>(out));
    std::vector<int> in_weights(own.sources.size() + 1), out_weights(own.targets.size() + 1);
    return PMPI_Dist_graph_neighbors(comm, in, own.sources.data(), weighted ? in_weights.data() : MPI_UNWEIGHTED, out,
                                     own.targets.data(), weighted ? out_weights.data() : MPI_UNWEIGHTED) == MPI_SUCCESS;
}

/// Which of several edges from one source a block comes by is the MPI's to say: in a grid of one or two in a circle
/// what goes to the left comes from the right, but not with every MPI. So its own call is asked once.
bool ask_for_edges(MPI_Comm comm, collectives::Neighbours& own) {
    std::vector<int> sent(own.targets.size() + 1), from(own.sources.size() + 1, -1);
    std::iota(sent.begin(), sent.end(), 0);
    if (PMPI_Neighbor_alltoall(sent.data(), 1, MPI_INT, from.data(), 1, MPI_INT, comm) != MPI_SUCCESS) return false;
    own.edge_of_source.assign(own.sources.size(), 0);
    for (std::size_t j = 0; j < own.sources.size(); ++j)
        for (std::size_t other = 0; other < own.sources.size(); ++other)
            if (own.sources[other] == own.sources[j] && from[other] < from[j]) ++own.edge_of_source[j];
    return true;
}

/// Blocks in the order of the lists of neighbours.
class NeighbourPlaces : public execute::Places {
  public:
    /// `bytes`: of every block; blocks lie one after the other.
    NeighbourPlaces(const NeighbourBlocks& blocks, plan::Rank rank, const collectives::Neighbours& own,
                    std::int64_t bytes)
        : bytes_(bytes) {
        const auto at = [bytes](std::size_t index) { return static_cast<std::int64_t>(index) * bytes; };
        add(blocks.sent(rank, own), at);
        add(blocks.received(rank, own), at);
        sort();
    }
    /// Places for a plan without relays, of blocks longer than `slot` bytes; shorter blocks are empty here.
    NeighbourPlaces(const NeighbourBlocks& blocks, plan::Rank rank, const collectives::Neighbours& own,
                    const CallerBuffer& send, const CallerBuffer& recv, std::int64_t slot) {
        add(blocks.sent(rank, own), send, slot);
        add(blocks.received(rank, own), recv, slot);
        sort();
    }
    std::int64_t length(std::int64_t block) const override { return lengths_.empty() ? bytes_ : of(lengths_, block); }
    std::int64_t offset(plan::Buffer buffer, std::int64_t block) const override {
        return of(places_, NeighbourBlocks::Place{buffer, block});
    }

  private:
    template <class Key>
    using Values = std::vector<std::pair<Key, std::int64_t>>;

    template <class OffsetOf>
    void add(const std::vector<NeighbourBlocks::Place>& list, const OffsetOf& offset_of) {
        for (std::size_t i = 0; i < list.size(); ++i)
            if (list[i].block >= 0) places_.emplace_back(list[i], offset_of(i));
    }
    void add(const std::vector<NeighbourBlocks::Place>& list, const CallerBuffer& buffer, std::int64_t slot) {
        add(list, [&](std::size_t index) { return buffer.offset(static_cast<int>(index)); });
        for (std::size_t i = 0; i < list.size(); ++i) {
            const std::int64_t bytes = buffer.bytes(static_cast<int>(i));
            lengths_.emplace_back(list[i].block, bytes > slot ? bytes : 0);
        }
    }
    void sort() {
        std::sort(places_.begin(), places_.end());
        std::sort(lengths_.begin(), lengths_.end());
    }
    template <class Key>
    static std::int64_t of(const Values<Key>& values, const Key& key) {
        return std::lower_bound(values.begin(), values.end(), key,
                                [](const auto& entry, const Key& wanted) { return entry.first < wanted; })
            ->second;
    }

    std::int64_t bytes_ = 0;
    Values<NeighbourBlocks::Place> places_;
    Values<std::int64_t> lengths_;
};

}  // namespace

NeighbourPlans::NeighbourPlans(Communicator& state, MPI_Comm comm) : state_(state) {
    int kind = MPI_UNDEFINED;
    PMPI_Topo_test(comm, &kind);
    if (kind == MPI_UNDEFINED)
        refusal_ = Refusal::erroneous_arguments;
    else
        make(comm, [&] {
            return (kind == MPI_CART ? read_grid : kind == MPI_GRAPH ? read_old_graph : read_graph)(comm, own_);
        });
}

NeighbourPlans::NeighbourPlans(Communicator& state, MPI_Comm comm, collectives::Neighbours given)
    : state_(state), own_(std::move(given)) {
    make(comm, [] { return true; });
}

void NeighbourPlans::make(MPI_Comm comm, const std::function<bool()>& read) {
    const Settings& settings = state_.settings(Process::instance().settings());
    const topology::JobLevel& nodes = state_.job().nodes();
    const double link = nodes.slowest_edge_bytes_per_s;
    const Limits& usual = link > 0 && link <= slow_link_bytes_per_s ? over_slow_links : over_fast_links;
    bool any_forced = false;
    for (const Function function :
         {Function::neighbor_allgather, Function::neighbor_allgatherv, Function::neighbor_alltoall,
          Function::neighbor_alltoallv, Function::neighbor_alltoallw}) {
        const auto& forced = settings.forced[static_cast<std::size_t>(function)];
        any_forced = any_forced || forced;
        Rule& rule = rules_[function];
        rule.forced = forced.has_value();
        rule.up_to = forced && forced->algorithm ? collectives::combined_up_to(*forced->algorithm)
                     : gathers(function)         ? usual.allgather
                                                 : usual.alltoall;
    }
    if (nodes.groups.count() > 1 && !nodes.groups.all_single())
        combined_.levels.push_back(*state_.job().find_level(nodes.name));
    if (combined_.levels.empty() && !any_forced) {
        refusal_ = Refusal::chosen;
        detail_ = no_pairs;
        return;
    }
    if (!agree_with_all(read(), settings)) return;
    for (int j = 0; j < sources(); ++j)
        if (own_.sources[static_cast<std::size_t>(j)] < 0) without_source_.push_back(j);
    // All have come to this call by now, so that the MPI's own, which progresses nothing of ours, waits for nobody.
    bool ready = parallel_ <= 1 || ask_for_edges(comm, own_);
    try {
        ready = exchange_in_group() && ready;
        // Here, where it may fail, for count_messages.
        for (const bool combined : {false, true})
            if (ready) program(Function::neighbor_alltoall, combined);
    } catch (const std::exception&) {
        ready = false;
    }
    if (!all_true(state_.shadow_comm(), ready).value_or(false) || !count_messages()) refusal_ = Refusal::no_state;
}

bool NeighbourPlans::count_messages() {
    if (combined_.levels.empty()) return true;
    const topology::Partition& nodes = state_.job().levels()[combined_.levels.front()].groups;
    const auto node_of = [&](plan::Rank rank) { return nodes.group_of(state_.job().position_of(rank).value); };
    const std::int32_t own = node_of({state_.rank()});
    Sums mine{};  // between nodes and inside, direct and combined
    for (const bool combined : {false, true})
        for (const plan::Step& step : program(Function::neighbor_alltoall, combined).steps)
            if (step.kind == plan::StepKind::send) ++mine[(combined ? 2U : 0U) + (node_of(step.peer) == own ? 1U : 0U)];
    const auto all = sums(state_.shadow_comm(), mine);
    if (!all) return false;
    const auto signed_of = [&](std::size_t i) { return static_cast<std::int64_t>((*all)[i]); };
    const std::int64_t saved = signed_of(0) - signed_of(2), added = signed_of(3) - signed_of(1);
    if (saved > 0 && 4 * saved >= 5 * added) return true;
    why_not_ = base::cat("combined, ", signed_of(2), " messages would go between nodes instead of ", signed_of(0),
                         ", and ", added, " more inside of them");
    return true;
}

std::optional<std::string> NeighbourPlans::why_left(Function function) const {
    if (rules_.at(function).forced) return std::nullopt;
    if (combined_.levels.empty()) return no_pairs;
    if (!why_not_.empty()) return why_not_;
    if (any_isolated_ && !select::sizes_unknown(function)) return "a rank without neighbours doesn't know the length";
    return std::nullopt;
}

bool NeighbourPlans::agree_with_all(bool readable, const Settings& settings) {
    const bool on_device = settings.device_check && device_library_is_loaded();
    const bool isolated = own_.sources.empty() && own_.targets.empty();
    const MPI_Comm comm = state_.shadow_comm();
    const auto all = sums(comm, {collectives::unmatched({state_.rank()}, own_), readable ? 0U : 1U, on_device ? 1U : 0U,
                                 isolated ? 1U : 0U});
    const auto most = smallest(comm, -collectives::most_parallel(own_));
    refusal_ = Refusal::no_state;
    if (!all || !most || (*all)[1] > 0) return false;
    parallel_ = static_cast<std::int32_t>(-*most);
    any_isolated_ = (*all)[3] > 0;
    if ((*all)[2] > 0) {
        refusal_ = Refusal::device_memory;
        return false;
    }
    refusal_ = Refusal::precondition;
    if ((*all)[0] != 0) {
        detail_ = "the ranks' sources and targets aren't the same edges";
        return false;
    }
    if (parallel_ > most_parallel_edges) {
        detail_ = base::cat("more than ", most_parallel_edges, " edges from one rank to another");
        return false;
    }
    refusal_ = std::nullopt;
    return true;
}

bool NeighbourPlans::exchange_in_group() {
    constexpr int to_leader = 0;
    constexpr int from_leader = 1;
    const topology::Job& job = state_.job();
    const MPI_Comm comm = state_.shadow_comm();
    std::vector<std::int32_t> words = collectives::Neighbourhood::words({state_.rank()}, own_);
    if (!combined_.levels.empty()) {
        const topology::Partition& groups = job.levels()[combined_.levels.front()].groups;
        const std::int32_t group = groups.group_of(job.position_of({state_.rank()}).value);
        const auto member = [&](std::int32_t position) { return job.rank_at({position}).value; };
        const std::int32_t first = groups.first(group), end = groups.end(group);
        if (state_.rank() == member(first)) {
            // Members wait for an answer, whatever fails.
            bool right = true;
            for (std::int32_t m = first + 1; m < end; ++m) right = receive(words, member(m), to_leader, comm) && right;
            for (std::int32_t m = first + 1; m < end; ++m) right = send(words, member(m), from_leader, comm) && right;
            if (!right) return false;
        } else {
            if (!send(words, member(first), to_leader, comm)) return false;
            words.clear();
            if (!receive(words, member(first), from_leader, comm)) return false;
        }
    }
    known_.emplace(words);
    return true;
}

CachedPlan& NeighbourPlans::plan_for(Function function, std::int64_t block_bytes, bool blocking) {
    const std::tuple key{function, block_bytes, blocking};
    const auto at = plans_.find(key);
    if (at != plans_.end()) return *at->second;
    if (plans_.size() >= most_plans)
        for (std::size_t tried = 0; tried < plans_.size(); ++tried) {
            const auto next = plans_.upper_bound(last_victim_);
            const auto victim = next == plans_.end() ? plans_.begin() : next;
            last_victim_ = victim->first;
            if (victim->second->users > 0) continue;
            plans_.erase(victim);
            break;
        }
    auto made = std::make_unique<CachedPlan>();
    made->key.function = function;
    made->key.blocking = blocking;
    made->key.block_bytes = block_bytes;
    // Ranks whose arguments are erroneous don't know a call's lengths where these differ.
    fill(*made);
    return *plans_.emplace(key, std::move(made)).first->second;
}

execute::BoundProgram NeighbourPlans::bound_to(Function function, const CallerBuffer& send, const CallerBuffer& recv,
                                               std::int64_t slot) {
    const NeighbourPlaces places(blocks_for(function), {state_.rank()}, own_, send, recv, slot);
    execute::Layout layout;
    layout.places = &places;
    layout.ends_know_lengths = true;
    layout.transports = &state_.executor().transports();
    return execute::bind(plan::Collective::composed, program(function, false), state_.job(), layout);
}

const plan::Program& NeighbourPlans::program(Function function, bool combined) {
    auto& made = programs_[gathers(function) ? 1 : 0][combined ? 1 : 0];
    if (!made)
        made = collectives::neighbour_program(state_.job(), {state_.rank()}, *known_, blocks_for(function),
                                              combined ? combined_ : NeighbourRoute{});
    return *made;
}

std::int64_t NeighbourPlans::slot_for(Function function, const CallerBuffer* send) {
    Slot& slot = slots_[function];
    const std::int64_t up_to = rules_.at(function).up_to;
    if (combined_.levels.empty() || up_to < 0) return -1;
    ++slot.calls;
    const auto calls = static_cast<std::uint64_t>(slot.calls);
    // 4, 16, 64, 256, and each 1,024th.
    const bool due = calls % 1024 == 0 ||
                     (calls < 1024 && calls >= 4 && std::has_single_bit(calls) && std::countr_zero(calls) % 2 == 0);
    if (!due) return slot.bytes;
    Sums mine{};
    std::int64_t longest = 0;
    for (int i = 0; send && i < sent_blocks(function); ++i) {
        if (!has_target(function, i)) continue;
        ++mine[0];
        mine[1] += static_cast<std::uint64_t>(send->bytes(i));
        longest = std::max(longest, send->bytes(i));
    }
    const auto all = sums(state_.shadow_comm(), mine);
    const auto most = smallest(state_.shadow_comm(), -longest);
    if (!all || !most) return slot.bytes = -1;
    // Few long blocks among many short ones would make all of these long.
    const std::int64_t mean = (*all)[0] > 0 ? static_cast<std::int64_t>((*all)[1] / (*all)[0]) : 0;
    const std::int64_t bytes = std::min((std::min(std::int64_t{-*most}, 4 * mean) + 7) / 8 * 8, up_to);
    slot.bytes = bytes > 0 ? bytes : -1;
    return slot.bytes;
}

void NeighbourPlans::fill(CachedPlan& plan) {
    const Function function = plan.key.function;
    const std::int64_t bytes = plan.key.block_bytes;
    const bool differ = select::sizes_unknown(function);
    const Rule& rule = rules_.at(function);
    const bool combined = !combined_.levels.empty() && bytes >= 0 && bytes <= rule.up_to;
    const NeighbourBlocks blocks = blocks_for(function);
    const plan::Rank rank{state_.rank()};
    const Settings& settings = state_.settings(Process::instance().settings());
    const std::string why = rule.forced ? "forced by " + settings.forced[static_cast<std::size_t>(function)]->source
                            : bytes < 0 ? "ranks that would relay blocks don't know their lengths"
                                        : base::cat("combined up to ", base::format_size(rule.up_to));
    plan.route.reason = bytes == 0 ? "nothing to move" : why;
    // Direct messages are the MPI's as well.
    if (!combined && !rule.forced) {
        plan.refusal = Refusal::chosen;
        return;
    }
    plan.route.request.collective = plan::Collective::composed;
    plan.route.job = &state_.job();
    plan.route.tags = collectives::neighbour_tags;
    if (differ && bytes > 0)
        plan.way = std::make_unique<PaddedToNeighbours>(*this, bytes);
    else
        plan.way = std::make_unique<ToNeighbours>(*this);
    plan.way->named_buffers = blocks.buffers() - 2;
    plan.way->kept_blocks = &without_source_;
    plan.route.algorithm = bytes == 0 ? "none" : combined ? "combined:level=node" : "direct";
    plan.buffered_sends = state_.buffered_sends_of(plan, settings);
    plan.tally.comparison =
        bytes == 0 || select::sizes_unknown(function) ? nullptr : state_.comparison_of(plan, settings);
    if (bytes == 0) return;
    plan.program = program(function, combined);
    if (bytes < 0) return;
    const NeighbourPlaces places(blocks, rank, own_, bytes);
    execute::Layout layout;
    layout.places = &places;
    layout.transports = &state_.executor().transports();
    plan.bound = execute::bind(plan.collective(), plan.program, state_.job(), layout);
}

}  // namespace palmette::runtime
