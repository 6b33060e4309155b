// Agreement on how an operation has ended, by messages that wait for nobody.
#pragma once

#include <mpi.h>

#include <array>
#include <vector>

#include "palmette/device/nccl.hpp"

namespace palmette::runtime {

/// Along the tree of `agree`: each rank tells its parent once, and is told once. A rank that has failed, or has heard
/// of a failure, tells at once. Its two tags are this object's alone while it is under way.
class Consensus {
  public:
    Consensus(MPI_Comm comm, int rank, int size, int first_tag);
    Consensus(const Consensus&) = delete;
    Consensus& operator=(const Consensus&) = delete;
    static constexpr int tags = 2;

    /// Anew, on all ranks. Those whose numbers differ have failed.
    void begin(int number = 0);
    /// Goes on; `mine`: this rank's progress. Whether this rank needn't come again.
    bool step(device::Progress mine);

    bool over() const { return over_; }
    /// Known before it is over, on some ranks earlier than on others.
    bool some_failed() const { return some_failed_ || broken_; }
    /// An error of the MPI's, which may write here for ever: this must stay.
    bool broken() const { return broken_; }
    /// Once it is over: the same on all ranks, unless it's broken.
    bool all_succeeded() const { return over_ && told_ && !broken_; }

  private:
    using Word = std::array<int, 2>;  ///< whether it succeeded, and the number
    bool go_on(device::Progress mine);
    MPI_Request& request_from_parent() { return requests_[requests_.size() - 2]; }
    MPI_Request& request_to_parent() { return requests_[requests_.size() - 1]; }
    void check(int code) { broken_ = broken_ || code != MPI_SUCCESS; }

    MPI_Comm comm_;
    bool is_root_;
    int up_tag_, down_tag_;
    int parent_ = 0;
    std::vector<int> children_;
    std::vector<Word> from_children_;
    std::vector<MPI_Request> requests_;  ///< from children, to children, from and to the parent
    Word mine_{};
    int told_ = 0;
    bool decided_ = false, told_up_ = false, told_down_ = false, some_failed_ = false, broken_ = false;
    bool over_ = true;
};

}  // namespace palmette::runtime
