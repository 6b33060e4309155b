#include "palmette/device/nccl.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <climits>
#include <condition_variable>
#include <cstring>
#include <string_view>
#include <system_error>
#include <thread>
#include <vector>

#include "palmette/base/text.hpp"

namespace palmette::device {
namespace {

using Clock = std::chrono::steady_clock;
using Result = int;
constexpr Result success = 0, in_progress = 7;
constexpr int undefined = INT_MIN;

struct Id {
    char bytes[128];
};

/// ncclConfig_t of 2.14, which later versions read as such.
struct Config {
    std::size_t size = sizeof(Config);
    unsigned magic = 0xcafebeef;
    unsigned version = nccl_nonblocking_from;
    int blocking = 0;
    int unused = undefined;
};

}  // namespace

/// Prototypes as nccl.h has had them since 2.7, ncclComm_t and cudaStream_t as void*.
struct NcclApi {
    Result (*GetVersion)(int*);
    Result (*GetUniqueId)(Id*);
    const char* (*GetErrorString)(Result);
    Result (*CommInitRank)(void**, int, Id, int);
    Result (*CommInitRankConfig)(void**, int, Id, int, Config*);  ///< null where the version is older
    Result (*CommAbort)(void*);
    Result (*CommGetAsyncError)(void*, Result*);
    Result (*GroupStart)();
    Result (*GroupEnd)();
    Result (*Send)(const void*, std::size_t, int, int, void*, void*);
    Result (*Recv)(void*, std::size_t, int, int, void*, void*);
    Result (*AllReduce)(const void*, void*, std::size_t, int, int, void*, void*);
    Result (*Reduce)(const void*, void*, std::size_t, int, int, int, void*, void*);
    Result (*ReduceScatter)(const void*, void*, std::size_t, int, int, void*, void*);
    Result (*Broadcast)(const void*, void*, std::size_t, int, int, void*, void*);
    Result (*AllGather)(const void*, void*, std::size_t, int, void*, void*);
    int version = 0;

    bool load(void* library) {
        const auto get = [&](auto& function, const char* name) { return load_symbol(library, name, function); };
        get(CommInitRankConfig, "ncclCommInitRankConfig");
        return get(GetVersion, "ncclGetVersion") && get(GetUniqueId, "ncclGetUniqueId") &&
               get(GetErrorString, "ncclGetErrorString") && get(CommInitRank, "ncclCommInitRank") &&
               get(CommAbort, "ncclCommAbort") && get(CommGetAsyncError, "ncclCommGetAsyncError") &&
               get(GroupStart, "ncclGroupStart") && get(GroupEnd, "ncclGroupEnd") && get(Send, "ncclSend") &&
               get(Recv, "ncclRecv") && get(AllReduce, "ncclAllReduce") && get(Reduce, "ncclReduce") &&
               get(ReduceScatter, "ncclReduceScatter") && get(Broadcast, "ncclBroadcast") &&
               get(AllGather, "ncclAllGather") && GetVersion(&version) == success;
    }
};

namespace {

std::mutex finding;
std::atomic<NcclApi*> found{nullptr};  ///< never destroyed
bool searched = false;

NcclApi& api() { return *found.load(std::memory_order_acquire); }

bool has_cuda() {
    for (Driver* driver : all_drivers())
        if (std::string_view(driver->name()) == "cuda") return true;
    return false;
}

/// Calls `body` in a thread of its own, and waits for at most so long. Whether it has ended; `body` must own all that
/// it touches.
bool ends_in_time(std::function<void()> body, std::chrono::seconds limit) {
    struct State {
        std::mutex mutex;
        std::condition_variable changed;
        bool ended = false;
    };
    auto state = std::make_shared<State>();
    try {
        std::thread([state, body = std::move(body)] {
            body();
            const std::lock_guard lock(state->mutex);
            state->ended = true;
            state->changed.notify_all();
        }).detach();
    } catch (const std::system_error&) {
        return false;
    }
    std::unique_lock lock(state->mutex);
    return state->changed.wait_for(lock, limit, [&] { return state->ended; });
}

/// Between polls of a rank that waits.
constexpr std::chrono::milliseconds longest_pause{100};

/// A communicator that can't be ended, or a queue that is still busy, is left as it is after so long.
constexpr std::chrono::seconds abort_limit{10};

struct Scratch {
    Place place;
    void* memory;
    std::int64_t bytes;
};
std::mutex listing;
std::vector<Scratch>& idle_scratch() {
    static auto* all = new std::vector<Scratch>;
    return *all;
}
std::vector<Nccl*>& open_ones() {
    static auto* all = new std::vector<Nccl*>;
    return *all;
}

}  // namespace

bool find_nccl(const std::string& path) {
    if (found.load(std::memory_order_acquire)) return true;
    const std::lock_guard lock(finding);
    if (found.load(std::memory_order_relaxed) || !has_cuda()) return found.load(std::memory_order_relaxed) != nullptr;
    constexpr const char* name = "libnccl.so.2";
    void* library = path.empty() ? dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD) : nullptr;
    // The program may load its own later, which the loader's search doesn't find.
    if (!library && !searched) library = dlopen(path.empty() ? name : path.c_str(), RTLD_NOW | RTLD_LOCAL);
    searched = true;
    auto loaded = std::make_unique<NcclApi>();
    if (library && loaded->load(library)) found.store(loaded.release(), std::memory_order_release);
    return found.load(std::memory_order_relaxed) != nullptr;
}

int nccl_version() { return found.load(std::memory_order_acquire) ? api().version : 0; }

Status make_nccl_id(NcclId& id) {
    Id made;
    const Result result = api().GetUniqueId(&made);
    std::memcpy(id.data(), made.bytes, id.size());
    return result == success ? nullptr : api().GetErrorString(result);
}

std::optional<NcclOperator> nccl_operator(kernels::Operator op) {
    switch (op) {
        case kernels::Operator::sum:
            return NcclOperator::sum;
        case kernels::Operator::prod:
            return NcclOperator::prod;
        case kernels::Operator::max:
            return NcclOperator::max;
        case kernels::Operator::min:
            return NcclOperator::min;
        default:
            return std::nullopt;
    }
}

std::optional<int> nccl_type(kernels::Element element) {
    using kernels::Element;
    switch (element) {
        case Element::int8:
            return 0;
        case Element::uint8:
            return 1;
        case Element::int32:
            return 2;
        case Element::uint32:
            return 3;
        case Element::int64:
            return 4;
        case Element::uint64:
            return 5;
        case Element::float16:
            return 6;
        case Element::float32:
            return 7;
        case Element::float64:
            return 8;
        case Element::bfloat16:
            return nccl_version() >= 21000 ? std::optional(9) : std::nullopt;
        default:
            return std::nullopt;
    }
}

/// By a thread that may outlive the object that began it.
struct Nccl::Making {
    std::mutex mutex;
    bool ended = false, abandoned = false;
    Result result = success;
    Status status = nullptr;
    void* handle = nullptr;
};

Nccl::Nccl(const Place& place, int ranks, int rank, const NcclId& id, std::chrono::seconds limit, Order order)
    : place_(place), end_(Clock::now() + limit) {
    {
        const std::lock_guard lock(listing);
        open_ones().push_back(this);
    }
    Id to;
    std::memcpy(to.bytes, id.data(), id.size());
    Status no_queue = Resources::instance().take(place_, lane_);
    if (!no_queue && order == Order::apart) no_queue = place_.driver->open_queue_apart(place_, apart_);
    if (no_queue) {
        fail(base::cat("a stream: ", no_queue));
        return;
    }
    if (api().version >= nccl_nonblocking_from && api().CommInitRankConfig) {
        Config config;
        Result result = success;
        const Status status = place_.driver->within(
            place_, [&] { result = api().CommInitRankConfig(&handle_, ranks, to, rank, &config); });
        if (status)
            fail(base::cat("the device: ", status));
        else
            note("ncclCommInitRankConfig", result);
        return;
    }
    making_ = std::make_shared<Making>();
    const auto make = [making = making_, place, ranks, rank, to] {
        void* handle = nullptr;
        Result result = success;
        const Status status =
            place.driver->within(place, [&] { result = api().CommInitRank(&handle, ranks, to, rank); });
        const std::lock_guard lock(making->mutex);
        making->ended = true;
        making->result = result;
        making->status = status;
        making->handle = handle;
        if (making->abandoned && handle) place.driver->within(place, [&] { api().CommAbort(handle); });
    };
    try {
        std::thread(make).detach();
    } catch (const std::system_error&) {
        fail("no thread to make a communicator in");
    }
}

Nccl::~Nccl() {
    {
        const std::lock_guard lock(listing);
        std::erase(open_ones(), this);
    }
    abort();
}

void Nccl::abort_all() {
    std::vector<Nccl*> all;
    {
        const std::lock_guard lock(listing);
        all = open_ones();
    }
    for (Nccl* one : all) one->abort();
    const std::lock_guard lock(listing);
    for (const Scratch& one : idle_scratch()) one.place.driver->release(one.place, one.memory);
    idle_scratch().clear();
}

void Nccl::fail(const std::string& why) {
    if (!failed_) why_ = why;
    failed_ = true;
}

bool Nccl::note(const char* function, int result) {
    if (result == success || result == in_progress) return true;
    fail(base::cat(function, ": ", api().GetErrorString(result)));
    return false;
}

bool Nccl::is_ready() {
    Result state = success;
    Result asked = success;
    const Status status = place_.driver->within(place_, [&] { asked = api().CommGetAsyncError(handle_, &state); });
    if (status) fail(base::cat("the device: ", status));
    return note("ncclCommGetAsyncError", asked) && note("NCCL", state) && !failed_ && state == success;
}

Progress Nccl::join() {
    if (failed_) return Progress::failed;
    bool ready = false;
    if (making_) {
        const std::lock_guard lock(making_->mutex);
        ready = making_->ended;
        if (ready) {
            handle_ = making_->handle;
            if (making_->status) fail(base::cat("the device: ", making_->status));
            note("ncclCommInitRank", making_->result);
        }
    } else {
        ready = is_ready();
    }
    if (ready && !failed_) {
        making_.reset();
        return Progress::done;
    }
    if (!failed_ && Clock::now() > end_) fail("its communicator isn't complete after the time limit");
    return failed_ ? Progress::failed : Progress::under_way;
}

template <class Call>
void Nccl::add(const char* function, Call call) {
    if (failed_) return;
    Result result = success;
    const Status status = place_.driver->within(place_, [&] { result = call(); });
    if (status) return fail(base::cat("the device: ", status));
    note(function, result);
}

Status Nccl::follow_program() {
    if (!apart_ || closed_) return nullptr;
    const Event event = Resources::event(lane_, 1);
    const Status status = event ? place_.driver->record(place_, event, lane_.queue) : "no event";
    return status ? status : place_.driver->wait_in(place_, apart_, event);
}

void Nccl::begin() {
    committed_ = recorded_ = false;
    add("ncclGroupStart", [] { return api().GroupStart(); });
}
void Nccl::all_reduce(const void* from, void* to, std::int64_t count, int type, NcclOperator op) {
    add("ncclAllReduce", [&] {
        return api().AllReduce(from, to, static_cast<std::size_t>(count), type, static_cast<int>(op), handle_, queue());
    });
}
void Nccl::reduce(const void* from, void* to, std::int64_t count, int type, NcclOperator op, int root) {
    add("ncclReduce", [&] {
        return api().Reduce(from, to, static_cast<std::size_t>(count), type, static_cast<int>(op), root, handle_,
                            queue());
    });
}
void Nccl::reduce_scatter(const void* from, void* to, std::int64_t count, int type, NcclOperator op) {
    add("ncclReduceScatter", [&] {
        return api().ReduceScatter(from, to, static_cast<std::size_t>(count), type, static_cast<int>(op), handle_,
                                   queue());
    });
}
void Nccl::broadcast(const void* from, void* to, std::int64_t bytes, int root) {
    add("ncclBroadcast",
        [&] { return api().Broadcast(from, to, static_cast<std::size_t>(bytes), nccl_bytes, root, handle_, queue()); });
}
void Nccl::all_gather(const void* from, void* to, std::int64_t bytes) {
    add("ncclAllGather",
        [&] { return api().AllGather(from, to, static_cast<std::size_t>(bytes), nccl_bytes, handle_, queue()); });
}
void Nccl::send(const void* from, std::int64_t bytes, int peer) {
    add("ncclSend",
        [&] { return api().Send(from, static_cast<std::size_t>(bytes), nccl_bytes, peer, handle_, queue()); });
}
void Nccl::receive(void* to, std::int64_t bytes, int peer) {
    add("ncclRecv",
        [&] { return api().Recv(to, static_cast<std::size_t>(bytes), nccl_bytes, peer, handle_, queue()); });
}

void Nccl::commit(std::int64_t bytes, std::chrono::seconds limit) {
    // Also after a failure of a part: this thread's group must end.
    Result result = success;
    const Status status = place_.driver->within(place_, [&] { result = api().GroupEnd(); });
    if (status) fail(base::cat("the device: ", status));
    note("ncclGroupEnd", result);
    committed_ = true;
    allowed_ = limit + std::chrono::microseconds(bytes / 50);
    count_from_now();
}

void Nccl::count_from_now() {
    last_poll_ = Clock::now();
    end_ = last_poll_ + allowed_;
}

Progress Nccl::poll() {
    if (failed_ || closed_) return Progress::failed;
    // What this rank does elsewhere doesn't count: its commands may have to be issued yet.
    const Clock::time_point now = Clock::now();
    if (now - last_poll_ > longest_pause) end_ += now - last_poll_;
    last_poll_ = now;
    // Commands of a nonblocking communicator may reach the queue later.
    const bool ready = is_ready();
    if (ready && !recorded_) {
        const Event event = Resources::event(lane_, 0);
        const Status status = event ? place_.driver->record(place_, event, queue()) : "no event";
        if (status) fail(base::cat("an event: ", status));
        recorded_ = !failed_;
    }
    if (recorded_ && !failed_) {
        bool done = false;
        const Status status = place_.driver->query(place_, lane_.events[0], done);
        if (status)
            fail(base::cat("the device: ", status));
        else if (done)
            return Progress::done;
    }
    if (!failed_ && now > end_) fail("an operation isn't complete after the time limit");
    return failed_ ? Progress::failed : Progress::under_way;
}

void* Nccl::scratch(std::int64_t bytes) {
    if (scratch_ && scratch_bytes_ >= bytes) return scratch_;
    give_back_scratch();
    if (bytes > most_scratch) return nullptr;
    const std::lock_guard lock(listing);
    const auto fits = std::find_if(idle_scratch().begin(), idle_scratch().end(), [&](const Scratch& one) {
        return one.bytes >= bytes && same_queue(one.place, place_);
    });
    if (fits != idle_scratch().end()) {
        scratch_ = fits->memory;
        scratch_bytes_ = fits->bytes;
        idle_scratch().erase(fits);
        return scratch_;
    }
    const auto wanted = static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(bytes)));
    void* memory = nullptr;
    if (place_.driver->allocate(place_, wanted, memory)) return nullptr;
    scratch_ = memory;
    scratch_bytes_ = wanted;
    return scratch_;
}

void Nccl::give_back_scratch() {
    if (!scratch_) return;
    const std::lock_guard lock(listing);
    idle_scratch().push_back({place_, scratch_, scratch_bytes_});
    scratch_ = nullptr;
    scratch_bytes_ = 0;
}

Status Nccl::enqueue_copy(void* to, const void* from, std::int64_t bytes) {
    return closed_ ? "aborted" : place_.driver->copy(place_, queue(), to, from, bytes);
}

Status Nccl::begin_delivery(void* to, const void* from, std::int64_t bytes) {
    if (closed_) return "aborted";
    if (!deliveries_.queue)
        if (const Status status = Resources::instance().take(place_, deliveries_)) return status;
    return place_.driver->copy(place_, deliveries_.queue, to, from, bytes);
}

Status Nccl::finish_deliveries() { return closed_ ? "aborted" : place_.driver->synchronize(place_, deliveries_.queue); }

Status Nccl::copy(void* to, const void* from, std::int64_t bytes) {
    const Status status = begin_delivery(to, from, bytes);
    return status ? status : finish_deliveries();
}

void Nccl::abort() {
    if (closed_) return;
    closed_ = true;
    bool ended = true;
    if (making_) {
        const std::lock_guard lock(making_->mutex);
        making_->abandoned = true;
        handle_ = making_->ended ? making_->handle : nullptr;
    }
    if (handle_)
        ended = ends_in_time(
            [place = place_, handle = handle_, queue = queue()] {
                place.driver->within(place, [&] { api().CommAbort(handle); });
                place.driver->synchronize(place, queue);
            },
            abort_limit);
    handle_ = nullptr;
    // A queue that is still busy, and what it may write to, stay.
    left_busy_ = !ended;
    if (!ended) return;
    give_back_scratch();
    if (apart_) place_.driver->close_queue(place_, std::exchange(apart_, nullptr));
    if (deliveries_.queue) Resources::instance().give_back(std::move(deliveries_), failed_);
    if (lane_.queue) Resources::instance().give_back(std::move(lane_), failed_);
}

}  // namespace palmette::device
