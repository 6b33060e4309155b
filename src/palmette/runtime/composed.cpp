#include "palmette/runtime/composed.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <new>
#include <optional>

#include "palmette/base/error.hpp"
#include "palmette/compose/factoring_text.hpp"
#include "palmette/compose/promise.hpp"
#include "palmette/runtime/agreement.hpp"
#include "palmette/runtime/discovery.hpp"
#include "palmette/runtime/patience.hpp"
#include "palmette/runtime/process.hpp"
#include "palmette/runtime/shared_single_copy.hpp"

namespace palmette::runtime {

using base::fail;

class ComposedHome {
  public:
    ComposedHome(MPI_Comm comm, const Settings& settings) {
        MPI_Group group = MPI_GROUP_NULL;
        PMPI_Comm_group(comm, &group);
        const int error = PMPI_Comm_create(comm, group, &hidden);
        PMPI_Group_free(&group);
        if (error != MPI_SUCCESS || hidden == MPI_COMM_NULL)
            fail("the communicator can't be used: MPI gives no other one with its ranks");
        PMPI_Comm_set_errhandler(hidden, MPI_ERRORS_RETURN);
        PMPI_Comm_rank(hidden, &rank);
        job = discover(hidden, settings).job;
        int* limit = nullptr;
        int found = 0;
        PMPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &limit, &found);
        tag_limit_ = found ? *limit : 32767;
    }
    ComposedHome(const ComposedHome&) = delete;
    ComposedHome& operator=(const ComposedHome&) = delete;
    ~ComposedHome() {
        int finalized = 0;
        PMPI_Finalized(&finalized);
        if (hidden != MPI_COMM_NULL && !finalized) PMPI_Comm_free(&hidden);
    }

    bool on_my_node(std::int32_t peer) const {
        const topology::Partition& nodes = job.nodes().groups;
        return nodes.group_of(job.position_of(base::Rank{peer}).value) ==
               nodes.group_of(job.position_of(base::Rank{rank}).value);
    }

    /// Whether all ranks may read the memory of those of their node. Collective at the first call; each rank tries its neighbour.
    bool can_copy() {
        if (can_copy_) return *can_copy_;
        permit_siblings_to_read();
        const topology::Partition& nodes = job.nodes().groups;
        const std::int32_t position = job.position_of(base::Rank{rank}).value;
        const std::int32_t group = nodes.group_of(position), first = nodes.first(group), size = nodes.size_of(group);
        const auto neighbor = [&](std::int32_t distance) {
            return job.rank_at({first + (position - first + distance) % size}).value;
        };
        std::uint64_t word = 0x70616c6d65747465U ^ static_cast<std::uint64_t>(rank);
        const std::array<std::uint64_t, 3> mine{static_cast<std::uint64_t>(getpid()),
                                                reinterpret_cast<std::uint64_t>(&word), word};
        std::array<std::uint64_t, 3> theirs = mine;
        bool works = true;
        if (size > 1)
            works = PMPI_Sendrecv(mine.data(), sizeof mine, MPI_BYTE, neighbor(1), 0, theirs.data(), sizeof theirs,
                                  MPI_BYTE, neighbor(size - 1), 0, hidden, MPI_STATUS_IGNORE) == MPI_SUCCESS &&
                    can_read_process(static_cast<pid_t>(theirs[0]), theirs[1], theirs[2]);
        // The word stays where it is until everybody has read.
        can_copy_ = all_true(hidden, works).value_or(false);
        return *can_copy_;
    }

    /// The first gap that is wide enough: the same on all ranks, which take and give back in the same order.
    int take_tags(std::int64_t count) {
        std::int64_t at = 0;
        for (const auto& [first, taken] : tags_) {
            if (first - at >= count) break;
            at = first + taken;
        }
        if (at + count > tag_limit_) fail("too many bound plans on a communicator; free some");
        tags_[at] = count;
        return static_cast<int>(at);
    }
    void give_tags(int first) { tags_.erase(first); }

    MPI_Comm hidden = MPI_COMM_NULL;
    topology::Job job;
    int rank = 0;

  private:
    std::optional<bool> can_copy_;
    std::map<std::int64_t, std::int64_t> tags_;
    std::int64_t tag_limit_ = 0;
};

namespace {

/// Shorter messages are sent: an offer and its answer cost more than a copy.
constexpr std::int64_t least_single_copy = 4096;

/// Offsets of one rank's blocks: ascending, without gaps, each cut in stripes.
class Packed : public Places {
  public:
    Packed(const compose::Composition& composition, std::int32_t stripes, base::Rank rank)
        : composition_(composition), stripes_(stripes) {
        const compose::Holdings holdings(composition, rank.value);
        for (std::size_t b = 0; b < composition.buffers().size(); ++b) {
            std::map<std::int64_t, std::int64_t>& at = at_.emplace_back();
            std::int64_t end = 0;
            for (const plan::Interval& interval : holdings.of(rank, plan::caller_buffer(b)).intervals())
                for (std::int64_t block = interval.first; block < interval.end(); ++block) {
                    at[block] = end;
                    end += composition.lengths()[block];
                }
            bytes_.push_back(end);
        }
    }
    std::int64_t length(std::int64_t block) const override {
        return compose::bytes_of_stripe(composition_, stripes_, block);
    }
    std::int64_t offset(plan::Buffer buffer, std::int64_t block) const override {
        return at_[plan::caller_index(buffer)].at(block / stripes_) +
               plan::cut_begin(composition_.lengths()[block / stripes_], stripes_, composition_.element_bytes(),
                               block % stripes_);
    }
    const std::vector<std::int64_t>& bytes() const { return bytes_; }

  private:
    const compose::Composition& composition_;
    std::int32_t stripes_;
    std::vector<std::map<std::int64_t, std::int64_t>> at_;
    std::vector<std::int64_t> bytes_;
};

/// What all ranks must have in common, as a number.
class Hash {
  public:
    void add(std::int64_t value) {
        for (int byte = 0; byte < 8; ++byte) {
            value_ ^= static_cast<std::uint64_t>(value >> (8 * byte)) & 0xff;
            value_ *= 0x100000001b3U;
        }
    }
    void add(std::string_view text) {
        add(static_cast<std::int64_t>(text.size()));
        for (const char c : text) add(static_cast<std::int64_t>(c));
    }
    std::uint64_t value() const { return value_; }

  private:
    std::uint64_t value_ = 0xcbf29ce484222325U;
};

std::uint64_t hash_of(const compose::Composition& composition, std::string_view factoring) {
    Hash hash;
    hash.add(factoring);
    hash.add(composition.ranks());
    hash.add(composition.element_bytes());
    for (std::int64_t b = 0; b < composition.blocks(); ++b) hash.add(composition.lengths()[b]);
    for (const std::string& name : composition.buffers()) hash.add(name);
    for (const compose::Operation& operation : composition.operations()) hash.add(operation.commutative ? 1 : 0);
    composition.visit([&](std::int32_t phase, const compose::Primitive& primitive) {
        hash.add(phase);
        hash.add(primitive.reduces ? 1 : 0);
        hash.add(primitive.root.value);
        for (std::size_t i = 0; i < primitive.others.runs(); ++i)
            hash.add(primitive.others.run(i).first), hash.add(primitive.others.run(i).count);
        hash.add(primitive.blocks.first);
        hash.add(primitive.blocks.count);
        hash.add(static_cast<std::int64_t>(primitive.source));
        hash.add(static_cast<std::int64_t>(primitive.target));
        hash.add(primitive.operation);
    });
    return hash.value();
}

/// The homes of communicators hang on them as attributes. Plans share them, so that a communicator may be freed before its plans.
int home_key() {
    const auto make = [] {
        int made = MPI_KEYVAL_INVALID;
        PMPI_Comm_create_keyval(
            MPI_COMM_NULL_COPY_FN,
            [](MPI_Comm, int, void* attribute, void*) -> int {
                delete static_cast<std::shared_ptr<ComposedHome>*>(attribute);
                return MPI_SUCCESS;
            },
            &made, nullptr);
        return made;
    };
    // Known to one MPI only; programs that use sessions may have several, one after the other.
    static std::mutex mutex;
    static int key = MPI_KEYVAL_INVALID;
    static std::uint64_t of = 0;
    const std::lock_guard lock(mutex);
    const std::uint64_t ends = Process::instance().ends();
    if (key == MPI_KEYVAL_INVALID || of != ends) key = make();
    of = ends;
    return key;
}

std::shared_ptr<ComposedHome> home_of(MPI_Comm comm, const Settings& settings) {
    int initialized = 0, finalized = 0, inter = 0;
    PMPI_Initialized(&initialized);
    PMPI_Finalized(&finalized);
    if (!initialized || finalized) fail("MPI isn't running; make plans between MPI_Init and MPI_Finalize");
    if (comm == MPI_COMM_NULL) fail("the communicator is MPI_COMM_NULL");
    if (PMPI_Comm_test_inter(comm, &inter) != MPI_SUCCESS || inter)
        fail("the communicator is an inter-communicator; merge it first");
    std::shared_ptr<ComposedHome>* kept = nullptr;
    int found = 0;
    PMPI_Comm_get_attr(comm, home_key(), &kept, &found);
    if (found) return *kept;
    auto made = std::make_shared<ComposedHome>(comm, settings);
    kept = new std::shared_ptr<ComposedHome>(made);
    if (PMPI_Comm_set_attr(comm, home_key(), kept) != MPI_SUCCESS) delete kept;
    return made;
}

/// All that are under way in this process.
struct UnderWay {
    std::mutex mutex;
    std::vector<ComposedRun*> runs;
};
UnderWay& under_way() {
    // Never destroyed, as Process.
    static UnderWay* it = new UnderWay;
    return *it;
}

}  // namespace

void ComposedPlan::prepare(const compose::Composition& composition, const topology::Job& job,
                           std::string_view factoring, int rank) {
    if (composition.ranks() != job.size())
        fail("the composition has ", composition.ranks(), " ranks and the communicator ", job.size());
    if (ops_.size() != composition.operations().size())
        fail("the composition has ", composition.operations().size(), " operations and ", ops_.size(), " are given");
    for (std::size_t i = 0; i < ops_.size(); ++i) {
        // Of reductions with one source each, which nobody applies it to.
        if (ops_[i] == MPI_OP_NULL) continue;
        const Operation operation(ops_[i], type_);
        if (!operation.valid())
            fail("operation '", composition.operations()[i].name, "': ", describe(operation.obstacle()));
        if (operation.commutative() != composition.operations()[i].commutative)
            fail("operation '", composition.operations()[i].name, "' is ", operation.commutative() ? "" : "not ",
                 "commutative, and the composition says otherwise");
        if (operation.layout().true_lower != 0 || operation.layout().extent != composition.element_bytes())
            fail("operation '", composition.operations()[i].name, "': elements of ", operation.layout().extent,
                 " bytes where the composition's have ", composition.element_bytes());
    }
    const compose::NamedFactoring parsed = compose::parse_factoring(factoring);
    const topology::Job on =
        parsed.hierarchy.empty() ? job : compose::job_of_hierarchy(parsed.hierarchy, composition.ranks());
    const compose::Tree tree = compose::Tree::of(on);
    const compose::Factory factory(composition, on, tree, parsed.factoring);
    const base::Rank self{rank};
    program_ = factory.program(self);
    tags_ = factory.tag_limit();
    for (const plan::Step& step : program_.steps)
        copied_tags_.push_back((step.kind == plan::StepKind::send || step.kind == plan::StepKind::recv) &&
                               factory.single_copy(step.tag));
    wants_copies_ =
        std::any_of(parsed.factoring.methods.begin(), parsed.factoring.methods.end(),
                    [](const auto& method) { return method.transport == compose::Method::Transport::single_copy; });
    const Packed packed(composition, parsed.factoring.stripes, self);
    Layout layout;
    layout.element_bytes = composition.element_bytes();
    layout.places = &packed;
    bound_ = bind(plan::Collective::composed, program_, on, layout);
    names_ = composition.buffers();
    buffer_bytes_ = packed.bytes();
}

void ComposedPlan::take_single_copies() {
    for (std::size_t s = 0; s < bound_.steps.size(); ++s) {
        BoundStep& step = bound_.steps[s];
        // Both sides know a message's length and whether they share a node: they come to the same result.
        step.single_copy = copied_tags_[s] && step.bytes >= least_single_copy && home_->on_my_node(step.peer);
        if (!step.single_copy) continue;
        ++single_copies_;
        // The offer and its answer, and, where the system refuses the read, the data behind them.
        bound_.most_requests += 2;
    }
    bound_.single_copies = single_copies_ > 0;
}

std::unique_ptr<ComposedPlan> ComposedPlan::make(MPI_Comm comm, const compose::Composition* composition,
                                                 std::string_view factoring, std::vector<MPI_Op> operations,
                                                 MPI_Datatype type, const Settings& settings) {
    std::unique_ptr<ComposedPlan> plan(new ComposedPlan);
    plan->home_ = home_of(comm, settings);
    plan->ops_ = std::move(operations);
    plan->type_ = type;
    plan->waiting_ = settings.waiting;
    int threads = MPI_THREAD_MULTIPLE;
    PMPI_Query_thread(&threads);
    plan->may_block_ = settings.waiting == Waiting::Policy::mpi && threads != MPI_THREAD_MULTIPLE;
    std::string complaint;
    std::uint64_t hash = 0;
    try {
        if (!composition) fail("composition is null");
        hash = hash_of(*composition, factoring);
        plan->prepare(*composition, plan->home_->job, factoring, plan->home_->rank);
    } catch (const std::bad_alloc&) {
        complaint = "out of memory";
    } catch (const std::exception& error) {
        complaint = error.what();
    }
    // Nobody starts what another rank has refused, or understood otherwise.
    const auto agreement = agree(plan->home_->hidden, {hash, true, complaint.empty(), true});
    if (!complaint.empty()) fail(complaint);
    if (!agreement) fail("the ranks can't compare their compositions: MPI reports an error");
    if (!agreement->world_known) fail("another rank refuses the plan; its error says why");
    if (!agreement->settings_agree) fail("the composition or its factoring differs between ranks; give all the same");
    // All of them bring the same factoring by now.
    if (plan->wants_copies_ && plan->home_->can_copy()) plan->take_single_copies();
    return plan;
}

ComposedRun::ComposedRun(std::shared_ptr<const ComposedPlan> plan, const std::vector<void*>& buffers)
    : plan_(std::move(plan)), executor_(Waiting(plan_->waiting_)) {
    if (buffers.size() != plan_->buffers())
        fail("the plan has ", plan_->buffers(), " buffers and ", buffers.size(), " are bound");
    for (std::size_t i = 0; i < buffers.size(); ++i) {
        if (!buffers[i] && plan_->buffer_bytes(i) > 0)
            fail("buffer '", plan_->buffer_name(i), "' of ", plan_->buffer_bytes(i), " bytes is null");
        bases_.push_back(static_cast<char*>(buffers[i]));
    }
    bases_.resize(std::max<std::size_t>(2, bases_.size()));
    for (const MPI_Op op : plan_->ops_) operations_.emplace_back(op, plan_->type_);
    executor_.prepare(plan_->bound_);
    // Behind them those of answers to single copies, and of data that is sent after all.
    first_tag_ = plan_->home_->take_tags(plan_->wants_copies_ ? 3 * plan_->tags_ : plan_->tags_);
}

ComposedRun::~ComposedRun() {
    wait();
    plan_->home_->give_tags(first_tag_);
}

int ComposedRun::start() {
    UnderWay& all = under_way();
    const std::lock_guard guard(all.mutex);
    if (running_) return MPI_ERR_PENDING;
    Environment environment;
    environment.bases = {bases_[0], bases_[1], bases_.data() + 2};
    environment.comm = plan_->home_->hidden;
    environment.first_tag = first_tag_;
    environment.answer_tags = static_cast<int>(plan_->tags_);
    environment.operation = operations_.data();
    code_ = executor_.begin(plan_->bound_, environment);
    if (code_ != MPI_SUCCESS) return code_;
    running_ = true;
    all.runs.push_back(this);
    return MPI_SUCCESS;
}

void ComposedRun::progress() {
    bool done = false;
    code_ = executor_.progress(done);
    if (done || code_ != MPI_SUCCESS) ended();
}

void ComposedRun::ended() {
    running_ = false;
    Process::instance().report().refused_reads.add(executor_.take_refused_reads());
}

void ComposedRun::progress_all() {
    UnderWay& all = under_way();
    for (ComposedRun* run : all.runs) run->progress();
    std::erase_if(all.runs, [](const ComposedRun* run) { return !run->running_; });
}

int ComposedRun::test(bool& done) {
    UnderWay& all = under_way();
    const std::lock_guard guard(all.mutex);
    if (running_) progress_all();
    done = !running_;
    const int code = code_;
    if (done) code_ = MPI_SUCCESS;
    return code;
}

void ComposedRun::finish_alone() {
    UnderWay& all = under_way();
    const std::lock_guard guard(all.mutex);
    if (!running_ || all.runs.size() != 1) return;
    code_ = executor_.finish();
    ended();
    all.runs.clear();
}

int ComposedRun::wait() {
    if (plan_->may_block_) finish_alone();
    Patience patience(2, 1);
    bool done = false;
    int code = MPI_SUCCESS;
    for (patience.fresh(); (code = test(done)), !done; patience.pause()) {
    }
    return code;
}

}  // namespace palmette::runtime
