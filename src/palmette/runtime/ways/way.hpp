// How the calls of a plan are carried out: between the call, which is ready to run (state/work.hpp), and the executor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "palmette/execute/binding.hpp"
#include "palmette/runtime/transport/mpi_transport.hpp"
#include "palmette/select/table.hpp"

namespace palmette::runtime {

struct CachedPlan;
struct CallArguments;
class Work;

/// One object for each plan, chosen when the plan is made; all ranks have the same kind. It owns what only it needs and
/// knows no other way. What belongs to one call lies in its Work, unless only blocking calls come here, of which a
/// communicator has one at a time.
class Way {
  public:
    virtual ~Way();  ///< where the table of virtual functions is: others of them are inline

    /// Binds the plan to an opened call whose blocks have lengths of their own (Work::use); without this all lengths
    /// are uniform. May be collective, or leave the call to the MPI on all ranks. Returns an MPI code.
    virtual int bind(Work&) { return MPI_SUCCESS; }
    /// Carries out a call that is opened and bound; without this by one run of its program. Collective as the call is.
    /// Returns an MPI code.
    virtual int run(Work& call, MpiExecutor& executor);

    /// What a call with uniform lengths runs: `program` so many times, then `rest`.
    struct Runs {
        const execute::BoundProgram* program;
        std::uint32_t times = 1;
        const execute::BoundProgram* rest = nullptr;
        bool is_one() const { return times == 1 && !rest; }
    };
    virtual Runs runs(const CachedPlan& plan) const;

    /// What it may do with data in the memory of devices. Without either the data is copied to the host first.
    struct OnDevices {
        bool overlaps = false;  ///< copies to the host and back may go on while it runs
        bool in_place = false;  ///< it may run on the device's memory
    };
    virtual OnDevices on_devices() const = 0;
    /// Whether the network combines contributions.
    virtual bool is_in_network() const { return false; }

    /// Further buffers of the program, all in the receive buffer.
    std::size_t named_buffers = 0;
    /// Blocks of the receive buffer that nothing is written to; null: none.
    const std::vector<int>* kept_blocks = nullptr;
};

/// Looks at blocking calls before a plan is made for them.
class EarlyWay {
  public:
    virtual ~EarlyWay() = default;
    /// Whether it looks at calls of the function, so that none may go past it.
    virtual bool looks_at(select::Function function) const = 0;
    /// Collective as the call is. The call's code; nothing where it has to go the usual way, on all ranks alike, with
    /// its input as it was.
    virtual std::optional<int> serve(const CallArguments& arguments) = 0;
};

/// The plan, run once on the call's buffers.
class Planned : public Way {
  public:
    int bind(Work& call) override;
    OnDevices on_devices() const override { return {.overlaps = true, .in_place = true}; }

  protected:
    static execute::Layout layout_of(const Work& call);
    void bind_to(Work& call, const execute::Layout& layout);

  private:
    execute::BoundLengths last_;  ///< mostly the next call has the same lengths
};

/// Data that exceeds the memory that ranks share: one part of each block after the other.
class InBatches : public Way {
  public:
    /// `bytes`: of a part, less than a block's.
    InBatches(std::int64_t bytes, execute::BoundProgram last) : bytes_(bytes), last_(std::move(last)) {}
    int run(Work& call, MpiExecutor& executor) override;
    Runs runs(const CachedPlan& plan) const override;
    OnDevices on_devices() const override { return {.in_place = true}; }

  private:
    std::int64_t bytes_;
    execute::BoundProgram last_;  ///< of the shorter part at the end, if there is one
};

}  // namespace palmette::runtime
