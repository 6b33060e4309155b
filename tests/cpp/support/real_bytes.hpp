// What collectives do to real bytes: buffers filled so that each byte tells where it comes from, and what must be in
// them in the end.
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include "palmette/execute/memory.hpp"
#include "palmette/plan/space.hpp"

namespace palmette::test {

/// An element of 8 bytes: x -> a x + b. Composing them is associative, and commutative where both are translations (a =
/// 1).
struct Affine {
    std::uint32_t a, b;
    friend bool operator==(const Affine&, const Affine&) = default;
};
inline Affine then(Affine left, Affine right) { return {left.a * right.a, left.b * right.a + right.b}; }

/// A reduction's operation on the host.
class AffineMemory : public execute::HostMemory {
  public:
    int combine(std::uint8_t, const char* left, const char* right, char* target, std::int64_t bytes) override {
        for (std::int64_t at = 0; at < bytes; at += 8) {
            Affine l{}, r{};
            std::memcpy(&l, left + at, 8);
            std::memcpy(&r, right + at, 8);
            const Affine out = then(l, r);
            std::memcpy(target + at, &out, 8);
        }
        return 0;
    }
    std::int64_t element_bytes(std::uint8_t) const override { return 8; }
};

/// One collective's buffers of all ranks.
class RealBytes {
  public:
    RealBytes(const plan::Request& request, const topology::Job& job, const std::vector<plan::Program>& programs)
        : request_(request), job_(job), programs_(programs) {
        for (const plan::Program& program : programs) {
            std::vector<char>& send = sends_.emplace_back(room(), 'x');
            recvs_.emplace_back(room(), 'y');
            const plan::Blocks before = plan::blocks_before(request, job, program);
            for (const plan::Interval& interval : before.intervals())
                for (std::int64_t b = interval.first; b < interval.end(); ++b)
                    fill(send.data() + offset(program, plan::Buffer::send, b), program.rank.value, b);
        }
    }

    char* send(std::size_t rank) { return sends_[rank].data(); }
    char* recv(std::size_t rank) { return recvs_[rank].data(); }
    /// The length of each.
    std::size_t room() const { return static_cast<std::size_t>(request_.block_bytes * (cut() ? 1 : job_.size()) + 8); }

    /// Whether every rank has what it has to.
    bool right() const {
        for (std::size_t r = 0; r < programs_.size(); ++r) {
            const plan::Blocks after = plan::blocks_after(request_, job_, programs_[r]);
            for (const plan::Interval& interval : after.intervals())
                for (std::int64_t b = interval.first; b < interval.end(); ++b)
                    if (!holds(r, b)) return false;
        }
        return true;
    }

  private:
    bool cut() const { return plan::space_of(request_.collective) == plan::BlockSpace::cut; }
    std::int64_t length(std::int64_t b) const {
        return cut() ? plan::cut_length(request_.block_bytes, programs_[0].cut, request_.element_bytes, b)
                     : request_.block_bytes;
    }
    std::int64_t owner(std::int64_t index) const { return plan::owner_of(job_, programs_[0].order, index).value; }

    std::int64_t offset(const plan::Program& program, plan::Buffer buffer, std::int64_t b) const {
        using plan::Collective;
        const std::int64_t bytes = request_.block_bytes, p = job_.size();
        if (cut()) return plan::cut_begin(bytes, program.cut, request_.element_bytes, b);
        if (request_.collective == Collective::alltoall)
            return owner(buffer == plan::Buffer::send ? b % p : b / p) * bytes;
        const bool all_in_send =
            request_.collective == Collective::scatter || request_.collective == Collective::reduce_scatter;
        return (buffer == plan::Buffer::send) == all_in_send ? owner(b) * bytes : 0;
    }

    Affine element(std::int64_t rank, std::int64_t block, std::int64_t at) const {
        const auto seed = static_cast<std::uint32_t>(rank * 7919 + block * 104729 + at * 31 + 1);
        return {request_.ordered ? 2 * seed + 1 : 1, seed * 2654435761U};
    }
    void fill(char* to, std::int32_t rank, std::int64_t block) const {
        const std::int64_t bytes = length(block);
        if (!plan::is_reduction(request_.collective)) {
            for (std::int64_t i = 0; i < bytes; ++i) to[i] = byte(block, i);
            return;
        }
        for (std::int64_t i = 0; i < bytes; i += 8) {
            const Affine mine = element(rank, block, i);
            std::memcpy(to + i, &mine, 8);
        }
    }
    static char byte(std::int64_t block, std::int64_t at) {
        return static_cast<char>((block * 131 + at * 17 + (block >> 8)) & 0xff);
    }

    bool holds(std::size_t r, std::int64_t block) const {
        const plan::Program& program = programs_[r];
        const char* found = recvs_[r].data() + offset(program, plan::Buffer::recv, block);
        if (!plan::is_reduction(request_.collective)) {
            for (std::int64_t i = 0; i < length(block); ++i)
                if (found[i] != byte(block, i)) return false;
            return true;
        }
        const std::int32_t end = request_.collective == plan::Collective::scan     ? program.rank.value + 1
                                 : request_.collective == plan::Collective::exscan ? program.rank.value
                                                                                   : job_.size();
        for (std::int64_t i = 0; i < length(block); i += 8) {
            Affine expected = element(0, block, i), got{};
            for (std::int32_t from = 1; from < end; ++from) expected = then(expected, element(from, block, i));
            std::memcpy(&got, found + i, 8);
            if (!(got == expected)) return false;
        }
        return true;
    }

    const plan::Request& request_;
    const topology::Job& job_;
    const std::vector<plan::Program>& programs_;
    std::vector<std::vector<char>> sends_, recvs_;
};

}  // namespace palmette::test
