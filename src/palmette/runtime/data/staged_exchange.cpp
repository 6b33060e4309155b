#include "palmette/runtime/data/staged_exchange.hpp"

#include <algorithm>

namespace palmette::runtime {
namespace {

/// Calls `visit(rank, bytes)` for the blocks of a staged buffer, which lie one after the other, in a range of it.
template <class Visit>
void each_block(const CallerBuffer& buffer, int ranks, std::int64_t offset, std::int64_t bytes, Visit visit) {
    int low = 0;
    for (int high = ranks; low < high;) {
        const int middle = low + (high - low) / 2;
        if (buffer.offset(middle) + buffer.bytes(middle) <= offset)
            low = middle + 1;
        else
            high = middle;
    }
    for (int rank = low; rank < ranks && buffer.offset(rank) < offset + bytes; ++rank) {
        const std::int64_t begin = std::max(offset, buffer.offset(rank));
        const std::int64_t end = std::min(offset + bytes, buffer.offset(rank) + buffer.bytes(rank));
        if (begin < end) visit(rank, end - begin);
    }
}

}  // namespace

void StagedExchange::open(CallerBuffer& send, CallerBuffer& recv, const execute::Bases& bases, bool packed,
                          MPI_Comm comm) {
    send_ = &send;
    recv_ = &recv;
    bases_ = bases;
    comm_ = comm;
    packed_.assign(static_cast<std::size_t>(send.ranks_of_blocks()), packed || !send.is_staged() ? 1 : 0);
    left_.resize(static_cast<std::size_t>(recv.ranks_of_blocks()));
    error_ = MPI_SUCCESS;
    for (std::size_t rank = 0; rank < left_.size(); ++rank) left_[rank] = recv_->bytes(static_cast<int>(rank));
}

int StagedExchange::about_to_read(std::int64_t offset, std::int64_t bytes) {
    int error = MPI_SUCCESS;
    if (!send_->is_staged()) return error;
    each_block(*send_, static_cast<int>(packed_.size()), offset, bytes, [&](int rank, std::int64_t) {
        char& packed = packed_[static_cast<std::size_t>(rank)];
        if (packed || error != MPI_SUCCESS) return;
        error = send_->pack_if_staged(rank, bases_.send, comm_);
        packed = 1;
    });
    return error;
}

void StagedExchange::wrote(std::int64_t offset, std::int64_t bytes) {
    if (!recv_->is_staged()) return;
    each_block(*recv_, static_cast<int>(left_.size()), offset, bytes, [&](int rank, std::int64_t part) {
        std::int64_t& left = left_[static_cast<std::size_t>(rank)];
        left -= part;
        if (left != 0) return;
        left = -1;
        if (const int error = recv_->unpack_if_staged(rank, bases_.recv, comm_); error_ == MPI_SUCCESS) error_ = error;
    });
}

int StagedExchange::close() {
    for (std::size_t rank = 0; rank < left_.size() && error_ == MPI_SUCCESS; ++rank)
        if (left_[rank] > 0) error_ = recv_->unpack_if_staged(static_cast<int>(rank), bases_.recv, comm_);
    return error_;
}

}  // namespace palmette::runtime
