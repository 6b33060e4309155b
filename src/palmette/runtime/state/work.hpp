// One collective call, ready to run: the caller's buffers, the plan, and what a reduction does.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "palmette/base/byte_buffer.hpp"
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
        piecewise_ = false;
        elsewhere_ = {};
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

    /// `run` in three parts, for calls that don't block: `open` stages the input where needed and binds the plan,
    /// the caller runs `bound` with `environment`, `close` unpacks the output to the caller. Such plans have no
    /// batches.
    int open();
    const execute::BoundProgram& bound() const { return *bound_; }
    /// For `executor`, whose transports it configures.
    execute::Environment environment(MpiExecutor& executor);
    int close();

    // For the plan's way.

    /// Binds the call to a program that outlives it, or that it keeps.
    void use(const execute::BoundProgram& program) { bound_ = &program; }
    void use(execute::BoundProgram&& program) {
        own_ = std::move(program);
        bound_ = &own_;
    }
    /// One run of a program on the call's buffers. Returns an MPI code.
    int run_once(MpiExecutor& executor, const execute::BoundProgram& program) {
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

    // For a way around the plan's, which lasts as long as that runs.

    const execute::Bases& bases() const { return bases_; }
    /// The buffers are others, in another memory; `scratch`: the plan's own blocks there; null: the executor's.
    void move(execute::Memory& memory, char* of_send, char* of_recv, char* scratch) {
        elsewhere_ = {&memory, scratch, nullptr};
        bases_.send = of_send;
        bases_.recv = of_recv;
    }
    /// `data` is told what steps read and write of buffers that aren't packed.
    void watch(execute::StepData& data) { elsewhere_.data = &data; }
    /// The memory in which the call's operation combines.
    execute::Memory& host_memory() {
        memory_.use(operation ? &*operation : nullptr);
        return memory_;
    }
    /// Whether some buffers aren't the program's, but packed.
    bool is_packed() const { return piecewise_ || send.is_staged() || recv.is_staged(); }

  private:
    [[gnu::cold, gnu::noinline]] int run_on_devices(MpiExecutor& executor);

    execute::Bases bases_;
    std::vector<char*> named_;
    OperationMemory memory_;
    const execute::BoundProgram* bound_ = nullptr;
    execute::BoundProgram own_;  ///< where lengths differ between calls
    bool piecewise_ = false;     ///< blocks are packed and unpacked one by one (`staged_`)
    StagedExchange staged_;
    OnDevice* device_ = nullptr;  ///< whose copies of device memory are the buffers; null: they are the program's
    struct {
        execute::Memory* memory = nullptr;
        char* scratch = nullptr;
        execute::StepData* data = nullptr;
    } elsewhere_;  ///< in place of the host's memory and of nobody who is told; null: as usual
    std::optional<Refusal> left_to_mpi_;
    bool held_ = false;
    base::ByteBuffer scratch_;
};

// Here so that most calls don't come through one more file.
inline int Way::run(Work& call, MpiExecutor& executor) { return call.run_once(executor, call.bound()); }

}  // namespace palmette::runtime
