// One collective call, ready to run: the caller's buffers, the plan, and what a reduction does.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "palmette/base/byte_buffer.hpp"
#include "palmette/execute/device_memory.hpp"
#include "palmette/runtime/data/call_arguments.hpp"
#include "palmette/runtime/data/caller_buffer.hpp"
#include "palmette/runtime/data/on_device.hpp"
#include "palmette/runtime/data/operation_memory.hpp"
#include "palmette/runtime/data/staged_exchange.hpp"
#include "palmette/runtime/state/communicator.hpp"

namespace palmette::runtime {

/// Filled by the functions of prepare.hpp. Local until `run`. A blocking call uses the one that its thread keeps; a
/// nonblocking one owns it until it is done.
class Work {
  public:
    /// Where input and output lie under MPI_IN_PLACE.
    enum class InPlace : std::uint8_t {
        no,
        own_block_of_recv,  ///< gather's root, allgather: the input is the rank's block of the output
        own_block_of_send,  ///< scatter's root: the output is the rank's block of the input
        all_of_recv,        ///< reductions: the output holds the input
        copy_of_recv        ///< reduce_scatter, alltoall: the input lies where output goes, and is copied first
    };

    /// What the program passed, until the call returns to it: null in one that runs in the background.
    const CallArguments* arguments = nullptr;
    Communicator* state = nullptr;
    MPI_Comm comm = MPI_COMM_NULL;
    CachedPlan* plan = nullptr;
    InPlace in_place = InPlace::no;
    /// The error class of an argument that is erroneous at this rank only: the rank takes part with a placeholder
    /// buffer, and raises the error at the end.
    int fault = MPI_SUCCESS;
    CallerBuffer send, recv;
    std::optional<Operation> operation;

    void reset(Communicator& communicator, MPI_Comm user) {
        state = &communicator;
        comm = user;
        plan = nullptr;
        bound_ = nullptr;
        in_place = InPlace::no;
        fault = MPI_SUCCESS;
        device_ = nullptr;
        runs_on_device_ = overlaps_ = remembered_ = counts_changed_ = piecewise_ = false;
        left_to_mpi_ = std::nullopt;
        held_ = false;
    }

    /// Opens it now, so that it can run after the program has freed its memory: what it receives is discarded. Returns
    /// an MPI code.
    int hold();
    /// The whole call with the communicator's executor. Returns an MPI code.
    int run();
    /// After `run`: why the MPI must make the call, as all ranks know. The caller's input is as it was.
    std::optional<Refusal> left_to_mpi() const { return left_to_mpi_; }

    /// The same in three parts, for calls that don't block: `open` stages the input where needed and binds the plan,
    /// the caller runs `bound` with `environment`, `close` unpacks the output to the caller. Such plans have no
    /// batches.
    int open();
    const BoundProgram& bound() const { return *bound_; }
    /// For `executor`, whose transports it configures.
    Environment environment(MpiExecutor& executor);
    int close();

  private:
    int bind_own_lengths();
    /// Of a plan that forwards blocks of lengths that repeat.
    int bind_repeated(const Layout& layout, RepeatedCounts& repeated);
    /// Of a call on device memory: the plan will run there, or on its copies.
    void open_device(MpiExecutor& executor);
    /// Whether the plan of a call on device memory runs there, as this rank decides by itself: then it is prepared.
    bool open_on_device(MpiExecutor& executor);
    /// Where the base of a plan's send or receive buffer lies on the device.
    char* on_device(bool of_send) const;
    /// Whether the ranks of the node can open what a plan exposes of the call's device buffers.
    bool exports(const BoundProgram& program) const;
    /// Runs with remembered lengths. Where some rank's counts have changed, the call is left to the MPI on all ranks.
    int run_remembered(MpiExecutor& executor);
    /// Blocks up to the plan's slot combined, then longer ones directly.
    int run_slots(MpiExecutor& executor);
    int run_batches(Executor& executor, const Environment& environment);
    /// Through aggregators; by hosts where some rank has no result of theirs.
    int run_aggregated(MpiExecutor& executor);

    Bases bases_;
    std::vector<char*> named_;
    OperationMemory memory_;
    const BoundProgram* bound_ = nullptr;
    BoundProgram own_;        ///< where lengths differ between calls
    bool piecewise_ = false;  ///< blocks are packed and unpacked one by one (`staged_`)
    StagedExchange staged_;
    OnDevice* device_ = nullptr;   ///< whose copies of device memory are the buffers; null: they are the program's
    bool overlaps_ = false;        ///< its copies go on while the plan runs
    bool runs_on_device_ = false;  ///< nothing is copied: the plan runs in `on_device_`
    DeviceMemory on_device_;
    char* device_scratch_ = nullptr;
    bool remembered_ = false;      ///< bound to lengths that were exchanged in an earlier call
    bool counts_changed_ = false;  ///< a rank's counts differ from these, as far as this rank has learned
    std::optional<Refusal> left_to_mpi_;
    bool held_ = false;
    base::ByteBuffer discarded_;
    base::ByteBuffer slots_;
    base::ByteBuffer kept_;  ///< input that lies in the output's place, until all ranks have the result
};

}  // namespace palmette::runtime
