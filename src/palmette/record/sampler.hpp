// Interrupts each thread now and then, by a timer on its own CPU clock, and counts where it stands: palmette run
// --sample. Such a timer ticks only while its thread runs, and since Linux 5.11 its signal comes when the thread
// returns from the kernel: no call of the program is interrupted.
#pragma once

#include <atomic>
#include <cstdint>

#include "palmette/record/call_paths.hpp"
#include "palmette/trace/format.hpp"

namespace palmette::record {

/// What PALMETTE_SAMPLE asks for; none of both: no samples.
struct SamplingWish {
    double hertz = 0;        ///< samples of a thread a second of its CPU time
    double budget = 0;       ///< or which share of it they may take
    bool by_events = false;  ///< by the kernel's events, where they are allowed
    explicit operator bool() const { return hertz > 0 || budget > 0; }
};
/// What PALMETTE_SAMPLE asks for, read once.
const SamplingWish& sampling_wish();

/// Makes the tables' capacities for it.
void size_sampling(trace::SamplingHeader& header);

/// Begins to sample all threads of this process, those to come too, into the section. Where that can't be, a line says
/// why. Once.
void start_sampling(trace::SectionHeader& section);
/// Begins to sample the calling thread, as soon as samples are taken of any. Not to be called from a handler.
void sample_this_thread();
/// Ends all sampling, in MPI_Finalize.
void stop_sampling();

/// Whether calls are asked for Python's frames: there are samples, and an interpreter that is known.
extern constinit std::atomic<bool> calls_have_python;
/// The path of a call of the calling thread with the frames of Python in it; `native`: the number of that without,
/// which it is where there are none. Microseconds.
std::uint32_t path_with_python(PathTable& paths, std::uint32_t native, const void* return_address, const void* frame);

/// Around dlclose: what lies in the unloaded module isn't looked at meanwhile.
void before_unload();
void after_unload();

}  // namespace palmette::record
