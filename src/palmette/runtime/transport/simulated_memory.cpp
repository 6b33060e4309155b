#include "palmette/runtime/transport/simulated_memory.hpp"

#if defined(PALMETTE_ABI_SMPI)

#include <algorithm>
#include <cstdlib>
#include <unordered_map>
#include <utility>
#include <vector>

#include <simgrid/s4u/Actor.hpp>
#include <simgrid/s4u/Engine.hpp>
#include <simgrid/s4u/Exec.hpp>
#include <simgrid/s4u/Host.hpp>
#include <simgrid/s4u/Link.hpp>
#include <simgrid/s4u/Semaphore.hpp>

#include "palmette/base/error.hpp"
#include "palmette/runtime/transport/outstanding.hpp"

namespace palmette::runtime {

namespace s4u = simgrid::s4u;

namespace {

/// Where no trial can tell: from here on single copy wins it wherever it isn't much slower.
constexpr std::int64_t simulated_single_copy_from = 64 << 10;

double host_property(const s4u::Host& host, const char* name) {
    const char* text = host.get_property(name);
    if (!text) base::fail("host ", host.get_cname(), " of the simulated platform has no property `", name, "`");
    return std::strtod(text, nullptr);
}

/// Copy costs on this rank's host: seconds, and bytes per second of one core.
struct CopyCosts {
    double flag_s, copy, single_copy;

    static const CopyCosts& here() {
        static const CopyCosts costs = [] {
            const s4u::Host& host = *s4u::Host::current();
            return CopyCosts{host_property(host, "flag_latency_s"), host_property(host, "copy_bytes_per_s"),
                             host_property(host, "single_copy_bytes_per_s")};
        }();
        return costs;
    }
};

/// The host's speed is the rate of its memory: "flops" are bytes.
void move_bytes(std::int64_t bytes, double bytes_per_s) {
    if (bytes > 0) s4u::this_actor::exec_init(static_cast<double>(bytes))->set_bound(bytes_per_s)->wait();
}

bool is_read_in_place(const execute::Executor& executor, const execute::BoundStep& step) {
    return !step.copied && step.piece_count == 1 && step.bytes > node::Exposure::inline_bytes &&
           step.bytes >= executor.environment().single_copy_from;
}

void see_flag() { s4u::this_actor::sleep_for(CopyCosts::here().flag_s); }

/// Memory of the other ranks, which are in this process.
class SameProcess final : public node::SharedAttacher {
  public:
    char* attach(int, std::uint64_t address, std::int64_t) override { return reinterpret_cast<char*>(address); }
    void detach(char*, std::int64_t) override {}
};

}  // namespace

/// What a rank waits for. Others read it to wake it.
struct SimulatedMemory::Waiter {
    s4u::SemaphorePtr wakes = s4u::Semaphore::create(0);
    const s4u::Host* host = s4u::Host::current();
    int me = 0;  ///< member of the node
    bool sleeps = false;
    bool changed = false;  ///< since it was last found unchanged
    bool for_window = false, for_readers = false;
    std::vector<char> for_exposures;  ///< by member

    /// Whether it slept, so that `wakes` has to be released.
    bool is_woken() {
        changed = true;
        return std::exchange(sleeps, false);
    }
    void sleep() {
        sleeps = !changed;
        if (sleeps) wakes->acquire();
        changed = for_window = for_readers = false;
        std::fill(for_exposures.begin(), for_exposures.end(), char{0});
    }
};

/// Ranks that wait, by host. Each rank has its own copy of this library, so the table lives in the simulator.
struct SimulatedMemory::Waiters {
    std::unordered_map<const s4u::Host*, std::vector<Waiter*>> of_host;
    std::vector<Waiter*> for_messages;

    static Waiters& all() {
        s4u::Host* const place = s4u::Engine::get_instance()->get_all_hosts().front();
        if (auto* known = place->get_data<Waiters>()) return *known;
        auto* const made = new Waiters;  // lives as long as the simulator
        place->set_data(made);
        s4u::Link::on_communication_state_change_cb([made](const auto&, auto) {
            for (Waiter* waiter : made->for_messages)
                if (waiter->is_woken()) waiter->wakes->release();
            made->for_messages.clear();
        });
        return *made;
    }
};

/// Wakes the host's ranks that wait for something that this one has changed. Numbers of members are those of one
/// communicator: a rank that waits in another one is woken in vain.
template <class Waits>
void SimulatedMemory::wake(Waits waits) const {
    // Releasing lets others run, who may change the list.
    std::vector<s4u::SemaphorePtr> slept;
    for (Waiter* other : *neighbours_)
        if (waits(*other) && other->is_woken()) slept.push_back(other->wakes);
    for (const s4u::SemaphorePtr& one : slept) one->release();
}

SimulatedMemory::SimulatedMemory(execute::Messages& messages) : execute::NodeTransport(messages) {}

SimulatedMemory::~SimulatedMemory() {
    if (waiter_) std::erase(*neighbours_, waiter_.get());
}

bool SimulatedMemory::begin(execute::Executor& executor, int& error) {
    if (!waiter_) {
        waiter_ = std::make_unique<Waiter>();
        neighbours_ = &Waiters::all().of_host[waiter_->host];
        neighbours_->push_back(waiter_.get());
    }
    executor_ = &executor;
    if (const node::SharedNode* shared = executor.environment().shared) {
        waiter_->me = shared->me();
        waiter_->for_exposures.resize(static_cast<std::size_t>(shared->members()), 0);
    }
    const bool begun = execute::NodeTransport::begin(executor, error);
    if (!begun) waiter_->for_window = true;
    return begun;
}

int SimulatedMemory::start(execute::Executor& executor, std::uint32_t index, bool last, execute::Started& started) {
    const execute::BoundStep& step = executor.step(index);
    if (step.kind != plan::StepKind::expose) {
        bool done = false;
        const int error = pull(executor, index, done);
        started = done ? execute::Started::done : execute::Started::polled;
        return error;
    }
    if (!is_read_in_place(executor, step) && step.bytes > node::Exposure::inline_bytes)
        move_bytes(step.bytes, CopyCosts::here().copy);
    const int error = execute::NodeTransport::start(executor, index, last, started);
    const auto me = static_cast<std::size_t>(waiter_->me);
    wake([me](const Waiter& other) { return me < other.for_exposures.size() && other.for_exposures[me] != 0; });
    return error;
}

int SimulatedMemory::poll(execute::Executor& executor, std::uint32_t index, bool& done) {
    if (executor.step(index).kind != plan::StepKind::expose) return pull(executor, index, done);
    const int error = execute::NodeTransport::poll(executor, index, done);
    waiter_->for_readers = waiter_->for_readers || !done;
    if (done && is_read_in_place(executor, executor.step(index))) see_flag();
    return error;
}

int SimulatedMemory::pull(execute::Executor& executor, std::uint32_t index, bool& done) {
    const execute::BoundStep& step = executor.step(index);
    const node::SharedNode& shared = *executor.environment().shared;
    const node::Exposure* exposure = shared.find_exposure(step.peer, static_cast<unsigned>(step.tag));
    done = exposure != nullptr;
    if (!done) {
        waiter_->for_exposures[static_cast<std::size_t>(step.peer)] = 1;
        return 0;
    }
    see_flag();
    // What lies in the flag's own cache line has come with it.
    if (exposure->kind != node::ExposureKind::in_entry)
        move_bytes(step.bytes, exposure->kind == node::ExposureKind::in_ring ? CopyCosts::here().copy
                                                                             : CopyCosts::here().single_copy);
    const bool in_place = exposure->in_place();
    const int error = execute::NodeTransport::poll(executor, index, done);
    const int owner = step.peer;
    if (in_place) wake([owner](const Waiter& other) { return other.for_readers && other.me == owner; });
    return error;
}

void SimulatedMemory::end(execute::Executor& executor, bool failed) {
    execute::NodeTransport::end(executor, failed);
    if (executor.environment().shared) wake([](const Waiter& other) { return other.for_window; });
}

bool SimulatedMemory::pause() {
    bool messages = has_outstanding();
    for (const auto& transport : executor_->transports()) messages = messages || transport->pending() > 0;
    std::vector<Waiter*>& for_messages = Waiters::all().for_messages;
    if (messages) for_messages.push_back(waiter_.get());
    waiter_->sleep();
    if (messages) std::erase(for_messages, waiter_.get());
    return has_outstanding();
}

std::int64_t share_simulated(node::SharedNode& node) {
    node.map_with(std::make_unique<SameProcess>());
    return simulated_single_copy_from;
}

}  // namespace palmette::runtime

#endif
