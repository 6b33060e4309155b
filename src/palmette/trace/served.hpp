// What the runtime tells the recorder, which lives in another preload library: by which plan a call is served.
#pragma once

#include <cstddef>
#include <cstdint>

#include "palmette/trace/format.hpp"

namespace palmette::trace {

/// A plan, as PlanEntry describes it. Texts are copied.
struct ServedPlan {
    const char* function;
    const char* algorithm;
    std::uint64_t communicator;  ///< handle_word of the user's
    std::int32_t root;
    std::int64_t block_bytes;
    std::int64_t bound_ns;
    const PlanSend* sends;
    std::size_t send_count;
};

/// Some MPIs' handles are integers, others' are pointers.
template <class Handle>
std::uint64_t handle_word(Handle* handle) {
    return reinterpret_cast<std::uintptr_t>(handle);
}
inline std::uint64_t handle_word(int handle) { return static_cast<std::uint32_t>(handle); }

}  // namespace palmette::trace

extern "C" {
/// A number for the plan; 0: nothing is recorded, or there is no place for it.
__attribute__((weak, visibility("default"))) std::uint32_t palmette_record_add_plan(
    const palmette::trace::ServedPlan* plan);
/// The thread's current call is served by plan number `plan`; 0: by a plan without a number.
__attribute__((weak, visibility("default"))) void palmette_record_serve_by(std::uint32_t plan);
/// The thread's current call is left to the MPI library after all.
__attribute__((weak, visibility("default"))) void palmette_record_left_to_mpi();
/// Adds what a call has sent, for plans whose calls differ. `sends`: of ranks that the plan was added with.
__attribute__((weak, visibility("default"))) void palmette_record_add_sends(std::uint32_t plan,
                                                                            const palmette::trace::PlanSend* sends,
                                                                            std::size_t count);
/// Collective over `comm`, an MPI_Comm* of all ranks, whose calls are all recorded: compares the nodes' clocks.
__attribute__((weak, visibility("default"))) void palmette_record_synchronize(const void* comm);
/// Compares the nodes' clocks once more, before MPI_Finalize; bounded in time.
__attribute__((weak, visibility("default"))) void palmette_record_synchronize_again();
/// Whether calls of this process are recorded.
__attribute__((weak, visibility("default"))) int palmette_record_is_on();
/// Seconds that recording a call costs here, as measured at the start; 0: nothing is recorded.
__attribute__((weak, visibility("default"))) double palmette_record_call_cost();
}
