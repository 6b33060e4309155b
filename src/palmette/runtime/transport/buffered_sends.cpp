#include "palmette/runtime/transport/buffered_sends.hpp"

#include <cstring>

namespace palmette::runtime {

BufferedSends& BufferedSends::instance() {
    // Never destroyed: messages may be in flight until MPI_Finalize.
    static BufferedSends* buffered_sends = new BufferedSends;
    return *buffered_sends;
}

bool BufferedSends::send(const char* data, int count, int peer, int tag, MPI_Comm comm, int& error) {
    if (buffer_.empty()) {
        buffer_.resize(most_outstanding * static_cast<std::size_t>(longest));
        requests_.fill(MPI_REQUEST_NULL);
    }
    MPI_Request& request = requests_[next_];
    if (request != MPI_REQUEST_NULL) {
        int done = 0;
        error = PMPI_Test(&request, &done, MPI_STATUS_IGNORE);
        if (error != MPI_SUCCESS) return true;
        if (!done) return false;
    }
    char* copy = buffer_.data() + next_ * static_cast<std::size_t>(longest);
    std::memcpy(copy, data, static_cast<std::size_t>(count));
    error = PMPI_Isend(copy, count, MPI_BYTE, peer, tag, comm, &request);
    next_ = (next_ + 1) % most_outstanding;
    return true;
}

void BufferedSends::drain() {
    if (!buffer_.empty()) PMPI_Waitall(static_cast<int>(most_outstanding), requests_.data(), MPI_STATUSES_IGNORE);
}

}  // namespace palmette::runtime
