#include "palmette/runtime/caller_buffers.hpp"

namespace palmette::runtime {
namespace {

char* writable(const void* buffer) { return static_cast<char*>(const_cast<void*>(buffer)); }

char* make_room(std::vector<char>& room, std::int64_t bytes) {
    // Never empty, so that the address is one.
    if (room.size() <= static_cast<std::size_t>(bytes)) room.resize(static_cast<std::size_t>(bytes) + 1);
    return room.data();
}

}  // namespace

bool OneBlock::set(const void* buffer, int count, MPI_Datatype type) {
    buffer_ = writable(buffer);
    count_ = count;
    type_ = type;
    return count >= 0 && buffer != MPI_IN_PLACE && size_of(type, shape_);
}

int OneBlock::open_to_read(std::vector<char>& room, MPI_Comm comm, char*& base) {
    if (const int error = complete(type_, shape_)) return error;
    base = shape_.dense ? buffer_ : make_room(room, bytes());
    return shape_.dense ? MPI_SUCCESS : pack(buffer_, count_, type_, shape_, base, comm);
}

int OneBlock::open_to_write(std::vector<char>& room, char*& base) {
    if (const int error = complete(type_, shape_)) return error;
    base = shape_.dense ? buffer_ : make_room(room, bytes());
    return MPI_SUCCESS;
}

int OneBlock::close(const char* base, MPI_Comm comm) {
    return shape_.dense ? MPI_SUCCESS : unpack(base, count_, type_, shape_, buffer_, comm);
}

bool AllBlocks::set(const void* buffer, int count, MPI_Datatype type, int ranks) {
    buffer_ = writable(buffer);
    ranks_ = ranks;
    count_ = count;
    type_ = type;
    if (count < 0 || buffer == MPI_IN_PLACE || !size_of(type, shape_)) return false;
    total_ = ranks * bytes(0);
    return true;
}

bool AllBlocks::set(const void* buffer, const int* counts, const int* displacements, MPI_Datatype type, int ranks) {
    buffer_ = writable(buffer);
    ranks_ = ranks;
    counts_ = counts;
    displacements_ = displacements;
    type_ = type;
    if (!counts || !displacements || buffer == MPI_IN_PLACE || !size_of(type, shape_)) return false;
    for (int r = 0; r < ranks; ++r) {
        if (counts[r] < 0) return false;
        total_ += bytes(r);
    }
    return true;
}

int AllBlocks::prepare() {
    if (const int error = complete(type_, shape_)) return error;
    if (!counts_) return MPI_SUCCESS;
    std::int64_t packed = 0;
    for (int r = 0; r < ranks_; ++r) {
        lengths_.push_back(bytes(r));
        offsets_.push_back(shape_.dense ? displacements_[r] * shape_.extent : packed);
        packed += bytes(r);
    }
    return MPI_SUCCESS;
}

char* AllBlocks::typed(int rank) const {
    return buffer_ + (displacements_ ? displacements_[rank] : rank * count_) * shape_.extent;
}

int AllBlocks::open_to_read(std::vector<char>& room, MPI_Comm comm, int skip, char*& base) {
    base = through_room() ? make_room(room, total_) : buffer_;
    for (int r = 0; through_room() && r < ranks_; ++r)
        if (r != skip)
            if (const int error = bring(r, base, comm)) return error;
    return MPI_SUCCESS;
}

int AllBlocks::open_to_write(std::vector<char>& room, char*& base) {
    base = through_room() ? make_room(room, total_) : buffer_;
    return MPI_SUCCESS;
}

int AllBlocks::bring(int rank, char* base, MPI_Comm comm) const {
    return through_room() ? pack(typed(rank), count(rank), type_, shape_, base + offset(rank), comm) : MPI_SUCCESS;
}

int AllBlocks::close(const char* base, MPI_Comm comm, int skip) const {
    for (int r = 0; through_room() && r < ranks_; ++r)
        if (r != skip)
            if (const int error = unpack(base + offset(r), count(r), type_, shape_, typed(r), comm)) return error;
    return MPI_SUCCESS;
}

Layout AllBlocks::layout(plan::Buffer side) const {
    Layout layout;
    layout.all_ranks = side;
    layout.uniform_bytes = counts_ ? 0 : bytes(0);
    layout.lengths = counts_ ? lengths_.data() : nullptr;
    layout.offsets = counts_ ? offsets_.data() : nullptr;
    return layout;
}

}  // namespace palmette::runtime
