// A program's own account of its MPI calls: what a recording of it must hold. It knows nothing of the recorder.
#pragma once

#include <mpi.h>

#include <cstdio>
#include <ctime>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace oracle {

inline constexpr int none = -1;     ///< no communicator, peer, tag, message or collective
inline constexpr int unsaid = -99;  ///< the account doesn't say

/// What a call or a request is about.
struct About {
    const char* function = "";
    int comm = unsaid;  ///< label of the communicator
    long long bytes = 0;
    int peer = unsaid, tag = unsaid;  ///< of a message, or of a probe that found one; the root of a collective
    int instance = none;              ///< of a collective: its number on the communicator, from 1
    int sent = none, got = none;      ///< numbers of messages
};

struct Call : About {
    long long before_ns = 0, after_ns = 0;  ///< by CLOCK_REALTIME
    bool left = false;                      ///< a handler has left it: it never returned
};

/// From one start to the call that completes it.
struct Request : About {
    int start = none;                   ///< index of the call that started it
    int end_thread = none, end = none;  ///< the call that completed it; none: it is freed, or nothing has told
    bool cancelled = false;
    unsigned long long handle = 0;  ///< MPIs give several sends the same one
};

inline long long clock_ns() {
    timespec time{};
    clock_gettime(CLOCK_REALTIME, &time);
    return time.tv_sec * 1'000'000'000LL + time.tv_nsec;
}

/// One thread's.
struct Account {
    int thread = 0;  ///< 0: the main thread
    std::deque<Call> calls;
    std::deque<Request> requests;

    Call& begin(const About& about) {
        calls.emplace_back();
        static_cast<About&>(calls.back()) = about;
        calls.back().before_ns = clock_ns();
        return calls.back();
    }
    int last() const { return static_cast<int>(calls.size()) - 1; }
    Request& start(const About& about) {
        requests.emplace_back();
        static_cast<About&>(requests.back()) = about;
        requests.back().start = last();
        return requests.back();
    }
};

/// What this rank has sent to each rank of MPI_COMM_WORLD, for the matrix: bytes, messages.
struct SentTotals {
    std::map<int, std::pair<long long, long long>> messages, exchanged;
    std::mutex mutex;

    void message(int world, long long bytes) {
        const std::lock_guard lock(mutex);
        messages[world].first += bytes;
        ++messages[world].second;
    }
    void exchange(int world, long long bytes) {
        const std::lock_guard lock(mutex);
        exchanged[world].first += bytes;
        ++exchanged[world].second;
    }
};

inline int world_rank = 0, world_size = 1;
inline bool printing = false;  ///< calls, before they are made
inline SentTotals sent_to;
inline std::deque<Account> accounts;  // by thread, in the order in which they were begun
inline std::mutex accounts_mutex;

inline Account& new_account() {
    const std::lock_guard lock(accounts_mutex);
    accounts.emplace_back();
    accounts.back().thread = static_cast<int>(accounts.size()) - 1;
    return accounts.back();
}

/// Functions of this program that are called under a name of MPI's, with what is said about them.
template <class Function, class... Arguments>
int made(Account& account, const About& about, Function function, Arguments... arguments) {
    Call& call = account.begin(about);
    if (printing)
        std::fprintf(stderr, "%d.%d %d %s on %d, %d %d\n", world_rank, account.thread, account.last(), about.function,
                     about.comm, about.peer, about.tag);
    const int code = function(arguments...);
    call.after_ns = clock_ns();
    return code;
}

inline std::string text_of(const About& about) {
    char text[160];
    std::snprintf(text, sizeof text, "\"%s\",%d,%lld,%d,%d,%d,%d,%d", about.function, about.comm, about.bytes,
                  about.peer, about.tag, about.instance, about.sent, about.got);
    return text;
}

inline void write_map(std::FILE* file, const char* name, const std::map<int, std::pair<long long, long long>>& map) {
    std::fprintf(file, "\"%s\":{", name);
    const char* comma = "";
    for (const auto& [peer, sum] : map) {
        std::fprintf(file, "%s\"%d\":[%lld,%lld]", comma, peer, sum.first, sum.second);
        comma = ",";
    }
    std::fputs("},\n", file);
}

/// By label: ranks of MPI_COMM_WORLD, of an inter-communicator those of both groups.
using Members = std::map<int, std::pair<std::vector<int>, std::vector<int>>>;

inline void write_list(std::FILE* file, const std::vector<int>& values) {
    std::fputs("[", file);
    for (std::size_t i = 0; i < values.size(); ++i) std::fprintf(file, "%s%d", i > 0 ? "," : "", values[i]);
    std::fputs("]", file);
}

/// Writes all accounts of this rank. False: the file can't be written.
inline bool write(const std::string& path, const Members& communicators) {
    std::FILE* const file = std::fopen(path.c_str(), "w");
    if (!file) return false;
    std::fprintf(file, "{\"rank\":%d,\n", world_rank);
    write_map(file, "sent", sent_to.messages);
    write_map(file, "exchanged", sent_to.exchanged);
    std::fputs("\"communicators\":{", file);
    const char* comma = "";
    for (const auto& [label, groups] : communicators) {
        std::fprintf(file, "%s\"%d\":[", comma, label);
        comma = ",";
        write_list(file, groups.first);
        std::fputs(",", file);
        write_list(file, groups.second);
        std::fputs("]", file);
    }
    std::fputs("},\n\"threads\":[", file);
    comma = "";
    for (const Account& account : accounts) {
        std::fprintf(file, "%s{\"thread\":%d,\"calls\":[", comma, account.thread);
        comma = ",";
        const char* inner = "\n";
        for (const Call& call : account.calls) {
            std::fprintf(file, "%s[%s,%lld,%lld,%d]", inner, text_of(call).c_str(), call.before_ns, call.after_ns,
                         call.left ? 1 : 0);
            inner = ",\n";
        }
        std::fputs("],\"requests\":[", file);
        inner = "\n";
        for (const Request& one : account.requests) {
            std::fprintf(file, "%s[%s,%d,%d,%d,%d,%llu]", inner, text_of(one).c_str(), one.start, one.end_thread,
                         one.end, one.cancelled ? 1 : 0, one.handle);
            inner = ",\n";
        }
        std::fputs("]}\n", file);
    }
    std::fputs("]}\n", file);
    return std::fclose(file) == 0;
}

}  // namespace oracle
