// What MPI's functions do, as far as ranks depend on each other by them: the table src/palmette/mpi/functions.txt.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace palmette::trace {

/// How a function makes ranks depend on each other.
enum class Kind : std::uint8_t {
    other,       ///< local, or of no known pattern
    init,        ///< MPI_Init and MPI_Finalize
    barrier,     ///< all wait for all
    all_to_all,  ///< all wait for all, with data
    one_to_all,  ///< all wait for the root
    all_to_one,  ///< the root waits for all
    scan,        ///< each waits for those before it
    neighbours,  ///< each waits for some
    send,        ///< may wait for its receiver
    receive,     ///< waits for its sender
    wait,        ///< waits for what its requests wait for
    test
};
/// The kind's name as it is spelled here.
const char* name_of(Kind kind);
inline bool is_collective(Kind kind) { return kind >= Kind::barrier && kind <= Kind::neighbours; }

/// One function; nonblocking and persistent forms and those with large counts are functions of their own.
struct Function {
    std::string_view name;
    std::string_view operation;  ///< MPI_Iallgather_c's allgather
    Kind kind = Kind::other;
    bool by_request = false;          ///< the operation is done by the request that the call makes
    bool persistent = false;          ///< the request is persistent: it is started later
    bool sends_and_receives = false;  ///< the call sends, and its request receives
    bool ends = false;                ///< the job
    bool lets_go = false;             ///< the call releases requests without waiting for them
};

/// The table, by name.
std::span<const Function> functions();
/// One that isn't in the table does nothing of all this. Cost: O(log functions).
const Function& function_of(std::string_view name);
/// Whether a function only tells something, or makes something that nobody else has to do with: what is before and
/// behind such a call is one computation. Cost: O(such functions).
bool only_tells(std::string_view name);
inline Kind kind_of(std::string_view name) { return function_of(name).kind; }

}  // namespace palmette::trace
