// Executable compositions: planned once on a communicator, bound to buffers, started any number of times.
#pragma once

#include <mpi.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "palmette/compose/composition.hpp"
#include "palmette/execute/binding.hpp"
#include "palmette/execute/device_memory.hpp"
#include "palmette/runtime/composed/nccl_run.hpp"
#include "palmette/runtime/data/operation_memory.hpp"
#include "palmette/runtime/serve/background.hpp"
#include "palmette/runtime/settings/settings.hpp"
#include "palmette/runtime/state/communicator.hpp"

namespace palmette::runtime {

/// The state of a communicator on which plans are made. Collective at its first call. Throws base::Error.
Communicator& composing_state(MPI_Comm comm, const Settings& settings);

/// One rank's part of a factored composition.
class ComposedPlan {
  public:
    /// Collective over `comm`: all ranks pass the same composition and the same factoring (compose::parse_factoring),
    /// which is verified; null: this rank has none, which is an error on all. `operations`: MPI's, as the composition
    /// counts them, on elements of `type`. Throws base::Error on all ranks if it fails on one of them.
    static std::unique_ptr<ComposedPlan> make(MPI_Comm comm, const compose::Composition* composition,
                                              std::string_view factoring, std::vector<MPI_Op> operations,
                                              MPI_Datatype type, const Settings& settings);

    ~ComposedPlan();
    ComposedPlan(const ComposedPlan&) = delete;
    ComposedPlan& operator=(const ComposedPlan&) = delete;

    std::size_t buffers() const { return names_.size(); }
    const std::string& buffer_name(std::size_t index) const { return names_[index]; }
    /// Bytes of this rank's blocks in a buffer.
    std::int64_t buffer_bytes(std::size_t index) const { return buffer_bytes_[index]; }
    std::int64_t scratch_bytes() const { return bound_.scratch_bytes; }
    const plan::Program& program() const { return program_; }
    /// How many of this rank's messages are read in the sender's memory.
    std::int64_t single_copies() const { return single_copies_; }
    /// How many go between devices: those of levels with @ipc, where both ends have them there, and with @nccl, where
    /// NCCL is in service.
    std::int64_t device_messages() const { return device_messages_; }

  private:
    friend class ComposedRun;
    explicit ComposedPlan(Communicator& state);
    void prepare(const compose::Composition& composition, const topology::Job& job, std::string_view factoring,
                 int rank);

    Communicator& state_;  ///< outlives this
    std::uint64_t ends_;   ///< Process::ends() when it was made
    std::vector<std::string> names_;
    std::vector<std::int64_t> buffer_bytes_;
    plan::Program program_;
    execute::BoundProgram bound_;
    std::vector<MPI_Op> ops_;
    MPI_Datatype type_ = MPI_DATATYPE_NULL;
    std::int64_t tags_ = 1;
    std::uint64_t balance_ = 0;         ///< of a local composition: Factory::program
    bool wants_single_copies_ = false;  ///< the factoring has single copies
    bool single_copies_work_ = false;   ///< on all ranks
    std::int64_t single_copies_ = 0;
    bool wants_ipc_ = false;  ///< the factoring has messages between devices
    std::int64_t device_messages_ = 0;
    bool wants_nccl_ = false;             ///< the factoring has messages by NCCL
    std::shared_ptr<ComposedNccl> nccl_;  ///< where all ranks have it
    execute::BoundProgram by_messages_;   ///< then: the same without NCCL
    std::chrono::seconds nccl_limit_{};
    bool looks_for_devices_ = true, opens_handles_ = true;  ///< as the settings have it
    Waiting::Policy waiting_ = Waiting::Policy::automatic;
    bool may_block_ = false;  ///< no other thread needs progress meanwhile, and the user allows it
};

/// A plan with its buffers. Any number may be in flight, in one thread at a time; testing or waiting for one progresses
/// all.
///
/// Buffers may lie in device memory, each for itself: messages of their bytes are staged in pinned memory, where
/// scratch lies, too, or copied between devices. The other ranks needn't know.
///
/// Runs of plans with NCCL are started in the same order on all ranks; they complete when all ranks' have.
class ComposedRun : public BackgroundOperation {
  public:
    /// Local, but in the same order on all ranks, as is its destruction. `buffers`: one for each of the plan's, which
    /// stay where they are. Throws base::Error.
    ComposedRun(std::shared_ptr<const ComposedPlan> plan, const std::vector<void*>& buffers);
    /// Waits for it if it is in flight.
    ~ComposedRun() override;
    ComposedRun(const ComposedRun&) = delete;
    ComposedRun& operator=(const ComposedRun&) = delete;

    /// Local, with NCCL in the same order on all ranks. Returns an MPI code; MPI_ERR_PENDING where it is in flight.
    int start();
    /// `done` also where it was never started. Returns the error since the start.
    int test(bool& done);
    int wait();
    /// What a device's driver said at the last error; null: the error was the MPI's.
    const char* device_error() const { return device_error_; }
    /// Why the last run failed by NCCL, on all ranks; empty: it didn't.
    const std::string& nccl_error() const { return nccl_error_; }

    /// Progresses it; returns whether it has completed. With the background's lock held, while it is in flight.
    bool progress() override;

  private:
    /// One of the plan's programs as this rank runs it.
    struct Variant {
        const execute::BoundProgram* program = nullptr;  ///< the plan's; null: there is none
        std::optional<execute::BoundProgram>
            staged;  ///< in its place where buffers are on devices: with more messages packed
        const execute::BoundProgram& bound() const { return staged ? *staged : *program; }
    };

    void find_devices();
    void prepare();
    void stage(Variant& variant);
    void take_pinned();
    void take_scratch();
    void use(const Variant& variant);
    int begin();
    void begin_as_agreed();
    bool progress_as_agreed();
    void note_failure();
    void ended();
    void finish_alone();

    std::shared_ptr<const ComposedPlan> plan_;
    std::vector<char*> bases_;
    std::vector<Operation> operations_;
    OperationMemory memory_;
    Variant usual_, by_messages_;          ///< the second one: of plans with NCCL, after its failure
    const Variant* variant_ = nullptr;     ///< of the current run
    std::vector<bool> on_device_;          ///< by buffer
    execute::DeviceMemory device_memory_;  ///< in its place where any buffer is on a device
    struct Pinned {
        device::HostBlock block;
        void give_back() { device::Resources::instance().give_back(std::exchange(block, {})); }
        ~Pinned() { give_back(); }
    } pinned_;                 ///< then: scratch and staging
    char* scratch_ = nullptr;  ///< on a device, where messages from there are combined
    device::Status device_error_ = nullptr;
    MpiExecutor executor_;
    TagSpace::Range tags_;
    std::optional<NcclRun> nccl_run_;  ///< of plans with NCCL
    NcclRun::Mode mode_ = NcclRun::Mode::not_yet;
    bool executed_ = false;
    std::string nccl_error_;
    bool running_ = false;
    int code_ = MPI_SUCCESS;
};

}  // namespace palmette::runtime
