// libnccl.so.2 of our own, over the fake libcuda: operations run on its streams, on its memory, between processes of
// one machine. Sends, receives and collectives that lack a partner hang until ncclCommAbort, as they do in the real
// one.
//
// PALMETTE_FAKE_NCCL="key=value,key,...": version=21803, multi (ranks may share a device), hang=FUNCTION:N (its N-th
// call never ends), die=FUNCTION:N (the process is killed), fail=FUNCTION:N[:RESULT],
// slow_us (how long initialization takes).
//
// Long because all functions share groups and tasks, which nothing else uses.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "cuda_types.hpp"
#include "nccl_shared.hpp"
#include "settings.hpp"

namespace {

using namespace fake_nccl;

enum NcclResult : int {
    nccl_success = 0,
    unhandled_cuda_error = 1,
    system_error = 2,
    internal_error = 3,
    invalid_argument = 4,
    invalid_usage = 5,
    remote_error = 6,
    in_progress = 7,
};

struct UniqueId {
    char bytes[128];
};

// The id's content.
struct Meeting {
    char name[8];
    int process, file;
    std::uint64_t inode;
};
constexpr char meeting_name[8] = "fknccl";

/// The beginning of ncclConfig_t.
struct Config {
    std::size_t size;
    unsigned magic;
    unsigned version;
    int blocking;
};
constexpr unsigned config_magic = 0xcafebeef;

struct Settings {
    int version = 22703;
    bool multi = false;
    unsigned slow_us = 0;
    std::vector<fake::Failure> deaths, hangs, failures;
};

/// What the fake libcuda has for us.
struct Cuda {
    int (*enqueue)(void*, int (*)(void*), void*) = nullptr;
    void* (*range)(const void*, std::size_t) = nullptr;
    int (*device)() = nullptr;
    int (*reduce)(const char*, const void*, const void*, void*, std::size_t) = nullptr;

    bool complete() const { return enqueue != nullptr && range != nullptr && device != nullptr && reduce != nullptr; }
};

}  // namespace

struct Communicator {
    Shared* shared = nullptr;
    int rank = 0, ranks = 0, device = 0;
    bool blocking = true;
    bool hangs = false;  ///< its initialization
    std::atomic<bool> aborted{false};
    std::atomic<int> error{0};
    std::atomic<bool> told_of_error{false};
    std::atomic<bool> busy{false};  ///< to be told once that an operation is in progress
    std::chrono::steady_clock::time_point ready_at;
    int own_file = -1;

    ~Communicator() { munmap(shared, sizeof(Shared)); }
    /// in_progress, or how initialization ended.
    int state();
};
using CommunicatorPointer = std::shared_ptr<Communicator>;

namespace {

struct Reduction {
    std::string kernel;
    bool average = false;
    int type = 0;
};

/// Stages of messages, each followed by work on memory of the host.
struct Stage {
    std::vector<Transfer> transfers;
    std::function<void()> then;
};

struct Task {
    CommunicatorPointer communicator;
    std::vector<Stage> stages;
    std::size_t stage = 0;
    bool hangs = false;
};

struct State {
    std::mutex mutex;
    Settings settings;
    Cuda cuda;
    std::map<std::string, std::uint64_t> calls;
    std::map<Communicator*, CommunicatorPointer> communicators;
    std::string last_error;
    std::atomic<int> outstanding{0};
};
State* state = nullptr;

/// A grouped call, of a thread; without a destructor, see driver.cpp.
struct Group {
    int depth = 0;
    int result = nccl_success;
    std::vector<std::pair<void*, std::shared_ptr<Task>>> collectives;
    std::vector<std::pair<void*, std::shared_ptr<Task>>> messages;
    std::vector<CommunicatorPointer> joining;
};
thread_local Group* group = nullptr;

Settings read_settings() {
    constexpr const char* variable = "PALMETTE_FAKE_NCCL";
    Settings s;
    bool versioned = false;
    const char* text = std::getenv(variable);
    for (const std::string& part : fake::split(text ? text : "", ',')) {
        const std::size_t equals = part.find('=');
        const std::string key = part.substr(0, equals);
        const std::string value = equals == std::string::npos ? "1" : part.substr(equals + 1);
        if (key == "version") {
            s.version = std::atoi(value.c_str());
            versioned = true;
        } else if (key == "multi") {
            s.multi = std::atoi(value.c_str()) != 0;
        } else if (key == "slow_us") {
            s.slow_us = static_cast<unsigned>(std::atoi(value.c_str()));
        } else if (key == "hang") {
            s.hangs.push_back(fake::read_failure(variable, value));
        } else if (key == "die") {
            s.deaths.push_back(fake::read_failure(variable, value));
        } else if (key == "fail") {
            s.failures.push_back(fake::read_failure(variable, value));
            if (s.failures.back().result == 999) s.failures.back().result = system_error;
        } else {
            fake::refuse(variable, "'" + part + "' isn't known");
        }
    }
    if (s.multi && !versioned) s.version = 23003;
    return s;
}

__attribute__((constructor)) void begin() {
    state = new State;
    state->settings = read_settings();
}

void write_log() {
    const char* folder = std::getenv("PALMETTE_FAKE_CUDA_LOG");
    if (folder == nullptr || state->calls.empty()) return;
    const std::string path = std::string(folder) + "/" + std::to_string(getpid()) + ".nccl.json";
    const std::string unfinished = path + ".new";
    std::FILE* const file = std::fopen(unfinished.c_str(), "we");
    if (file == nullptr) return;
    std::fprintf(file, "{\"process\": %d, \"communicators\": %zu, \"calls\": {", getpid(), state->communicators.size());
    const char* between = "";
    for (const auto& [name, count] : state->calls) {
        std::fprintf(file, "%s\"%s\": %llu", between, name.c_str(), static_cast<unsigned long long>(count));
        between = ", ";
    }
    std::fputs("}}\n", file);
    std::fclose(file);
    std::rename(unfinished.c_str(), path.c_str());
}

// Work that is on streams must not run code that is gone. At the end of the process nobody runs it.
__attribute__((destructor)) void end() {
    {
        const std::lock_guard<std::mutex> lock(state->mutex);
        for (const auto& [handle, communicator] : state->communicators) communicator->aborted.store(true);
        write_log();
    }
    for (int waits = 0; state->outstanding.load() > 0 && waits < 100; ++waits) usleep(1000);
}

enum class Outcome { goes_on, fails, hangs };

/// Counts a call; what the settings want of it.
Outcome count(const char* function, int& result) {
    const std::lock_guard<std::mutex> lock(state->mutex);
    const std::uint64_t call = ++state->calls[function];
    const auto meant = [&](const fake::Failure& f) {
        return f.function == function && (f.call == 0 || f.call == call);
    };
    for (const fake::Failure& failure : state->settings.failures) {
        if (!meant(failure)) continue;
        result = failure.result;
        state->last_error = std::string(function) + " fails because PALMETTE_FAKE_NCCL says so";
        return Outcome::fails;
    }
    const auto& deaths = state->settings.deaths;
    if (std::any_of(deaths.begin(), deaths.end(), meant)) std::raise(SIGKILL);
    const auto& hangs = state->settings.hangs;
    return std::any_of(hangs.begin(), hangs.end(), meant) ? Outcome::hangs : Outcome::goes_on;
}

int say(int result, const std::string& why) {
    const std::lock_guard<std::mutex> lock(state->mutex);
    state->last_error = why;
    return result;
}

bool find_cuda() {
    const std::lock_guard<std::mutex> lock(state->mutex);
    if (state->cuda.complete()) return true;
    void* const library = dlopen("libcuda.so.1", RTLD_NOW);
    if (library == nullptr) return false;
    const auto find = [&](auto& function, const char* name) {
        function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
    };
    find(state->cuda.enqueue, "fake_cuda_enqueue");
    find(state->cuda.range, "fake_cuda_range");
    find(state->cuda.device, "fake_cuda_device");
    find(state->cuda.reduce, "fake_cuda_reduce");
    return state->cuda.complete();
}

CommunicatorPointer known(Communicator* handle) {
    const std::lock_guard<std::mutex> lock(state->mutex);
    const auto found = state->communicators.find(handle);
    return found == state->communicators.end() ? nullptr : found->second;
}

/// Files of ids that this process made: they are open until all ranks have joined.
std::map<std::pair<int, std::uint64_t>, int>& own_meetings() {
    static auto* meetings = new std::map<std::pair<int, std::uint64_t>, int>;
    return *meetings;
}

/// Called by streams: one round over the messages under way.
int step(void* argument) {
    auto* const held = static_cast<std::shared_ptr<Task>*>(argument);
    Task& task = **held;
    Communicator& communicator = *task.communicator;
    const auto finish = [&] {
        delete held;
        state->outstanding.fetch_sub(1);
        return 1;
    };
    if (communicator.aborted.load()) return finish();
    if (task.hangs || communicator.error.load() != 0) return 0;
    while (task.stage < task.stages.size()) {
        Stage& stage = task.stages[task.stage];
        bool done = true;
        // Messages between two ranks stay in order.
        std::array<bool, 2 * most_ranks> blocked{};
        for (Transfer& transfer : stage.transfers) {
            bool& behind = blocked[static_cast<std::size_t>(2 * transfer.peer + (transfer.sends ? 1 : 0))];
            if (!transfer.done && !behind) {
                const std::string wrong = transfer.move(*communicator.shared, communicator.rank);
                if (!wrong.empty()) {
                    std::fprintf(stderr, "fake nccl: %s\n", wrong.c_str());
                    communicator.error.store(invalid_usage);
                    return 0;
                }
            }
            behind = behind || !transfer.done;
            done = done && transfer.done;
        }
        if (!done) return 0;
        if (stage.then) stage.then();
        ++task.stage;
    }
    return finish();
}

int launch(void* stream, const std::shared_ptr<Task>& task) {
    auto* const held = new std::shared_ptr<Task>(task);
    state->outstanding.fetch_add(1);
    if (state->cuda.enqueue(stream, step, held) == 0) {
        if (!task->communicator->blocking) task->communicator->busy.store(true);
        return nccl_success;
    }
    delete held;
    state->outstanding.fetch_sub(1);
    return say(unhandled_cuda_error, "the stream isn't one");
}

int wait_for_all(const CommunicatorPointer& communicator) {
    while (communicator->state() == in_progress) usleep(100);
    return communicator->state();
}

/// The end of a call that isn't a group's member.
int end_group() {
    Group* const ended = group;
    group = nullptr;
    int result = ended->result;
    bool waits = false;
    for (const CommunicatorPointer& communicator : ended->joining) {
        if (!communicator->blocking) {
            waits = true;
        } else if (const int joined = wait_for_all(communicator); result == nccl_success) {
            result = joined;
        }
    }
    // Messages of one communicator on one stream are one task, in which none waits for another.
    std::vector<std::pair<void*, std::shared_ptr<Task>>> tasks = std::move(ended->collectives);
    const std::size_t collectives = tasks.size();
    for (auto& [stream, task] : ended->messages) {
        const auto same =
            std::find_if(tasks.begin() + static_cast<std::ptrdiff_t>(collectives), tasks.end(), [&](const auto& other) {
                return other.first == stream && other.second->communicator == task->communicator;
            });
        if (same == tasks.end()) {
            tasks.emplace_back(stream, task);
            continue;
        }
        same->second->hangs = same->second->hangs || task->hangs;
        std::vector<Transfer>& all = same->second->stages[0].transfers;
        all.insert(all.end(), task->stages[0].transfers.begin(), task->stages[0].transfers.end());
    }
    for (const auto& [stream, task] : tasks) {
        if (result == nccl_success) result = launch(stream, task);
        waits = waits || !task->communicator->blocking;
    }
    delete ended;
    return result == nccl_success && waits ? in_progress : result;
}

void begin_group() {
    if (group == nullptr) group = new Group;
    ++group->depth;
}

int leave_group(int result) {
    if (result != nccl_success && group->result == nccl_success) group->result = result;
    if (--group->depth > 0) return result;
    const int ended = end_group();
    return result != nccl_success ? result : ended;
}

constexpr std::array<const char*, 10> types{"i8", "u8", "i32", "u32", "i64", "u64", "f16", "f32", "f64", "bf16"};
constexpr std::array<std::size_t, 10> sizes{1, 1, 4, 4, 8, 8, 2, 4, 8, 2};

std::size_t size_of(int type) { return type >= 0 && type < 10 ? sizes[static_cast<std::size_t>(type)] : 0; }

bool reduction_of(int operation, int type, Reduction& reduction) {
    constexpr std::array<const char*, 5> operations{"sum", "prod", "max", "min", "sum"};
    if (operation < 0 || operation > 4 || size_of(type) == 0) return false;
    reduction.average = operation == 4;
    reduction.type = type;
    reduction.kernel = std::string("palmette_") + operations[static_cast<std::size_t>(operation)] + "_" +
                       types[static_cast<std::size_t>(type)];
    return !reduction.average || type == 7 || type == 8;
}

void divide(const Reduction& reduction, char* data, std::size_t count, int ranks) {
    for (std::size_t i = 0; i < count; ++i) {
        if (reduction.type == 7) {
            float value = 0;
            std::memcpy(&value, data + 4 * i, 4);
            value /= static_cast<float>(ranks);
            std::memcpy(data + 4 * i, &value, 4);
        } else {
            double value = 0;
            std::memcpy(&value, data + 8 * i, 8);
            value /= ranks;
            std::memcpy(data + 8 * i, &value, 8);
        }
    }
}

/// Sums blocks of all ranks, which stand one behind the other, into `target`, in the ranks' order.
void combine(const Reduction& reduction, std::vector<char>& blocks, char* target, std::size_t count, int ranks) {
    const std::size_t size = count * size_of(reduction.type);
    for (int rank = 1; rank < ranks; ++rank) {
        state->cuda.reduce(reduction.kernel.c_str(), blocks.data(),
                           blocks.data() + static_cast<std::size_t>(rank) * size, blocks.data(), count);
    }
    if (reduction.average) divide(reduction, blocks.data(), count, ranks);
    std::memcpy(target, blocks.data(), size);
}

enum Function : std::uint32_t { message, all_reduce, to_root, broadcast, all_gather, reduce_scatter };

/// One call of a communication function: checks it, and lets `build` add its stages.
struct Operation {
    const char* name;
    Communicator* handle;
    void* stream;
    bool is_message = false;

    template <class Build>
    int run(Build build) const {
        int result = nccl_success;
        const Outcome outcome = count(name, result);
        begin_group();
        if (outcome == Outcome::fails) return leave_group(result);
        const CommunicatorPointer communicator = known(handle);
        if (!communicator) return leave_group(say(invalid_argument, std::string(name) + ": no communicator"));
        if (communicator->state() != nccl_success) {
            return leave_group(say(invalid_argument, std::string(name) + ": the communicator isn't ready"));
        }
        auto task = std::make_shared<Task>();
        task->communicator = communicator;
        task->hangs = outcome == Outcome::hangs;
        result = build(*communicator, *task);
        if (result == nccl_success) (is_message ? group->messages : group->collectives).emplace_back(stream, task);
        return leave_group(result);
    }
};

/// The host's address of a buffer; false: it isn't the device's.
bool device_buffer(const void* buffer, std::size_t size, char*& host) {
    host = size == 0 ? nullptr : static_cast<char*>(state->cuda.range(buffer, size));
    return size == 0 || host != nullptr;
}

int no_buffer() { return say(invalid_argument, "a buffer isn't in device memory"); }

}  // namespace

int Communicator::state() {
    if (aborted.load()) return internal_error;
    if (hangs || shared->joined.load() < ranks || std::chrono::steady_clock::now() < ready_at) return in_progress;
    if (own_file >= 0) {
        close(own_file);
        own_file = -1;
    }
    if (::state->settings.multi) return nccl_success;
    for (int a = 0; a < ranks; ++a) {
        for (int b = 0; b < a; ++b) {
            if (shared->devices[a].load() != shared->devices[b].load()) continue;
            if (!told_of_error.exchange(true)) {
                say(invalid_usage, "Duplicate GPU detected : rank " + std::to_string(b) + " and rank " +
                                       std::to_string(a) + " both on device " +
                                       std::to_string(shared->devices[a].load() - 1));
            }
            return invalid_usage;
        }
    }
    return nccl_success;
}

FAKE_API int ncclGetVersion(int* version) {
    int result = nccl_success;
    if (count("ncclGetVersion", result) == Outcome::fails) return result;
    if (version == nullptr) return invalid_argument;
    *version = state->settings.version;
    return nccl_success;
}

FAKE_API const char* ncclGetErrorString(int result) {
    constexpr std::array<const char*, 8> names{"no error",
                                               "unhandled cuda error",
                                               "unhandled system error",
                                               "internal error",
                                               "invalid argument",
                                               "invalid usage",
                                               "remote process exited or there was a network error",
                                               "NCCL operation in progress"};
    return result >= 0 && result < 8 ? names[static_cast<std::size_t>(result)] : "unknown result code";
}

FAKE_API const char* ncclGetLastError(Communicator*) {
    static auto* text = new std::string;
    const std::lock_guard<std::mutex> lock(state->mutex);
    *text = state->last_error;
    return text->c_str();
}

FAKE_API int ncclGetUniqueId(UniqueId* id) {
    int result = nccl_success;
    if (count("ncclGetUniqueId", result) == Outcome::fails) return result;
    if (id == nullptr) return invalid_argument;
    const int file = memfd_create("fake nccl", MFD_CLOEXEC);
    struct stat status{};
    if (file < 0 || ftruncate(file, sizeof(Shared)) != 0 || fstat(file, &status) != 0) return system_error;
    Meeting meeting{};
    std::memcpy(meeting.name, meeting_name, sizeof meeting.name);
    meeting.process = getpid();
    meeting.file = file;
    meeting.inode = status.st_ino;
    std::memset(id, 0, sizeof *id);
    std::memcpy(id, &meeting, sizeof meeting);
    const std::lock_guard<std::mutex> lock(state->mutex);
    own_meetings()[{meeting.process, meeting.inode}] = file;
    return nccl_success;
}

FAKE_API int ncclCommInitRankConfig(Communicator** handle, int ranks, UniqueId id, int rank, const Config* config) {
    int result = nccl_success;
    const Outcome outcome = count("ncclCommInitRankConfig", result);
    if (outcome == Outcome::fails) return result;
    if (handle == nullptr || ranks < 1 || ranks > most_ranks || rank < 0 || rank >= ranks) return invalid_argument;
    if (config != nullptr && config->magic != config_magic) return invalid_argument;
    Meeting meeting{};
    std::memcpy(&meeting, &id, sizeof meeting);
    if (std::memcmp(meeting.name, meeting_name, sizeof meeting.name) != 0) return invalid_argument;
    if (!find_cuda()) return say(system_error, "the fake libcuda.so.1 isn't there");
    const int device = state->cuda.device();
    if (device < 0) return say(unhandled_cuda_error, "no current context");
    const std::string path = "/proc/" + std::to_string(meeting.process) + "/fd/" + std::to_string(meeting.file);
    const int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
    struct stat status{};
    if (file < 0 || fstat(file, &status) != 0 || status.st_ino != meeting.inode) {
        if (file >= 0) close(file);
        return say(system_error, "the process that made the id is gone, or all ranks have joined");
    }
    void* const memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
    close(file);
    if (memory == MAP_FAILED) return system_error;
    auto made = std::make_shared<Communicator>();
    made->shared = static_cast<Shared*>(memory);
    made->rank = rank;
    made->ranks = ranks;
    made->device = device;
    made->blocking = config == nullptr || config->blocking != 0;
    made->hangs = outcome == Outcome::hangs;
    made->ready_at = std::chrono::steady_clock::now() + std::chrono::microseconds(state->settings.slow_us);
    {
        const std::lock_guard<std::mutex> lock(state->mutex);
        const auto own = own_meetings().find({meeting.process, meeting.inode});
        if (own != own_meetings().end()) {
            made->own_file = own->second;
            own_meetings().erase(own);
        }
        state->communicators[made.get()] = made;
    }
    made->shared->devices[rank].store(device + 1);
    if (!made->hangs) made->shared->joined.fetch_add(1);
    *handle = made.get();
    begin_group();
    group->joining.push_back(made);
    return leave_group(nccl_success);
}

FAKE_API int ncclCommInitRank(Communicator** handle, int ranks, UniqueId id, int rank) {
    return ncclCommInitRankConfig(handle, ranks, id, rank, nullptr);
}

namespace {

int remove(const char* name, Communicator* handle, bool abort) {
    int result = nccl_success;
    if (count(name, result) == Outcome::fails) return result;
    const CommunicatorPointer communicator = known(handle);
    if (!communicator) return invalid_argument;
    if (abort) communicator->aborted.store(true);
    if (communicator->own_file >= 0) close(communicator->own_file);
    communicator->own_file = -1;
    const std::lock_guard<std::mutex> lock(state->mutex);
    state->communicators.erase(handle);
    return nccl_success;
}

}  // namespace

FAKE_API int ncclCommFinalize(Communicator* handle) { return known(handle) ? nccl_success : invalid_argument; }
FAKE_API int ncclCommDestroy(Communicator* handle) { return remove("ncclCommDestroy", handle, false); }
FAKE_API int ncclCommAbort(Communicator* handle) { return remove("ncclCommAbort", handle, true); }

FAKE_API int ncclCommGetAsyncError(Communicator* handle, int* error) {
    int result = nccl_success;
    if (count("ncclCommGetAsyncError", result) == Outcome::fails) return result;
    const CommunicatorPointer communicator = known(handle);
    if (!communicator || error == nullptr) return invalid_argument;
    *error = communicator->error.load();
    if (*error == nccl_success) *error = communicator->state();
    if (*error == nccl_success && communicator->busy.exchange(false)) *error = in_progress;
    return nccl_success;
}

namespace {

int ask(Communicator* handle, int* value, int Communicator::* field) {
    const CommunicatorPointer communicator = known(handle);
    if (!communicator || value == nullptr) return invalid_argument;
    *value = (*communicator).*field;
    return nccl_success;
}

}  // namespace

FAKE_API int ncclCommCount(Communicator* handle, int* ranks) { return ask(handle, ranks, &Communicator::ranks); }
FAKE_API int ncclCommUserRank(Communicator* handle, int* rank) { return ask(handle, rank, &Communicator::rank); }

FAKE_API int ncclGroupStart() {
    int result = nccl_success;
    if (count("ncclGroupStart", result) == Outcome::fails) return result;
    begin_group();
    return nccl_success;
}

FAKE_API int ncclGroupEnd() {
    int result = nccl_success;
    const bool fails = count("ncclGroupEnd", result) == Outcome::fails;
    if (group == nullptr) return say(invalid_usage, "ncclGroupEnd: no group began");
    const int begun = group->result;
    return leave_group(fails ? result : begun);
}

FAKE_API int ncclSend(const void* buffer, std::size_t elements, int type, int peer, Communicator* handle,
                      void* stream) {
    return Operation{"ncclSend", handle, stream, true}.run([&](Communicator& comm, Task& task) {
        char* host = nullptr;
        const std::size_t size = elements * size_of(type);
        if (size_of(type) == 0 || peer < 0 || peer >= comm.ranks) return int{invalid_argument};
        if (!device_buffer(buffer, size, host)) return no_buffer();
        task.stages.push_back({{{true, peer, message, host, size}}, nullptr});
        return int{nccl_success};
    });
}

FAKE_API int ncclRecv(void* buffer, std::size_t elements, int type, int peer, Communicator* handle, void* stream) {
    return Operation{"ncclRecv", handle, stream, true}.run([&](Communicator& comm, Task& task) {
        char* host = nullptr;
        const std::size_t size = elements * size_of(type);
        if (size_of(type) == 0 || peer < 0 || peer >= comm.ranks) return int{invalid_argument};
        if (!device_buffer(buffer, size, host)) return no_buffer();
        task.stages.push_back({{{false, peer, message, host, size}}, nullptr});
        return int{nccl_success};
    });
}

namespace {

/// All ranks' contributions go to `root`, which combines them into `target`.
void reduce_to(Communicator& comm, Task& task, int root, std::uint32_t function, char* source, char* target,
               std::size_t elements, const Reduction& reduction) {
    const std::size_t size = elements * size_of(reduction.type);
    Stage stage;
    if (comm.rank != root) {
        stage.transfers.push_back({true, root, function, source, size});
        task.stages.push_back(std::move(stage));
        return;
    }
    auto blocks = std::make_shared<std::vector<char>>(size * static_cast<std::size_t>(comm.ranks));
    for (int rank = 0; rank < comm.ranks; ++rank) {
        char* const block = blocks->data() + static_cast<std::size_t>(rank) * size;
        if (rank != root) stage.transfers.push_back({false, rank, function, block, size});
    }
    stage.then = [=, ranks = comm.ranks] {
        if (size > 0) std::memcpy(blocks->data() + static_cast<std::size_t>(root) * size, source, size);
        if (size > 0) combine(reduction, *blocks, target, elements, ranks);
    };
    task.stages.push_back(std::move(stage));
}

void send_from(Communicator& comm, Task& task, int root, std::uint32_t function, char* source, char* target,
               std::size_t size) {
    Stage stage;
    if (comm.rank != root) stage.transfers.push_back({false, root, function, target, size});
    for (int rank = 0; rank < comm.ranks && comm.rank == root; ++rank) {
        if (rank != root) stage.transfers.push_back({true, rank, function, source, size});
    }
    if (comm.rank == root && source != target && size > 0) {
        stage.then = [=] { std::memcpy(target, source, size); };
    }
    task.stages.push_back(std::move(stage));
}

}  // namespace

FAKE_API int ncclAllReduce(const void* source, void* target, std::size_t elements, int type, int operation,
                           Communicator* handle, void* stream) {
    return Operation{"ncclAllReduce", handle, stream}.run([&](Communicator& comm, Task& task) {
        Reduction reduction;
        char *from = nullptr, *to = nullptr;
        if (!reduction_of(operation, type, reduction)) return int{invalid_argument};
        const std::size_t size = elements * size_of(type);
        if (!device_buffer(source, size, from) || !device_buffer(target, size, to)) return no_buffer();
        reduce_to(comm, task, 0, all_reduce, from, to, elements, reduction);
        send_from(comm, task, 0, all_reduce, to, to, size);
        return int{nccl_success};
    });
}

FAKE_API int ncclReduce(const void* source, void* target, std::size_t elements, int type, int operation, int root,
                        Communicator* handle, void* stream) {
    return Operation{"ncclReduce", handle, stream}.run([&](Communicator& comm, Task& task) {
        Reduction reduction;
        char *from = nullptr, *to = nullptr;
        if (!reduction_of(operation, type, reduction) || root < 0 || root >= comm.ranks) return int{invalid_argument};
        const std::size_t size = elements * size_of(type);
        if (!device_buffer(source, size, from)) return no_buffer();
        if (comm.rank == root && !device_buffer(target, size, to)) return no_buffer();
        reduce_to(comm, task, root, to_root, from, to, elements, reduction);
        return int{nccl_success};
    });
}

FAKE_API int ncclBroadcast(const void* source, void* target, std::size_t elements, int type, int root,
                           Communicator* handle, void* stream) {
    return Operation{"ncclBroadcast", handle, stream}.run([&](Communicator& comm, Task& task) {
        char *from = nullptr, *to = nullptr;
        if (size_of(type) == 0 || root < 0 || root >= comm.ranks) return int{invalid_argument};
        const std::size_t size = elements * size_of(type);
        if (comm.rank == root && !device_buffer(source, size, from)) return no_buffer();
        if (!device_buffer(target, size, to)) return no_buffer();
        send_from(comm, task, root, broadcast, from, to, size);
        return int{nccl_success};
    });
}

FAKE_API int ncclAllGather(const void* source, void* target, std::size_t elements, int type, Communicator* handle,
                           void* stream) {
    return Operation{"ncclAllGather", handle, stream}.run([&](Communicator& comm, Task& task) {
        char *from = nullptr, *to = nullptr;
        const std::size_t size = elements * size_of(type), ranks = static_cast<std::size_t>(comm.ranks);
        if (size_of(type) == 0) return int{invalid_argument};
        if (!device_buffer(source, size, from) || !device_buffer(target, size * ranks, to)) return no_buffer();
        Stage stage;
        for (int rank = 0; rank < comm.ranks; ++rank) {
            if (rank == comm.rank) continue;
            stage.transfers.push_back({true, rank, all_gather, from, size});
            stage.transfers.push_back({false, rank, all_gather, to + static_cast<std::size_t>(rank) * size, size});
        }
        char* const own = to + static_cast<std::size_t>(comm.rank) * size;
        if (own != from && size > 0) stage.then = [=] { std::memcpy(own, from, size); };
        task.stages.push_back(std::move(stage));
        return int{nccl_success};
    });
}

FAKE_API int ncclReduceScatter(const void* source, void* target, std::size_t elements, int type, int operation,
                               Communicator* handle, void* stream) {
    return Operation{"ncclReduceScatter", handle, stream}.run([&](Communicator& comm, Task& task) {
        Reduction reduction;
        char *from = nullptr, *to = nullptr;
        if (!reduction_of(operation, type, reduction)) return int{invalid_argument};
        const std::size_t size = elements * size_of(type), ranks = static_cast<std::size_t>(comm.ranks);
        if (!device_buffer(source, size * ranks, from) || !device_buffer(target, size, to)) return no_buffer();
        auto blocks = std::make_shared<std::vector<char>>(size * ranks);
        Stage stage;
        for (int rank = 0; rank < comm.ranks; ++rank) {
            if (rank == comm.rank) continue;
            const std::size_t at = static_cast<std::size_t>(rank) * size;
            stage.transfers.push_back({true, rank, reduce_scatter, from + at, size});
            stage.transfers.push_back({false, rank, reduce_scatter, blocks->data() + at, size});
        }
        stage.then = [=, own = static_cast<std::size_t>(comm.rank) * size, members = comm.ranks] {
            if (size == 0) return;
            std::memcpy(blocks->data() + own, from + own, size);
            combine(reduction, *blocks, to, elements, members);
        };
        task.stages.push_back(std::move(stage));
        return int{nccl_success};
    });
}
