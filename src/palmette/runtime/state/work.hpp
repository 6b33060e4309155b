// One collective call, ready to run: the caller's buffers, the plan, and what a reduction does.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <optional>
#include <utility>
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
        runs_on_device_ = overlaps_ = piecewise_ = false;
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

    // For the plan's way.

    /// Binds the call to a program that outlives it, or that it keeps.
    void use(const BoundProgram& program) { bound_ = &program; }
    void use(BoundProgram&& program) {
        own_ = std::move(program);
        bound_ = &own_;
    }
    /// One run of a program on the call's buffers. Returns an MPI code.
    int run_once(MpiExecutor& executor, const BoundProgram& program) {
        executor.prepare(program);
        return executor.run(program, environment(executor));
    }
    /// Uninitialised memory until the call ends, one block for a call.
    char* scratch(std::size_t bytes) {
        scratch_.grow(bytes);
        return scratch_.data();
    }
    char* scratch_copy(const char* from, std::size_t bytes);
    /// The MPI must make the call, as all ranks know.
    void leave_to_mpi(Refusal why) { left_to_mpi_ = why; }
    /// Where what has arrived may have overwritten input in the same place. Returns an MPI code.
    int restore_input() {
        return in_place == InPlace::copy_of_recv ? send.close(bases_.send, state->shadow_comm(), -1) : MPI_SUCCESS;
    }

  private:
    /// Of a call on device memory: the plan will run there, or on its copies.
    void open_device(MpiExecutor& executor);
    /// Whether the plan of a call on device memory runs there, as this rank decides by itself: then it is prepared.
    bool open_on_device(MpiExecutor& executor);
    /// Where the base of a plan's send or receive buffer lies on the device.
    char* on_device(bool of_send) const;
    /// Whether the ranks of the node can open what a plan exposes of the call's device buffers.
    bool exports(const BoundProgram& program) const;

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
    std::optional<Refusal> left_to_mpi_;
    bool held_ = false;
    base::ByteBuffer scratch_;
};

// Here so that most calls don't come through one more file.
inline int Way::run(Work& call, MpiExecutor& executor) { return call.run_once(executor, call.bound()); }

}  // namespace palmette::runtime
