#include "palmette/runtime/data/caller_buffer.hpp"

#include <algorithm>

namespace palmette::runtime {
namespace {

char* writable(const void* buffer) { return static_cast<char*>(const_cast<void*>(buffer)); }

}  // namespace

void CallerBuffer::clear() {
    buffer_ = nullptr;
    present_ = staging_forced_ = is_placeholder_ = false;
    dense_ = true;
    ranks_ = 0;
    count_ = total_ = 0;
    counts_ = displacements_ = Counts();
    types_ = nullptr;
    type_ = MPI_DATATYPE_NULL;
    operation_ = nullptr;
    shape_ = {};
    shapes_.clear();
    lengths_.clear();
    offsets_.clear();
    starts_.clear();
}

bool CallerBuffer::one(const void* buffer, std::int64_t count, MPI_Datatype type) {
    clear();
    present_ = true;
    buffer_ = writable(buffer);
    count_ = count;
    type_ = type;
    if (count < 0 || buffer == MPI_IN_PLACE || !size_of(type, shape_)) return false;
    total_ = bytes();
    return true;
}

void CallerBuffer::elements(const void* buffer, std::int64_t count, const Operation& operation, MPI_Datatype type) {
    clear();
    present_ = true;
    buffer_ = writable(buffer);
    count_ = count;
    type_ = type;
    operation_ = &operation;
    shape_ = {operation.layout().size, operation.layout().extent, operation.layout().dense()};
    total_ = bytes();
}

bool CallerBuffer::blocks(const Side& side, int ranks) {
    if (side.form == Side::Form::typed) return blocks_of_types(side, ranks);
    const bool alike = side.form == Side::Form::alike;
    if (!one(side.buffer, alike ? side.count : 0, side.type)) return false;
    ranks_ = ranks;
    if (alike) {
        total_ = ranks * bytes(0);
        return true;
    }
    if (!side.counts || !side.displacements) return false;
    counts_ = side.counts;
    displacements_ = side.displacements;
    for (int r = 0; r < ranks; ++r) {
        if (counts_[r] < 0) return false;
        total_ += bytes(r);
    }
    return true;
}

bool CallerBuffer::blocks_of_types(const Side& side, int ranks) {
    clear();
    if (!side.counts || !side.displacements || !side.types || side.in_place()) return false;
    present_ = true;
    buffer_ = writable(side.buffer);
    ranks_ = ranks;
    counts_ = side.counts;
    displacements_ = side.displacements;
    types_ = side.types;
    for (int r = 0; r < ranks; ++r) {
        // The datatype of an empty block may be invalid.
        TypeShape& shape = shapes_.emplace_back();
        if (counts_[r] < 0 || (counts_[r] > 0 && !size_of(types_[r], shape))) return false;
        total_ += bytes(r);
    }
    return true;
}

void CallerBuffer::use_placeholder(std::int64_t bytes, int ranks) {
    clear();
    present_ = staging_forced_ = is_placeholder_ = true;
    ranks_ = ranks;
    count_ = bytes;
    type_ = MPI_BYTE;
    shape_ = {1, 1, true};
    total_ = std::max(ranks, 1) * bytes;
}

void CallerBuffer::use_placeholder_lists(int ranks) {
    use_placeholder(0, ranks);
    kept_counts_.assign(static_cast<std::size_t>(ranks), 0);
    counts_ = displacements_ = kept_counts_.data();
}

void CallerBuffer::copy_lists() {
    const auto keep = [this](Counts& list, std::vector<std::int64_t>& kept) {
        if (!list) return;
        kept.resize(static_cast<std::size_t>(ranks_));
        for (int r = 0; r < ranks_; ++r) kept[static_cast<std::size_t>(r)] = list[r];
        list = kept.data();
    };
    keep(counts_, kept_counts_);
    keep(displacements_, kept_displacements_);
    if (!types_) return;
    kept_types_.assign(types_, types_ + ranks_);
    types_ = kept_types_.data();
}

void CallerBuffer::element_blocks(const void* buffer, Counts counts, std::int64_t count, const Operation& operation,
                                  MPI_Datatype type, int ranks) {
    elements(buffer, count, operation, type);
    ranks_ = ranks;
    counts_ = counts;
    total_ = 0;
    for (int r = 0; counts && r < ranks; ++r) total_ += bytes(r);
    if (!counts) total_ = ranks * bytes(0);
}

int CallerBuffer::prepare() {
    if (!present_) return MPI_SUCCESS;
    dense_ = true;
    if (operation_) {
        // MPI's pair types aren't dense: kernels skip their padding, but messages and copies of a plan don't.
        dense_ = operation_->layout().dense();
    } else if (types_) {
        for (int r = 0; r < ranks_; ++r) {
            TypeShape& shape = shapes_[static_cast<std::size_t>(r)];
            if (counts_[r] == 0) continue;
            if (const int error = complete(types_[r], shape)) return error;
            dense_ = dense_ && shape.dense;
        }
    } else {
        if (const int error = complete(type_, shape_)) return error;
        dense_ = shape_.dense;
    }
    if (!counts_) return MPI_SUCCESS;
    std::int64_t packed = 0;
    for (int r = 0; r < ranks_; ++r) {
        lengths_.push_back(bytes(r));
        if (!displacements_) starts_.push_back(packed);
        const bool packs = is_staged() || !displacements_;
        offsets_.push_back(packs ? packed : typed(r) - buffer_);
        packed += bytes(r);
    }
    return MPI_SUCCESS;
}

char* CallerBuffer::typed(int rank) const {
    const std::int64_t extent = shape(rank).extent;
    if (types_) return buffer_ + displacements_[rank];
    if (displacements_) return buffer_ + displacements_[rank] * extent;
    // Without displacements blocks of elements lie one after the other, as far apart as in the plan's memory.
    if (!starts_.empty()) return buffer_ + starts_[static_cast<std::size_t>(rank)];
    return buffer_ + rank * count_ * extent;
}

char* CallerBuffer::make_staging() {
    // Never empty, so that the address isn't null.
    if (staging_.size() <= static_cast<std::size_t>(total_)) staging_.resize(static_cast<std::size_t>(total_) + 1);
    return staging_.data();
}

int CallerBuffer::pack_block(int rank, char* base, MPI_Comm comm) const {
    const std::int64_t elements = count(rank);
    if (elements == 0) return MPI_SUCCESS;
    if (!operation_) return pack(typed(rank), elements, type_of(rank), shape(rank), base + offset(rank), comm);
    if (dense_) {
        std::memcpy(base + offset(rank), typed(rank), static_cast<std::size_t>(bytes(rank)));
        return MPI_SUCCESS;
    }
    packed_.resize(static_cast<std::size_t>(elements * shape_.size) + 1);
    if (const int error = pack(typed(rank), elements, type_, shape_, packed_.data(), comm)) return error;
    return unpack(packed_.data(), elements, type_, shape_, base + offset(rank) - operation_->layout().true_lower, comm);
}

int CallerBuffer::unpack_block(int rank, const char* base, MPI_Comm comm) const {
    const std::int64_t elements = count(rank);
    if (elements == 0) return MPI_SUCCESS;
    if (!operation_) return unpack(base + offset(rank), elements, type_of(rank), shape(rank), typed(rank), comm);
    if (dense_) {
        std::memcpy(typed(rank), base + offset(rank), static_cast<std::size_t>(bytes(rank)));
        return MPI_SUCCESS;
    }
    packed_.resize(static_cast<std::size_t>(elements * shape_.size) + 1);
    const char* from = base + offset(rank) - operation_->layout().true_lower;
    if (const int error = pack(from, elements, type_, shape_, packed_.data(), comm)) return error;
    return unpack(packed_.data(), elements, type_, shape_, typed(rank), comm);
}

int CallerBuffer::open_to_read(MPI_Comm comm, int skip, char*& base) {
    if (!is_staged()) {
        base = buffer_;
        return MPI_SUCCESS;
    }
    base = make_staging();
    for (int r = 0; r < block_count() && !is_placeholder_; ++r)
        if (r != skip)
            if (const int error = pack_block(r, base, comm)) return error;
    return MPI_SUCCESS;
}

void CallerBuffer::open_to_write(char*& base) { base = is_staged() ? make_staging() : buffer_; }

int CallerBuffer::pack_if_staged(int rank, char* base, MPI_Comm comm) const {
    return is_staged() && !is_placeholder_ ? pack_block(rank, base, comm) : MPI_SUCCESS;
}

int CallerBuffer::unpack_if_staged(int rank, const char* base, MPI_Comm comm) const {
    return is_staged() && !is_placeholder_ ? unpack_block(rank, base, comm) : MPI_SUCCESS;
}

int CallerBuffer::close(const char* base, MPI_Comm comm, int skip) {
    if (!is_staged() || is_placeholder_) return MPI_SUCCESS;
    for (int r = 0; r < block_count(); ++r)
        if (r != skip)
            if (const int error = unpack_block(r, base, comm)) return error;
    return MPI_SUCCESS;
}

}  // namespace palmette::runtime
