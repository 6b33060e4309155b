// palmette-node-check LIBRARY...: what palmette finds on this host, as one line of JSON for `palmette doctor --site`.
// The libraries are the preload libraries at the paths that the caller knows.
#include <fcntl.h>
#include <gnu/libc-version.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "palmette/base/error.hpp"
#include "palmette/base/files.hpp"
#include "palmette/base/hash.hpp"
#include "palmette/base/json.hpp"
#include "palmette/base/settings_files.hpp"
#include "palmette/base/text.hpp"
#include "palmette/base/version.hpp"
#include "palmette/interpose/declared_settings.hpp"
#include "palmette/interpose/settings_list.hpp"

namespace palmette {
namespace {

using base::Json;

/// Size and contents in few digits, or why a file can't be read.
std::string mark_of(const std::string& path) {
    try {
        const std::string text = base::read_file(path);
        std::uint64_t hash = base::fnv1a_start;
        base::hash_append(hash, text);
        constexpr std::string_view digits = "0123456789abcdef";
        std::string mark;
        for (int shift = 60; shift >= 0; shift -= 4) mark += digits[(hash >> shift) & 15];
        return mark;
    } catch (const base::Error&) {
        return access(path.c_str(), F_OK) == 0 ? "can't be read" : "missing";
    }
}

base::SettingsFiles files(std::string_view library) {
    const char* site = std::getenv(settings::site.name);
    return base::read_settings_files(site ? site : "", library, settings::declared());
}

Json settings_here(const base::SettingsFiles& from) {
    Json out = Json::object();
    for (const settings::Setting& setting : settings::all) {
        const char* value = std::getenv(setting.name);
        const auto file = from.values.find(std::string_view(setting.name));
        if (!value && file == from.values.end()) continue;
        Json one = Json::object();
        one.set("value", base::printable(value ? std::string_view(value) : file->second.text))
            .set("where", value ? std::string("environment") : base::printable(file->second.where));
        out.set(setting.name, std::move(one));
    }
    return out;
}

Json limit(int resource) {
    rlimit found{};
    if (getrlimit(static_cast<__rlimit_resource_t>(resource), &found) != 0) return "unknown";
    if (found.rlim_cur == RLIM_INFINITY) return "unlimited";
    return static_cast<std::int64_t>(found.rlim_cur);
}

/// `yes`, or what fails.
std::string memfd() {
    const int made = memfd_create("palmette-node-check", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (made < 0) return std::strerror(errno);
    const long page = sysconf(_SC_PAGESIZE);
    const bool sized = ftruncate(made, page) == 0;
    void* room =
        sized ? mmap(nullptr, static_cast<std::size_t>(page), PROT_READ | PROT_WRITE, MAP_SHARED, made, 0) : MAP_FAILED;
    const std::string result = room == MAP_FAILED ? std::strerror(errno) : "yes";
    if (room != MAP_FAILED) munmap(room, static_cast<std::size_t>(page));
    close(made);
    return result;
}

/// Reads the memory of a child, as ranks read one another's.
std::string single_copy() {
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC) != 0) return std::strerror(errno);
    volatile std::int64_t value = 1;
    const pid_t child = fork();
    if (child < 0) return std::strerror(errno);
    if (child == 0) {
        value = 2;
        close(ends[0]);
        const char ready = 1;
        if (write(ends[1], &ready, 1) == 1) pause();
        _exit(0);
    }
    close(ends[1]);
    char ready = 0;
    std::string result = "no answer";
    if (read(ends[0], &ready, 1) == 1) {
        std::int64_t seen = 0;
        iovec here{&seen, sizeof seen};
        iovec there{const_cast<std::int64_t*>(&value), sizeof value};
        const ssize_t got = process_vm_readv(child, &here, 1, &there, 1, 0);
        result = got == sizeof seen && seen == 2 ? "yes" : got < 0 ? std::strerror(errno) : "wrong data";
    }
    close(ends[0]);
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    return result;
}

std::string first_line(const char* path) {
    std::string line;
    std::ifstream in(path);
    std::getline(in, line);
    return line;
}

Json kernel() {
    Json out = Json::object();
    utsname name{};
    uname(&name);
    out.set("kernel", name.release).set("architecture", name.machine).set("glibc", gnu_get_libc_version());
    const std::string scope = first_line("/proc/sys/kernel/yama/ptrace_scope");
    out.set("ptrace_scope", scope.empty() ? "none" : scope);
    out.set("memfd", memfd()).set("single copy", single_copy());
    out.set("XPMEM", access("/dev/xpmem", R_OK | W_OK) == 0 ? "yes" : "no");
    struct statvfs shm{};
    out.set("shared memory bytes", statvfs("/dev/shm", &shm) == 0 ? Json(static_cast<std::int64_t>(shm.f_blocks) *
                                                                         static_cast<std::int64_t>(shm.f_frsize))
                                                                  : Json("missing"));
    return out;
}

std::string host_name() {
    if (const char* pretended = std::getenv("PALMETTE_FAKE_HOST"); pretended && *pretended) return pretended;
    std::array<char, 256> name{};
    gethostname(name.data(), name.size() - 1);
    return name.data();
}

int report(const std::vector<std::string>& libraries) {
    const base::SettingsFiles from = files(libraries.empty() ? std::string() : libraries.front());
    Json out = Json::object();
    out.set("host", base::printable(host_name())).set("palmette", version_text).set("settings", settings_here(from));
    Json mistakes = Json::array();
    for (const std::string& mistake : from.mistakes) mistakes.push(base::printable(mistake, 1000));
    out.set("mistakes", std::move(mistakes));
    Json marks = Json::object();
    const auto mark = [&](const std::string& path) { marks.set(base::printable(path), mark_of(path)); };
    for (const std::string& path : from.files) mark(path);
    // What the environment names as well.
    for (const auto* setting : {&settings::topology, &settings::table, &settings::aggregator_token}) {
        const char* path = std::getenv(setting->name);
        if (path && *path && std::ranges::find(from.files, path) == from.files.end()) mark(path);
    }
    for (const std::string& path : libraries) mark(path);
    out.set("files", std::move(marks)).set("system", kernel());
    Json limits = Json::object();
    limits.set("locked memory", limit(RLIMIT_MEMLOCK))
        .set("address space", limit(RLIMIT_AS))
        .set("stack", limit(RLIMIT_STACK))
        .set("open files", limit(RLIMIT_NOFILE));
    out.set("limits", std::move(limits));
    // One write: launchers mix what ranks print.
    const std::string line = "palmette-node " + out.dump() + "\n";
    std::size_t done = 0;
    while (done < line.size()) {
        const ssize_t wrote = write(STDOUT_FILENO, line.data() + done, line.size() - done);
        if (wrote < 0 && errno == EINTR) continue;
        if (wrote <= 0) return 1;
        done += static_cast<std::size_t>(wrote);
    }
    return 0;
}

}  // namespace
}  // namespace palmette

int main(int count, char** words) { return palmette::report({words + 1, words + count}); }
