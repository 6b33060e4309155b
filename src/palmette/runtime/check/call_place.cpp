#include "palmette/runtime/check/call_place.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "palmette/base/stack_walk.hpp"
#include "palmette/base/text.hpp"

extern char** environ;

namespace palmette::runtime {
namespace {

using base::cat;

/// Between the parts of a packed place.
constexpr char between = '\x1f';

std::string hex(std::uintptr_t value) {
    std::array<char, 20> digits{};
    return std::string(digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), value, 16).ptr);
}

std::string_view file_name(std::string_view path) {
    const std::size_t slash = path.rfind('/');
    return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

/// The functions of CPython's stable interface that are needed here, as the process has them.
struct Python {
    using Object = void;
    int (*is_initialized)() = nullptr;
    int (*ensure)() = nullptr;
    void (*release)(int) = nullptr;
    Object* (*frame)() = nullptr;
    Object* (*back)(Object*) = nullptr;
    Object* (*code)(Object*) = nullptr;
    int (*line)(Object*) = nullptr;
    Object* (*attribute)(Object*, const char*) = nullptr;
    const char* (*text)(Object*) = nullptr;
    void (*decrease)(Object*) = nullptr;
    void (*increase)(Object*) = nullptr;
    Object* (*error)() = nullptr;
    bool usable = false;

    template <class Function>
    bool find(Function& function, const char* name) {
        function = reinterpret_cast<Function>(dlsym(RTLD_DEFAULT, name));
        return function != nullptr;
    }

    Python() {
        usable = find(is_initialized, "Py_IsInitialized") && find(ensure, "PyGILState_Ensure") &&
                 find(release, "PyGILState_Release") && find(frame, "PyEval_GetFrame") &&
                 find(back, "PyFrame_GetBack") && find(code, "PyFrame_GetCode") &&
                 find(line, "PyFrame_GetLineNumber") && find(attribute, "PyObject_GetAttrString") &&
                 find(text, "PyUnicode_AsUTF8") && find(decrease, "Py_DecRef") && find(increase, "Py_IncRef") &&
                 find(error, "PyErr_Occurred");
    }

    std::string attribute_text(Object* of, const char* name) const {
        Object* const value = attribute(of, name);
        if (!value) return {};
        const char* const found = text(value);
        std::string out = found ? found : "";
        decrease(value);
        return out;
    }

    /// The innermost frame that isn't mpi4py's own. With the interpreter's lock, and no exception pending.
    std::optional<std::string> place() const {
        Object* at = frame();
        if (at) increase(at);
        while (at) {
            Object* const its_code = code(at);
            const std::string file = attribute_text(its_code, "co_filename");
            const std::string function = attribute_text(its_code, "co_name");
            const int number = line(at);
            decrease(its_code);
            if (file.find("/mpi4py/") == std::string::npos) {
                decrease(at);
                return cat("python", between, file, between, number, between, function);
            }
            Object* const outer = back(at);
            decrease(at);
            at = outer;
        }
        return std::nullopt;
    }
};

[[maybe_unused]] std::optional<std::string> place_in_python() {
    const Python python;
    if (!python.usable || !python.is_initialized()) return std::nullopt;
    const int state = python.ensure();
    std::optional<std::string> found;
    if (!python.error()) found = python.place();
    python.release(state);
    return found;
}

/// Whether the module belongs to an MPI, to palmette, or to what binds a language to an MPI.
bool is_between(std::string_view name) {
    for (const char* begin : {"libmpi", "libpmpi", "libpalmette", "libopen-", "MPI."})
        if (name.starts_with(begin)) return true;
    return false;
}

/// An address of the program, by its return address.
std::string place_by_address(std::uintptr_t address) {
    Dl_info info{};
    link_map* map = nullptr;
    if (!dladdr1(reinterpret_cast<void*>(address - 1), &info, reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP) || !map)
        return {};
    std::string module = info.dli_fname ? info.dli_fname : "";
    if (!*map->l_name) {
        std::array<char, 4096> path{};
        const ssize_t length = readlink("/proc/self/exe", path.data(), path.size() - 1);
        if (length > 0) module.assign(path.data(), static_cast<std::size_t>(length));
    }
    const std::string symbol =
        info.dli_sname ? cat(info.dli_sname, "+0x", hex(address - reinterpret_cast<std::uintptr_t>(info.dli_saddr)))
                       : std::string();
    return cat("native", between, module, between, "0x", hex(address - 1 - map->l_addr), between, symbol);
}

std::string native_place() {
    base::StackWalk& walk = base::StackWalk::own();
    const auto end = walk.walk(reinterpret_cast<std::uintptr_t>(__builtin_return_address(0)),
                               reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0)), 64);
    std::array<std::uintptr_t, 64> addresses{};
    const std::size_t count = end.node ? base::StackWalk::addresses(end.node, addresses) : 0;
    Dl_info own{};
    dladdr(reinterpret_cast<const void*>(&native_place), &own);
    for (const std::uintptr_t address : std::span(addresses).first(count)) {
        Dl_info info{};
        if (!dladdr(reinterpret_cast<void*>(address - 1), &info) || info.dli_fbase == own.dli_fbase) continue;
        if (!is_between(file_name(info.dli_fname ? info.dli_fname : ""))) return place_by_address(address);
    }
    return {};
}

/// What a command without arguments of the user's writes within 1.5 s; empty where it can't be started.
std::string output_of(const std::vector<const char*>& arguments) {
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC) != 0) return {};
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
    posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    std::vector<char*> environment;
    for (char** one = environ; *one; ++one)
        if (!std::string_view(*one).starts_with("LD_PRELOAD=")) environment.push_back(*one);
    environment.push_back(nullptr);
    std::vector<char*> words;
    for (const char* word : arguments) words.push_back(const_cast<char*>(word));
    words.push_back(nullptr);
    pid_t child = 0;
    const int failed = posix_spawnp(&child, words[0], &actions, nullptr, words.data(), environment.data());
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    std::string out;
    if (!failed) {
        const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(1500);
        for (;;) {
            const auto left =
                std::chrono::duration_cast<std::chrono::milliseconds>(until - std::chrono::steady_clock::now()).count();
            pollfd one{ends[0], POLLIN, 0};
            if (left <= 0 || poll(&one, 1, static_cast<int>(left)) <= 0) break;
            std::array<char, 1024> part{};
            const ssize_t length = read(ends[0], part.data(), part.size());
            if (length <= 0) break;
            out.append(part.data(), static_cast<std::size_t>(length));
        }
        kill(child, SIGKILL);
        waitpid(child, nullptr, 0);
    }
    close(ends[0]);
    return out;
}

std::vector<std::string> parts_of(const std::string& place) {
    std::vector<std::string> out;
    for (std::size_t at = 0;;) {
        const std::size_t end = place.find(between, at);
        out.push_back(place.substr(at, end - at));
        if (end == std::string::npos) return out;
        at = end + 1;
    }
}

}  // namespace

std::string place_of_call() {
#if defined(PALMETTE_ABI_SMPI)
    return {};
#else
    if (auto python = place_in_python()) return *python;
    return native_place();
#endif
}

std::string place_text(const std::string& place) {
    const std::vector<std::string> parts = parts_of(place);
    if (parts.size() != 4) return {};
    if (parts[0] == "python") {
        const std::string within = parts[3] == "<module>" ? "" : cat(" (", parts[3], ")");
        return cat(file_name(parts[1]), ":", parts[2], within);
    }
    const std::string told = output_of({"addr2line", "-e", parts[1].c_str(), parts[2].c_str()});
    const std::string line = told.substr(0, told.find_first_of(" \n"));
    if (!line.empty() && line.find("?") == std::string::npos) return std::string(file_name(line));
    return cat(parts[3].empty() ? parts[2] : parts[3], " in ", file_name(parts[1]));
}

}  // namespace palmette::runtime
