#include "palmette/runtime/composed/composed.hpp"
#include "palmette/base/hash.hpp"

#include <algorithm>
#include <atomic>
#include <map>
#include <new>

#include "palmette/base/error.hpp"
#include "palmette/base/text.hpp"
#include "palmette/compose/factoring_text.hpp"
#include "palmette/compose/promise.hpp"
#include "palmette/device/place.hpp"
#include "palmette/execute/packed_blocks.hpp"
#include "palmette/node/spin_wait.hpp"
#include "palmette/runtime/data/on_device.hpp"
#include "palmette/runtime/settings/control.hpp"
#include "palmette/runtime/state/process.hpp"
#include "palmette/runtime/transport/agreement.hpp"

namespace palmette::runtime {

using base::fail;

namespace {

/// Hash of what must be identical on all ranks.
class Hash {
  public:
    void add(std::int64_t value) {
        hash_field(value_, std::string_view(reinterpret_cast<const char*>(&value), sizeof value));
    }
    void add(std::string_view text) {
        add(static_cast<std::int64_t>(text.size()));
        hash_field(value_, text);
    }
    std::uint64_t value() const { return value_; }

  private:
    std::uint64_t value_ = base::fnv1a_start;
};

std::uint64_t hash_of(const compose::Composition& composition, std::string_view factoring) {
    Hash hash;
    hash.add(factoring);
    hash.add(composition.ranks());
    hash.add(composition.element_bytes());
    hash.add(composition.local() ? 1 : 0);
    hash.add(composition.blocks());
    hash.add(composition.phases());
    for (const std::string& name : composition.buffers()) hash.add(name);
    for (const compose::Operation& operation : composition.operations()) hash.add(operation.commutative ? 1 : 0);
    // Local ones are compared by their messages.
    if (composition.local()) return hash.value();
    for (std::int64_t b = 0; b < composition.blocks(); ++b) hash.add(composition.lengths()[b]);
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

/// The program's MPI_Finalize doesn't come through palmette where that is loaded by Python: what is kept for devices is
/// given back when the MPI takes down MPI_COMM_SELF, first of all.
void release_with_the_mpi() {
    static constinit std::atomic<bool> asked{false};
    int initialized = 0;
    // Not in programs that have sessions alone.
    if (asked.exchange(true) || PMPI_Initialized(&initialized) != MPI_SUCCESS || !initialized) return;
    int key = MPI_KEYVAL_INVALID;
    const auto release = [](MPI_Comm, int, void*, void*) -> int {
        device::Nccl::abort_all();
        device::Resources::instance().release();
        return MPI_SUCCESS;
    };
    if (PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, release, &key, nullptr) != MPI_SUCCESS) return;
    PMPI_Comm_set_attr(MPI_COMM_SELF, key, nullptr);
    PMPI_Comm_free_keyval(&key);
}

/// Ranks may compute between a run's start and its end, when their messages don't go on: so many times the limit for a
/// collective of NCCL's.
constexpr int messages_limits = 5;

constexpr const char* elsewhere = "it failed at another rank";

/// Rounds up to a multiple of a cache line, 64 bytes.
std::int64_t aligned(std::int64_t bytes) { return (bytes + 63) / 64 * 64; }

}  // namespace

Communicator& composing_state(MPI_Comm comm, const Settings& settings) {
    int initialized = 0, finalized = 0, inter = 0;
    PMPI_Initialized(&initialized);
    PMPI_Finalized(&finalized);
    if (!initialized || finalized) fail("MPI isn't running; make plans between MPI_Init and MPI_Finalize");
    if (comm == MPI_COMM_NULL) fail("the communicator is MPI_COMM_NULL");
    if (PMPI_Comm_test_inter(comm, &inter) != MPI_SUCCESS || inter)
        fail("the communicator is an inter-communicator; merge it first");
    return Process::instance().composing(comm, settings);
}

void ComposedPlan::prepare(const compose::Composition& composition, const topology::Job& job,
                           std::string_view factoring, int rank) {
    if (composition.ranks() != job.size())
        fail("the composition has ", composition.ranks(), " ranks and the communicator ", job.size());
    if (ops_.size() != composition.operations().size())
        fail("the composition has ", composition.operations().size(), " operations and ", ops_.size(), " are given");
    for (std::size_t i = 0; i < ops_.size(); ++i) {
        // Belongs to reductions with one source each, where it is never applied.
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
    program_ = factory.program(self, &balance_);
    tags_ = factory.tag_limit();
    using By = compose::Method::Transport;
    const auto wants = [&](By transport) {
        return std::any_of(parsed.factoring.methods.begin(), parsed.factoring.methods.end(),
                           [&](const auto& method) { return method.transport == transport; });
    };
    wants_single_copies_ = wants(By::single_copy);
    wants_ipc_ = wants(By::ipc);
    wants_nccl_ = wants(By::nccl);
    const execute::PackedBlocks packed(composition, parsed.factoring.stripes, self);
    execute::Layout layout;
    layout.element_bytes = composition.element_bytes();
    layout.places = &packed;
    bound_ = execute::bind(plan::Collective::composed, program_, on, layout);
    for (std::size_t s = 0; s < bound_.steps.size(); ++s) {
        execute::BoundStep& step = bound_.steps[s];
        if (!plan::is_message(step.kind)) continue;
        const By transport = factory.transport(program_.steps[s].tag);
        step.single_copy = transport == By::single_copy;
        step.ipc = transport == By::ipc;
        step.nccl = transport == By::nccl;
        if (step.single_copy || step.ipc) ++bound_.single_copies;
    }
    names_ = composition.buffers();
    buffer_bytes_ = packed.bytes();
}

ComposedPlan::ComposedPlan(Communicator& state) : state_(state), ends_(Process::instance().ends()) { ++state.users; }

ComposedPlan::~ComposedPlan() {
    // Where the MPI has ended since, its state is leaked: nothing of that MPI can be freed any more.
    if (ends_ == Process::instance().ends()) Process::instance().release_user(state_);
}

std::unique_ptr<ComposedPlan> ComposedPlan::make(MPI_Comm comm, const compose::Composition* composition,
                                                 std::string_view factoring, std::vector<MPI_Op> operations,
                                                 MPI_Datatype type, const Settings& settings) {
    std::unique_ptr<ComposedPlan> plan(new ComposedPlan(composing_state(comm, settings)));
    Communicator& state = plan->state_;
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
        plan->prepare(*composition, state.job(), factoring, state.rank());
    } catch (const std::bad_alloc&) {
        complaint = "out of memory";
    } catch (const std::exception& error) {
        complaint = error.what();
    }
    // No rank may start a plan that another one has rejected, or understood differently.
    const auto agreement = agree(state.shadow_comm(), {hash, true, complaint.empty(), true});
    if (!complaint.empty()) fail(complaint);
    if (!agreement) fail("the ranks can't compare their compositions: MPI reports an error");
    if (!agreement->world_known) fail("another rank refuses the plan; its error says why");
    if (!agreement->settings_agree) fail("the composition or its factoring differs between ranks; give all the same");
    if (composition->local() && sum(state.shadow_comm(), plan->balance_) != 0)
        fail(
            "the ranks' parts of the local composition don't fit together: some message has other blocks, or lengths, "
            "on its two sides");
    // The factoring is known to be the same on all ranks by now.
    plan->single_copies_work_ = plan->wants_single_copies_ && state.ranks_read_each_other();
    plan->looks_for_devices_ = settings.device_check;
    plan->opens_handles_ = settings.device_path != Settings::DevicePath::staging;
    MpiExecutor usual(Waiting(settings.waiting), MpiExecutor::ForCompositions{});
    usual.node().allow_rendezvous(plan->single_copies_work_);
    if (plan->wants_nccl_) {
        plan->nccl_ = nccl_of_plan(state, settings);
        plan->nccl_limit_ = messages_limits * std::chrono::seconds(settings.nccl_timeout_s);
        if (plan->nccl_) release_with_the_mpi();
        plan->by_messages_ = plan->bound_;
        for (execute::BoundStep& step : plan->by_messages_.steps) step.nccl = false;
        execute::choose_transports(plan->by_messages_, usual.transports(), state.job(), plan->program_.rank);
        if (!plan->nccl_) plan->bound_ = std::exchange(plan->by_messages_, {});
    }
    execute::choose_transports(plan->bound_, usual.transports(), state.job(), plan->program_.rank);
    plan->device_messages_ = std::count_if(plan->bound_.steps.begin(), plan->bound_.steps.end(), [](const auto& step) {
        return plan::is_message(step.kind) &&
               (step.transport == MpiExecutor::ipc_index || step.transport == MpiExecutor::nccl_index);
    });
    plan->single_copies_ = std::count_if(plan->bound_.steps.begin(), plan->bound_.steps.end(), [](const auto& step) {
        return plan::is_message(step.kind) && step.transport == MpiExecutor::node_index;
    });
    return plan;
}

ComposedRun::ComposedRun(std::shared_ptr<const ComposedPlan> plan, const std::vector<void*>& buffers)
    : plan_(std::move(plan)), executor_(Waiting(plan_->waiting_), MpiExecutor::ForCompositions{}) {
    if (buffers.size() != plan_->buffers())
        fail("the plan has ", plan_->buffers(), " buffers and ", buffers.size(), " are bound");
    for (std::size_t i = 0; i < buffers.size(); ++i) {
        if (!buffers[i] && plan_->buffer_bytes(i) > 0)
            fail("buffer '", plan_->buffer_name(i), "' of ", plan_->buffer_bytes(i), " bytes is null");
        bases_.push_back(static_cast<char*>(buffers[i]));
    }
    bases_.resize(std::max<std::size_t>(2, bases_.size()));
    for (const MPI_Op op : plan_->ops_) operations_.emplace_back(op, plan_->type_);
    memory_.use(operations_.data());
    find_devices();
    executor_.node().allow_rendezvous(plan_->single_copies_work_);
    prepare();
    // They are followed by the tags of the single copies' acknowledgements, and of payload that is sent after all, and
    // of the agreements on NCCL.
    const std::int64_t of_messages = plan_->wants_single_copies_ || plan_->wants_ipc_ ? 3 * plan_->tags_ : plan_->tags_;
    const auto tags = plan_->state_.tags.lend(plan_->nccl_ ? of_messages + NcclRun::tags : of_messages);
    if (!tags) fail("too many bound plans on a communicator; free some");
    tags_ = *tags;
    if (plan_->nccl_) nccl_run_.emplace(plan_->nccl_, plan_->state_, tags_.first + static_cast<int>(of_messages));
}

/// Buffers stay where they are, so this is found out once.
void ComposedRun::find_devices() {
    if (!plan_->looks_for_devices_ || !device::driver_loaded()) return;
    on_device_.resize(bases_.size());
    for (std::size_t i = 0; i < plan_->buffers(); ++i) {
        if (!bases_[i] || plan_->buffer_bytes(i) == 0) continue;
        const device::Place place = device::place_of(bases_[i]);
        if (!place.on_device()) continue;
        if (plan_->nccl_) {
            const device::Place& nccl = plan_->nccl_->handle->place();
            if (place.driver != nccl.driver || place.device != nccl.device)
                fail("buffer '", plan_->buffer_name(i), "' lies on ", place.driver->name(), " device ", place.device,
                     " where the plan's NCCL is for device ", nccl.device,
                     "; make the plan with the buffers' device current, or without @nccl");
        }
        if (const device::Status status = device_memory_.add(bases_[i], plan_->buffer_bytes(i), place))
            fail("buffer '", plan_->buffer_name(i), "' lies on a device whose driver gives no queue for it: ", status);
        on_device_[i] = true;
    }
    if (!device_memory_.any()) return;
    device_memory_.use(memory_, plan_->opens_handles_ ? 0 : INT64_MAX);
    for (const Operation& operation : operations_)
        if (operation.valid()) device_memory_.prepare_reductions(operation.layout().extent);
    release_with_the_mpi();
}

/// Takes all memory, also for what follows a failure of NCCL: a rank that got none only then would leave others waiting
/// for its messages.
void ComposedRun::prepare() {
    usual_.program = &plan_->bound_;
    if (plan_->nccl_) by_messages_.program = &plan_->by_messages_;
    if (device_memory_.any()) {
        take_scratch();
        stage(usual_);
        if (by_messages_.program) stage(by_messages_);
        take_pinned();
    }
    if (by_messages_.program) use(by_messages_);
    use(usual_);
}

/// For the next run. Allocates nothing for a variant that it was called with before.
void ComposedRun::use(const Variant& variant) {
    variant_ = &variant;
    execute::Workspace lent;
    if (device_memory_.any()) {
        lent = {scratch_, pinned_.block.data};
        if (!lent.scratch) lent = {pinned_.block.data, pinned_.block.data + aligned(variant.bound().scratch_bytes)};
    }
    executor_.prepare(variant.bound(), lent);
}

void ComposedRun::stage(Variant& variant) {
    variant.staged = *variant.program;
    execute::pack_messages(
        *variant.staged,
        [&](plan::Buffer buffer) {
            return plan::is_scratch(buffer) ? scratch_ != nullptr : on_device_[plan::caller_index(buffer)];
        },
        plan_->opens_handles_ ? 1U << MpiExecutor::ipc_index : 0U, 1U << MpiExecutor::nccl_index);
}

void ComposedRun::take_pinned() {
    std::int64_t bytes = 0;
    for (const Variant* variant : {&usual_, &by_messages_})
        if (variant->staged)
            bytes = std::max(bytes, aligned(variant->staged->scratch_bytes) + variant->staged->staging_bytes);
    pinned_.block = device::Resources::instance().take(device_memory_.place(), bytes);
    device::Resources::instance().pin(pinned_.block);
}

/// Partial results that come from devices stay on this rank's, where they are combined. Else scratch is the host's,
/// from where and to which all other messages go.
void ComposedRun::take_scratch() {
    for (std::size_t i = 0; i < operations_.size(); ++i)
        if (operations_[i].handle() != MPI_OP_NULL && !device_memory_.has_kernel(static_cast<std::uint8_t>(i))) return;
    constexpr std::uint32_t between_devices = 1U << MpiExecutor::ipc_index | 1U << MpiExecutor::nccl_index;
    const execute::BoundProgram& program = *usual_.program;
    if (plan_->opens_handles_ && (program.transports & between_devices) != 0)
        scratch_ = device_memory_.scratch(program.scratch_bytes);
}

ComposedRun::~ComposedRun() {
    wait();
    plan_->state_.tags.give_back(tags_);
    if (!device_memory_.any()) return;
    device_memory_.close();
    pinned_.give_back();
    // The MPI's end has given back all that was idle by then.
    int ended = 0;
    PMPI_Finalized(&ended);
    if (ended || plan_->ends_ != Process::instance().ends()) device::Resources::instance().release();
}

int ComposedRun::start() {
    Background& background = Background::instance();
    const auto lock = background.lock();
    if (running_) return MPI_ERR_PENDING;
    device_error_ = nullptr;
    nccl_error_.clear();
    code_ = MPI_SUCCESS;
    if (nccl_run_) {
        mode_ = NcclRun::Mode::not_yet;
        executed_ = false;
        nccl_run_->start();
        begin_as_agreed();
    } else {
        code_ = begin();
        if (code_ != MPI_SUCCESS) {
            ended();
            return code_;
        }
    }
    running_ = true;
    background.add(*this);
    return MPI_SUCCESS;
}

int ComposedRun::begin() {
    executor_.messages().use(plan_->state_.shadow_comm(), nullptr);
    execute::Environment environment;
    environment.bases = {bases_[0], bases_[1], bases_.data() + 2};
    environment.memory = &memory_;
    if (device_memory_.any()) environment.memory = &device_memory_;
    environment.first_tag = tags_.first;
    environment.control_tags = static_cast<int>(plan_->tags_);
    return mpi_code(executor_.begin(variant_->bound(), environment));
}

void ComposedRun::begin_as_agreed() {
    mode_ = nccl_run_->look();
    if (mode_ == NcclRun::Mode::not_yet) return;
    executor_.nccl().use(mode_ == NcclRun::Mode::by_nccl ? &nccl_run_->handle() : nullptr, plan_->nccl_limit_);
    if (mode_ == NcclRun::Mode::by_messages && variant_ != &by_messages_) use(by_messages_);
    code_ = begin();
    executed_ = code_ != MPI_SUCCESS;
}

bool ComposedRun::progress() {
    if (nccl_run_) return progress_as_agreed();
    bool done = false;
    code_ = mpi_code(executor_.progress(done));
    if (done) ended();
    return done;
}

bool ComposedRun::progress_as_agreed() {
    using device::Progress;
    execute::NcclTransport& nccl = executor_.nccl();
    if (mode_ == NcclRun::Mode::not_yet) begin_as_agreed();
    Progress mine = Progress::under_way;
    if (mode_ != NcclRun::Mode::not_yet) {
        if (nccl_run_->some_failed() && mode_ != NcclRun::Mode::by_messages) nccl.give_up(elsewhere);
        nccl.count_time(nccl_run_->all_started());
        if (!executed_) code_ = mpi_code(executor_.progress(executed_));
        if (executed_) mine = Progress::done;
        if (code_ != MPI_SUCCESS || !nccl.why().empty()) mine = Progress::failed;
    }
    if (!nccl_run_->step(mine) || !executed_) return false;
    if (!nccl_run_->end(mode_)) note_failure();
    ended();
    return true;
}

void ComposedRun::note_failure() {
    const std::string& why = executor_.nccl().why();
    const bool in_order = nccl_run_->in_same_order();
    if (code_ != MPI_SUCCESS || (mode_ == NcclRun::Mode::by_messages && in_order)) {
        if (code_ == MPI_SUCCESS) code_ = MPI_ERR_OTHER;
        return;
    }
    code_ = MPI_ERR_OTHER;
    // This rank's part may have been done when another one failed.
    const bool knows = mode_ == NcclRun::Mode::by_nccl && !why.empty();
    nccl_error_ = !in_order ? "the ranks have started runs with @nccl in different orders" : knows ? why : elsewhere;
    if (nccl_error_ != elsewhere)
        Process::instance().report().note(base::cat("NCCL isn't used any more by the plans of a communicator of ",
                                                    plan_->state_.size(), " ranks: ", nccl_error_));
}

void ComposedRun::ended() {
    running_ = false;
    Process::instance().report().refused_reads.add(executor_.take_refusals());
    if (!device_memory_.any()) return;
    const execute::DeviceMemory::Counts counts = device_memory_.take_counts();
    composed_device_counts.calls.fetch_add(1, std::memory_order_relaxed);
    composed_device_counts.bytes_read.fetch_add(counts.bytes_read, std::memory_order_relaxed);
    composed_device_counts.bytes_written.fetch_add(counts.bytes_written, std::memory_order_relaxed);
    if (executor_.ipc().take_copied() > 0) composed_device_counts.in_place.fetch_add(1, std::memory_order_relaxed);
    device_error_ = device_memory_.take_failure();
    if (!device_error_) return;
    composed_device_counts.failures.fetch_add(1, std::memory_order_relaxed);
    if (code_ == MPI_SUCCESS) code_ = MPI_ERR_OTHER;
}

int ComposedRun::test(bool& done) {
    Background& background = Background::instance();
    const auto lock = background.lock();
    if (running_) background.progress_all();
    done = !running_;
    const int code = code_;
    if (done) code_ = MPI_SUCCESS;
    return code;
}

void ComposedRun::finish_alone() {
    Background& background = Background::instance();
    const auto lock = background.lock();
    if (!running_ || !background.remove_if_alone(*this)) return;
    code_ = mpi_code(executor_.finish());
    ended();
}

int ComposedRun::wait() {
    if (plan_->may_block_ && !nccl_run_) finish_alone();
    node::SpinWait spin_wait(2, 1);
    bool done = false;
    int code = MPI_SUCCESS;
    for (spin_wait.reset(); (code = test(done)), !done; spin_wait.pause()) {
    }
    return code;
}

}  // namespace palmette::runtime
