#include "palmette/runtime/network/leaders.hpp"

#include <sched.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "palmette/runtime/transport/outstanding.hpp"

namespace palmette::runtime {
namespace {

constexpr int data_tag = 0, abort_tag = 1;
constexpr int failed = -1;

}  // namespace

Leaders::Leaders(MPI_Comm comm, int member) {
    MPI_Comm made = MPI_COMM_NULL;
    const int error = PMPI_Comm_split(comm, member < 0 ? MPI_UNDEFINED : 0, member, &made);
    if (error != MPI_SUCCESS || made == MPI_COMM_NULL) return;
    comm_ = made;
    PMPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
    PMPI_Comm_rank(comm_, &rank_);
    PMPI_Comm_size(comm_, &size_);
    sent_to_.resize(static_cast<std::size_t>(size_));
    received_from_.resize(static_cast<std::size_t>(size_));
}

Leaders::~Leaders() { free(); }

void Leaders::free() noexcept {
    int finalized = 0;
    PMPI_Finalized(&finalized);
    if (comm_ != MPI_COMM_NULL && finalized == 0) PMPI_Comm_free(&comm_);
    comm_ = MPI_COMM_NULL;
}

int Leaders::send(int to, int tag, const void* data, int bytes) noexcept {
    try {
        std::erase_if(sent_, [](PendingSend& one) {
            int done = 0;
            return PMPI_Test(&one.request, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS && done != 0;
        });
        const char* const begin = static_cast<const char*>(data);
        PendingSend& one = sent_.emplace_back();
        one.bytes.assign(begin, begin + bytes);
        if (PMPI_Isend(one.bytes.data(), bytes, MPI_BYTE, to, tag, comm_, &one.request) != MPI_SUCCESS) {
            sent_.pop_back();
            return failed;
        }
    } catch (const std::bad_alloc&) {
        return failed;
    }
    ++sent_to_[static_cast<std::size_t>(to)];
    return 0;
}

int Leaders::receive(int from, void* data, int bytes) noexcept {
    MPI_Request request = MPI_REQUEST_NULL;
    if (PMPI_Irecv(data, bytes, MPI_BYTE, from, data_tag, comm_, &request) != MPI_SUCCESS) return failed;
    for (;;) {
        int done = 0;
        MPI_Status status;
        if (PMPI_Test(&request, &done, &status) != MPI_SUCCESS) return failed;
        if (done != 0) break;
        if (aborted().member >= 0) {
            // It may have come in between.
            PMPI_Cancel(&request);
            PMPI_Wait(&request, &status);
            int cancelled = 0;
            PMPI_Test_cancelled(&status, &cancelled);
            if (cancelled == 0) ++received_from_[static_cast<std::size_t>(from)];
            return failed;
        }
        idle();
    }
    ++received_from_[static_cast<std::size_t>(from)];
    return 0;
}

int Leaders::bcast(void* buffer, int bytes, int root) noexcept {
    if (refuses_ || aborted().member >= 0) return failed;
    const int me = (rank_ - root + size_) % size_;
    int below = 1;
    while (below < size_ && me % (2 * below) == 0) below *= 2;
    if (me != 0)
        if (const int error = receive((me - below + root) % size_, buffer, bytes)) return error;
    for (int distance = below / 2; distance > 0; distance /= 2)
        if (me + distance < size_)
            if (const int error = send((me + distance + root) % size_, data_tag, buffer, bytes)) return error;
    return 0;
}

int Leaders::barrier() noexcept {
    if (refuses_ || aborted().member >= 0) return failed;
    char token = 0;
    for (int distance = 1; distance < size_; distance *= 2) {
        if (const int error = send((rank_ + distance) % size_, data_tag, &token, 1)) return error;
        if (const int error = receive((rank_ - distance + size_) % size_, &token, 1)) return error;
    }
    return 0;
}

int Leaders::gather(int root, const void* from, void* to, int bytes) noexcept {
    if (refuses_ || aborted().member >= 0) return failed;
    if (rank_ != root) return send(root, data_tag, from, bytes);
    for (int member = 0; member < size_; ++member) {
        char* const at = static_cast<char*>(to) + static_cast<std::size_t>(member) * static_cast<std::size_t>(bytes);
        if (member == root)
            std::memmove(at, from, static_cast<std::size_t>(bytes));
        else if (const int error = receive(member, at, bytes))
            return error;
    }
    return 0;
}

void Leaders::abort(aggregate::Reason reason) noexcept {
    if (told_) return;
    told_ = true;
    const int code = static_cast<int>(reason);
    for (int member = 0; member < size_; ++member)
        if (member != rank_) send(member, abort_tag, &code, sizeof code);
}

aggregate::sharp::OutOfBand::AbortNotice Leaders::aborted() noexcept {
    if (aborted_.member >= 0) return aborted_;
    int found = 0;
    MPI_Status status;
    if (PMPI_Iprobe(MPI_ANY_SOURCE, abort_tag, comm_, &found, &status) != MPI_SUCCESS || found == 0) return aborted_;
    int code = 0;
    if (PMPI_Recv(&code, sizeof code, MPI_BYTE, status.MPI_SOURCE, abort_tag, comm_, MPI_STATUS_IGNORE) != MPI_SUCCESS)
        return aborted_;
    ++received_from_[static_cast<std::size_t>(status.MPI_SOURCE)];
    aborted_ = {status.MPI_SOURCE, static_cast<aggregate::Reason>(code)};
    return aborted_;
}

bool Leaders::settle() noexcept {
    bool good = true;
    try {
        std::vector<std::uint32_t> to_me(sent_to_.size());
        MPI_Request request = MPI_REQUEST_NULL;
        const auto wait = [&] {
            int done = 0;
            while (good && done == 0) {
                good = PMPI_Test(&request, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS;
                if (done == 0) idle();
            }
        };
        good = PMPI_Ialltoall(sent_to_.data(), 1, MPI_UINT32_T, to_me.data(), 1, MPI_UINT32_T, comm_, &request) ==
               MPI_SUCCESS;
        wait();
        std::vector<char> dropped;
        for (int from = 0; from < size_ && good; ++from)
            for (auto& received = received_from_[static_cast<std::size_t>(from)];
                 received < to_me[static_cast<std::size_t>(from)] && good; ++received) {
                MPI_Status status;
                int found = 0, bytes = 0;
                while (good && found == 0) {
                    good = PMPI_Iprobe(from, MPI_ANY_TAG, comm_, &found, &status) == MPI_SUCCESS;
                    if (found == 0) idle();
                }
                PMPI_Get_count(&status, MPI_BYTE, &bytes);
                dropped.resize(static_cast<std::size_t>(bytes));
                good = good && PMPI_Recv(dropped.data(), bytes, MPI_BYTE, from, status.MPI_TAG, comm_,
                                         MPI_STATUS_IGNORE) == MPI_SUCCESS;
            }
        for (PendingSend& one : sent_) {
            request = one.request;
            wait();
        }
    } catch (const std::bad_alloc&) {
        good = false;
    }
    sent_.clear();
    std::fill(sent_to_.begin(), sent_to_.end(), 0);
    std::fill(received_from_.begin(), received_from_.end(), 0);
    aborted_ = {};
    told_ = refuses_ = false;
    return good;
}

void Leaders::idle() noexcept {
    if (has_outstanding()) progress_background();
    sched_yield();
}

}  // namespace palmette::runtime
