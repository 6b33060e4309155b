// One random case of a reduction: reduce, allreduce, reduce_scatter, reduce_scatter_block, scan, exscan.
#pragma once

#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "buffer.hpp"
#include "call.hpp"
#include "case.hpp"
#include "operands.hpp"
#include "outcome.hpp"
#include "own_operations.hpp"

namespace test {

/// What reductions of a run draw from.
struct Operations {
    std::vector<Operand> predefined;
    std::vector<OwnOperation> own;
};

class ReducingCase {
  public:
    ReducingCase(const CaseContext& context, Function function, const Operations& operations)
        : context_(context),
          function_(function),
          operations_(operations),
          rngs_(context, world_rank + 1),
          rank_(context.rank),
          size_(context.size) {}

    void run(Outcome& outcome, Outcome& rival) {
        prepare();
        current_shape = &operand_.shape;
        const bool all_in_recv = in_place_ && is_scattering();
        const int in_send = in_place_ ? 0 : total_;
        Buffer send(rngs_.own, *layout_, in_send);
        Buffer recv(rngs_.own, *layout_, here_ ? (all_in_recv ? total_ : result_count()) : 0);
        write(in_place_ ? recv : send, contribution(rank_), 0, total_);

        const int naps = rngs_.shared.one_in(6) ? rngs_.own.below(3) : 0;
        const bool mpi_first = rngs_.shared.one_in(2);
        const bool large = rngs_.shared.one_in(5) && context_.large_counts;
        Buffer our_send = send, our_recv = recv, their_send = send, their_recv = recv;
        int our_code = MPI_SUCCESS, their_code = MPI_SUCCESS;
        for (int turn = 0; turn < 2; ++turn) {
            if (naps > 0) usleep(static_cast<unsigned>(naps) * 500);
            if ((turn == 0) == mpi_first) {
                BufferElsewhere send_there(rngs_.own, our_send), recv_there(rngs_.own, our_recv);
                our_code = through_mpi(make_call(send_there, recv_there), large, size_);
                send_there.take_back();
                recv_there.take_back();
            } else if (!context_.alone) {
                their_code = call_pmpi(make_call(their_send, their_recv));
            }
        }
        const bool calm = our_code == their_code && our_send == send;
        if (!context_.alone && calm && our_recv == with_result(recv, their_recv, our_recv)) {
            outcome.check(true, "right");
            return;
        }
        const Buffer right = with_result(recv, folded(recv), our_recv);
        if (calm && our_recv == right) {
            outcome.check(true, "right");
            if (!context_.alone) rival.check(false, "%s", doing);
            return;
        }
        const bool theirs_right = their_send == send && their_recv == with_result(recv, folded(recv), their_recv);
        outcome.check(false,
                      "%s, %s%s%s%s, %s in %s, counts %s: code %d (PMPI_ %d), own side %s (byte %ld), result %s (byte "
                      "%ld), PMPI_ %s",
                      doing, operand_.name.c_str(), is_rooted(function_) ? ", root " : "",
                      is_rooted(function_) ? std::to_string(root_).c_str() : "", in_place_ ? ", in place" : "",
                      large ? "large counts" : "plain counts", layout_->name().c_str(), counts_text().c_str(), our_code,
                      their_code, our_send == send ? "right" : "WRITTEN TO", our_send.first_difference(send),
                      our_recv == right ? "right" : "WRONG", our_recv.first_difference(right),
                      context_.alone ? "not asked"
                      : theirs_right ? "right"
                                     : "wrong, too");
    }

  private:
    bool is_scattering() const {
        return function_ == Function::reduce_scatter || function_ == Function::reduce_scatter_block;
    }
    int result_count() const { return is_scattering() ? counts_[static_cast<std::size_t>(rank_)] : total_; }
    int first_of_result() const {
        return is_scattering() ? std::accumulate(counts_.begin(), counts_.begin() + rank_, 0) : 0;
    }

    /// Draws all arguments. Types and counts are the same on all ranks, as reductions want it.
    void prepare() {
        Rng& shared = rngs_.shared;
        root_ = shared.below(size_);
        in_place_ = shared.one_in(4);
        here_ = !is_rooted(function_) || rank_ == root_;
        if (!here_) in_place_ = false;
        const int limit = byte_limit(shared);
        // Operations first, since some have few types.
        const bool own = shared.one_in(3);
        int element_bytes = 0;
        const OwnOperation& operation = shared.pick(operations_.own);
        const Operand& predefined = pick_predefined(shared);
        if (own) {
            element_bytes = operation.words * operation.word_bytes;
        } else {
            element_bytes = std::max(1, static_cast<int>(predefined.shape.extent));
        }
        draw_counts(shared, std::max(1, limit / element_bytes));
        if (own) {
            operand_.name = operation.name;
            operand_.op = operation.op;
            layout_.emplace(own_layout(shared, operation, total_, freedom(operation), operand_.shape));
            operand_.type = layout_->type();
        } else {
            operand_ = predefined;
            layout_.emplace(Layout(predefined.type, false, 1, "basic"));
        }
    }

    /// Layouts of elements that the MPI reduces rightly: palmette leaves some calls to it even where PMPI_ isn't
    /// called.
    Freedom freedom([[maybe_unused]] const OwnOperation& operation) const {
#ifndef OPEN_MPI
        if (is_intel()) return Freedom::contiguous;
        // MPICH 5.0.2 forgets the gap behind an element where it makes room for such a call.
        if (is_scattering() && !operation.commutes) return Freedom::no_gap_behind;
#else
        // Open MPI 5.0.11's ring allocates too little memory for elements that have gaps, and writes behind it.
        if (function_ == Function::allreduce && operation.commutes) return Freedom::contiguous;
#endif
        return Freedom::any;
    }

    const Operand& pick_predefined(Rng& shared) const {
        const Operand& any = shared.pick(operations_.predefined);
        // Half of them with numbers that programs really use.
        if (shared.one_in(2) || any.group == 'P') return any;
        std::vector<const Operand*> same;
        for (const Operand& one : operations_.predefined) {
            if (one.op == any.op && (one.type == MPI_DOUBLE || one.type == MPI_INT || one.type == MPI_FLOAT))
                same.push_back(&one);
        }
        return same.empty() ? any : *shared.pick(same);
    }

    void draw_counts(Rng& shared, int most) {
        const bool nothing = shared.one_in(12);
        if (!is_scattering()) {
            total_ = nothing ? 0 : shared.between(1, most);
            return;
        }
        const int common = nothing ? 0 : shared.between(0, std::max(1, most / size_));
        for (int r = 0; r < size_; ++r) {
            int count = common;
            if (function_ == Function::reduce_scatter && shared.one_in(2))
                count = shared.one_in(4) ? 0 : shared.between(0, std::max(1, 2 * most / size_));
            counts_.push_back(nothing ? 0 : count);
            total_ += counts_.back();
        }
    }

    /// The data of a rank, element by element, each as it lies in memory or, with own operations, word by word.
    std::vector<char> contribution(int rank) const {
        Rng rng(context_.seed, static_cast<std::uint64_t>(context_.number),
                (std::uint64_t{1} << 33) + static_cast<std::uint64_t>(rank));
        std::size_t bytes = static_cast<std::size_t>(operand_.shape.extent);
        if (!operand_.predefined) {
            bytes = 0;
            for (const Shape::Range& range : operand_.shape.ranges) bytes += range.bytes;
        }
        std::vector<char> data(bytes * static_cast<std::size_t>(total_));
        if (operand_.predefined) {
            fill_exact(data, operand_, rng);
        } else {
            rng.fill(data.data(), data.size());
        }
        return data;
    }

    void write(Buffer& buffer, const std::vector<char>& data, int first, int count) const {
        if (count == 0) return;
        const Shape& shape = operand_.shape;
        if (operand_.predefined) {
            const auto width = static_cast<std::size_t>(shape.extent);
            std::memcpy(buffer.address(), &data[static_cast<std::size_t>(first) * width],
                        static_cast<std::size_t>(count) * width);
            return;
        }
        const std::size_t word = shape.ranges[0].bytes;
        const char* from = data.data() + static_cast<std::size_t>(first) * word * shape.ranges.size();
        for (int i = 0; i < count; ++i) {
            for (const Shape::Range& range : shape.ranges) {
                std::memcpy(buffer.address() + i * shape.extent + range.offset, from, word);
                from += word;
            }
        }
    }

    /// `before` with the result's data out of `result`, and out of `ours` what means nothing.
    Buffer with_result(const Buffer& before, const Buffer& result, const Buffer& ours) const {
        Buffer out = before;
        if (!here_ || (function_ == Function::exscan && rank_ == 0)) return out;
        const Shape& shape = operand_.shape;
        const int count = result_count();
        const int behind = in_place_ && is_scattering() ? total_ : count;  // may hold anything
        const bool whole = shape.ranges.size() == 1 && static_cast<MPI_Aint>(shape.ranges[0].bytes) == shape.extent;
        if (whole) {
            const auto width = static_cast<std::size_t>(shape.extent);
            std::memcpy(out.address(), result.address(), width * static_cast<std::size_t>(count));
            std::memcpy(out.address() + shape.extent * count, ours.address() + shape.extent * count,
                        width * static_cast<std::size_t>(behind - count));
            return out;
        }
        for (int i = 0; i < behind; ++i) {
            for (const Shape::Range& range : shape.ranges) {
                const Buffer& from = range.padding || i >= count ? ours : result;
                const MPI_Aint at = i * shape.extent + range.offset;
                std::memcpy(out.address() + at, from.address() + at, range.bytes);
            }
        }
        return out;
    }

    /// The result without any collective: the ranks' data one after the other, by PMPI_Reduce_local.
    Buffer folded(const Buffer& recv) {
        const int last = function_ == Function::scan ? rank_ : function_ == Function::exscan ? rank_ - 1 : size_ - 1;
        const int first = first_of_result();
        const int count = result_count();
        Buffer sum = recv;
        if (!here_ || last < 0 || count == 0) return sum;
        Buffer left(rngs_.own, *layout_, count);
        write(left, contribution(0), first, count);
        for (int rank = 1; rank <= last; ++rank) {
            Buffer right(rngs_.own, *layout_, count);
            write(right, contribution(rank), first, count);
            PMPI_Reduce_local(left.address(), right.address(), count, operand_.type, operand_.op);
            left = right;
        }
        for (int i = 0; i < count; ++i) {
            for (const Shape::Range& range : operand_.shape.ranges) {
                const MPI_Aint at = i * operand_.shape.extent + range.offset;
                std::memcpy(sum.address() + at, left.address() + at, range.bytes);
            }
        }
        return sum;
    }

    template <class Memory>
    Call make_call(Memory& send, Memory& recv) const {
        Call call{function_};
        call.sendbuf = in_place_ ? MPI_IN_PLACE : send.address();
        call.recvbuf = here_ ? recv.address() : nullptr;
        call.recvcount = function_ == Function::reduce_scatter_block ? counts_[0] : total_;
        call.recvcounts = counts_.data();
        call.recvtype = operand_.type;
        call.op = operand_.op;
        call.root = root_;
        call.comm = context_.comm;
        return call;
    }

    std::string counts_text() const {
        if (!is_scattering()) return std::to_string(total_);
        std::string out;
        for (const int count : counts_) out += (out.empty() ? "" : ", ") + std::to_string(count);
        return out;
    }

    const CaseContext& context_;
    Function function_;
    const Operations& operations_;
    CaseRngs rngs_;
    int rank_, size_, root_ = 0, total_ = 0;
    bool in_place_ = false, here_ = true;
    std::vector<int> counts_;
    Operand operand_;
    std::optional<Layout> layout_;
};

}  // namespace test
