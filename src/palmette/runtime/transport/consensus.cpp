#include "palmette/runtime/transport/consensus.hpp"

namespace palmette::runtime {

using device::Progress;

Consensus::Consensus(MPI_Comm comm, int rank, int size, int first_tag)
    : comm_(comm), is_root_(rank == 0), up_tag_(first_tag), down_tag_(first_tag + 1) {
    int distance = 1;
    for (; distance < size && rank % (2 * distance) == 0; distance *= 2)
        if (rank + distance < size) children_.push_back(rank + distance);
    parent_ = rank - distance;
    from_children_.resize(children_.size());
    requests_.assign(2 * children_.size() + 2, MPI_REQUEST_NULL);
}

void Consensus::begin(int number) {
    mine_ = {0, number};
    told_ = 0;
    decided_ = told_up_ = told_down_ = some_failed_ = over_ = false;
    for (std::size_t c = 0; c < children_.size(); ++c)
        check(PMPI_Irecv(from_children_[c].data(), 2, MPI_INT, children_[c], up_tag_, comm_, &requests_[c]));
    if (!is_root_) check(PMPI_Irecv(&told_, 1, MPI_INT, parent_, down_tag_, comm_, &request_from_parent()));
}

bool Consensus::step(Progress mine) {
    over_ = over_ || broken_ || go_on(mine);
    return over_;
}

bool Consensus::go_on(Progress mine) {
    int done = 1;
    std::size_t left = 0;
    for (std::size_t c = 0; c < children_.size(); ++c) {
        check(PMPI_Test(&requests_[c], &done, MPI_STATUS_IGNORE));
        if (!done)
            ++left;
        else if (from_children_[c] != Word{1, mine_[1]})
            some_failed_ = true;
    }
    done = is_root_ ? 0 : 1;
    if (!is_root_) check(PMPI_Test(&request_from_parent(), &done, MPI_STATUS_IGNORE));
    if (broken_) return true;
    if (done) decided_ = true;
    if (decided_ && !told_) some_failed_ = true;
    if (mine == Progress::failed) some_failed_ = true;
    const bool known = some_failed_ || (mine == Progress::done && left == 0);
    if (known && is_root_) {
        if (!decided_) told_ = some_failed_ ? 0 : 1;
        decided_ = true;
    }
    if (known && !is_root_ && !told_up_) {
        told_up_ = true;
        mine_[0] = some_failed_ ? 0 : 1;
        check(PMPI_Isend(mine_.data(), 2, MPI_INT, parent_, up_tag_, comm_, &request_to_parent()));
    }
    if (decided_ && !told_down_) {
        told_down_ = true;
        for (std::size_t c = 0; c < children_.size(); ++c)
            check(PMPI_Isend(&told_, 1, MPI_INT, children_[c], down_tag_, comm_, &requests_[children_.size() + c]));
    }
    if (!decided_ || left > 0 || mine == Progress::under_way || (!is_root_ && !told_up_)) return broken_;
    check(PMPI_Testall(static_cast<int>(requests_.size()), requests_.data(), &done, MPI_STATUSES_IGNORE));
    return done != 0 || broken_;
}

}  // namespace palmette::runtime
