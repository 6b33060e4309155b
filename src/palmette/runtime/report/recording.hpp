// Tells the recorder (palmette/record) of calls that palmette serves.
#pragma once

#include "palmette/runtime/observe/observer.hpp"

namespace palmette::runtime {

/// Plan, algorithm, physical limit and what this rank sends to whom, for the recording of `palmette run --profile`.
class RecordedCalls : public Observer {
  public:
    /// Whether the recorder's library is loaded.
    static bool possible();
    static bool are_recorded();
    /// Collective over `comm`, of all ranks, whose calls are all recorded: compares the nodes' clocks; again at the
    /// end.
    static void synchronize(MPI_Comm comm);
    static void synchronize_again();

    void call_begins(const CallEvent& call) override;
    void call_ended(const CallEvent& call) override;
    void call_left(const CallEvent& call) override;
};

}  // namespace palmette::runtime
