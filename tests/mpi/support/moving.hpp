// One random case of a collective that moves data: gather, scatter, allgather, their v forms, broadcast, all-to-all in
// its three forms, and barrier.
#pragma once

#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "buffer.hpp"
#include "call.hpp"
#include "case.hpp"
#include "layouts.hpp"
#include "outcome.hpp"
#include "rng.hpp"
#include "sides.hpp"

namespace test {

class MovingCase {
  public:
    MovingCase(const CaseContext& context, Function function)
        : context_(context), function_(function), rngs_(context, world_rank + 1) {}

    /// `rival`: counts the cases in which PMPI_ is wrong and MPI_ isn't.
    void run(Outcome& outcome, Outcome& rival) {
        if (function_ == Function::barrier) return run_barrier(outcome);
        const Unit unit(rngs_.shared);
        prepare(unit);
        unit_bytes_ = context_.plain ? unit.plain_bytes() : unit.size_bytes();
        Call call = make_call();

        Buffer send = send_.buffer(rngs_.own);
        Buffer recv = recv_.buffer(rngs_.own);
        for (const Part& part : send_.parts()) write_part(send, part, contents(part), unit_bytes_, scratch_);
        for (const Part& part : recv_.parts()) {
            // In place the blocks that a rank has for others, or for itself, are where those from there will come.
            const bool own = is_alltoall(function_) || part.source == rank_;
            const bool there = in_place_ ? own : function_ == Function::bcast && rank_ == root_;
            if (there) write_part(recv, part, contents(turned(part)), unit_bytes_, scratch_);
        }
        Buffer right = recv;
        for (const Part& part : recv_.parts()) write_part(right, part, contents(part), unit_bytes_, scratch_);
        const bool scatter_in_place = in_place_ && is_scatter(function_);

        const int naps = rngs_.shared.one_in(6) ? rngs_.own.below(3) : 0;
        const bool mpi_first = rngs_.shared.one_in(2);
        const bool large = rngs_.shared.one_in(5) && context_.large_counts;
        Buffer our_send = send, our_recv = recv, their_send = send, their_recv = recv;
        int our_code = MPI_SUCCESS, their_code = MPI_SUCCESS;
        for (int turn = 0; turn < 2; ++turn) {
            if (naps > 0) usleep(static_cast<unsigned>(naps) * 500);
            if ((turn == 0) == mpi_first) {
                BufferElsewhere send_there(rngs_.own, our_send), recv_there(rngs_.own, our_recv);
                our_code = through_mpi(with_buffers(call, send_there, recv_there), large, size_);
                send_there.take_back();
                recv_there.take_back();
            } else if (!context_.alone) {
                their_code = call_pmpi(with_buffers(call, their_send, their_recv));
            }
        }
        const bool theirs_right = context_.alone || (their_recv == right && their_send == send);
        if (!theirs_right)
            rival.check(false, "%s\n  sends: %s\n  receives: %s", doing, send_.text().c_str(), recv_.text().c_str());
        if (our_code == their_code && our_send == send && our_recv == right) {
            outcome.check(true, "right");
            return;
        }
        outcome.check(false,
                      "%s%s%s, %s: code %d (PMPI_ %d), own side %s (byte %ld), received %s (byte %ld), PMPI_ %s\n"
                      "  sends: %s\n  receives: %s",
                      doing, is_rooted(function_) ? (", root " + std::to_string(root_)).c_str() : "",
                      in_place_ ? ", in place" : "", large ? "large counts" : "plain counts", our_code, their_code,
                      our_send == send ? "right" : "WRITTEN TO", our_send.first_difference(send),
                      our_recv == right ? "right" : "WRONG", our_recv.first_difference(right),
                      context_.alone     ? "not asked"
                      : theirs_right     ? "right"
                      : scatter_in_place ? "wrong in place"
                                         : "wrong, too",
                      send_.text().c_str(), recv_.text().c_str());
    }

  private:
    void run_barrier(Outcome& outcome) {
        using Clock = std::chrono::steady_clock;
        if (rngs_.own.one_in(3)) usleep(static_cast<unsigned>(rngs_.own.below(800)));
        // All ranks are on this host, so they read one clock.
        const long long entered = Clock::now().time_since_epoch().count();
        const int code = MPI_Barrier(context_.comm);
        const long long left = Clock::now().time_since_epoch().count();
        long long last_entered = 0;
        PMPI_Allreduce(&entered, &last_entered, 1, MPI_LONG_LONG, MPI_MAX, context_.comm);
        outcome.check(code == MPI_SUCCESS && left >= last_entered,
                      "%s: code %d, left %lld ns before the last rank entered", doing, code, last_entered - left);
    }

    /// Draws all arguments.
    void prepare(const Unit& unit) {
        rank_ = context_.rank;
        size_ = context_.size;
        root_ = rngs_.shared.below(size_);
        in_place_ = rngs_.shared.one_in(4) && function_ != Function::bcast;
        if (is_rooted(function_) && rank_ != root_) in_place_ = false;
        grain_ = rngs_.shared.pick(grains());
        // MPICH 5.0.2 ends the job ("signature does not match") on structures that take several parts in a receive.
        const bool large_blocks = context_.alone || unit.members() == 1;
        most_ = most_units(unit.size_bytes(), large_blocks);
        common_ = rngs_.shared.one_in(8) ? 0 : rngs_.shared.between(1, most_) * grain_;
        // A type of size zero is everyone's or nobody's: MPICH and Open MPI hang when a count of 0 meets a size of 0.
        nothing_ = rngs_.shared.one_in(2) && !is_v(function_) && common_ == 0 && !context_.plain;
        // The MPIs choose algorithms and cut messages by size and extent of a type as if these were the same on all
        // ranks, and hang or truncate where only signatures are equal: there ranks differ only where PMPI_ isn't
        // called.
        const bool pairwise =
            is_gather(function_) || is_scatter(function_) || (is_alltoall(function_) && is_v(function_));
        Rng& layouts = pairwise || context_.alone ? rngs_.own : rngs_.shared;
        const int items = (most_ * grain_ + 3) * (function_ == Function::alltoallw ? 1 : size_);
        auto add = [&](Side& side) {
            const int units = context_.plain ? 1 : divisor(layouts, grain_);
            side.add_layout(nothing_         ? unit.nothing(layouts)
                            : context_.plain ? unit.plain()
                                             : unit.layout(layouts, units, items));
        };
        // All ranks draw as often, whether they have the side or not.
        const int kinds = function_ == Function::alltoallw ? layouts.between(1, 3) : 1;
        for (int i = 0; i < kinds; ++i) add(send_all_);
        for (int i = 0; i < kinds; ++i) add(recv_all_);
        place();
    }

    static const std::vector<int>& grains() {
        static const std::vector<int> values = {1, 2, 3, 4, 6, 12};
        return values;
    }

    static int divisor(Rng& rng, int grain) {
        int units = 0;
        do units = rng.between(1, grain);
        while (grain % units != 0);
        return units;
    }

    int most_units(int unit_bytes, bool large_blocks) {
        int limit = byte_limit(rngs_.shared);
        if (!large_blocks) limit = std::min(limit, 1000);
        if (function_ != Function::bcast) limit = std::min(limit, std::max(300, 1600000 / size_));
        // p times p blocks in all: the world's ranks share one memory.
        if (is_alltoall(function_)) limit = std::min(limit, std::max(64, 4000000 / size_ / size_));
        return std::max(1, limit / unit_bytes / grain_);
    }

    /// Units that `source` has for `target`; what doesn't count is 0.
    int units(int source, int target) const {
        if (!is_v(function_)) return common_;
        if (is_gather(function_) || is_allgather(function_)) target = 0;
        if (is_scatter(function_)) source = 0;
        if (is_alltoall(function_) && in_place_ && source > target) std::swap(source, target);
        Rng rng(context_.seed, static_cast<std::uint64_t>(context_.number), pair(source, target) + (1U << 24));
        return (rng.one_in(5) ? 0 : rng.between(0, most_)) * grain_;
    }
    static std::uint64_t pair(int source, int target) {
        return (std::uint64_t{1} << 32) + (static_cast<std::uint64_t>(source) << 12) +
               static_cast<std::uint64_t>(target);
    }

    Rng contents(const Part& part) const {
        const bool same_for_all = !is_scatter(function_) && !is_alltoall(function_);
        return Rng(context_.seed, static_cast<std::uint64_t>(context_.number),
                   pair(part.source, same_for_all ? 0 : part.target));
    }
    Part turned(Part part) const {
        if (is_alltoall(function_)) std::swap(part.source, part.target);
        return part;
    }

    /// The blocks of the side that has one for each rank, or the one of the other side.
    void place() {
        const bool here = !is_rooted(function_) || rank_ == root_;
        auto part = [](int source, int target) {
            Part out;
            out.source = source;
            out.target = target;
            return out;
        };
        std::vector<Part> send, recv;
        bool send_listed = false, recv_listed = false;
        if (function_ == Function::bcast) {
            recv = {part(root_, rank_)};
        } else if (is_scatter(function_)) {
            for (int r = 0; here && r < size_; ++r) send.push_back(part(root_, r));
            if (!in_place_) recv = {part(root_, rank_)};
            send_listed = true;
        } else if (is_alltoall(function_)) {
            for (int r = 0; !in_place_ && r < size_; ++r) send.push_back(part(rank_, r));
            for (int r = 0; r < size_; ++r) recv.push_back(part(r, rank_));
            send_listed = recv_listed = true;
        } else {
            if (!in_place_) send = {part(rank_, root_)};
            for (int r = 0; here && r < size_; ++r) recv.push_back(part(r, rank_));
            recv_listed = true;
        }
        place(send_all_, std::move(send), send_listed);
        place(recv_all_, std::move(recv), recv_listed);
        send_ = std::move(send_all_);
        recv_ = std::move(recv_all_);
    }

    void place(Side& side, std::vector<Part> parts, bool listed) {
        std::vector<int> lengths;
        for (const Part& part : parts) lengths.push_back(units(part.source, part.target));
        if (!listed || !is_v(function_)) {
            side.place_evenly(std::move(parts), lengths.empty() ? 0 : lengths[0]);
        } else if (function_ == Function::alltoallw) {
            side.place_by_bytes(rngs_.own, std::move(parts), lengths);
        } else {
            side.place(rngs_.own, std::move(parts), lengths);
        }
    }

    /// Arguments without a meaning are garbage: nothing may look at them.
    Call make_call() const {
        Call call{function_};
        call.root = root_;
        call.comm = context_.comm;
        call.sendcount = call.recvcount = -7;
        if (!send_.empty()) {
            call.sendcount = send_.parts()[0].count;
            call.sendtype = send_.parts()[0].layout->type();
            call.sendcounts = send_.counts();
            call.sdispls = send_.displs();
            call.sendtypes = send_.types();
        }
        if (!recv_.empty()) {
            call.recvcount = recv_.parts()[0].count;
            call.recvtype = recv_.parts()[0].layout->type();
            call.recvcounts = recv_.counts();
            call.rdispls = recv_.displs();
            call.recvtypes = recv_.types();
        }
        // MPIs refuse a negative count and MPI_DATATYPE_NULL with MPI_IN_PLACE, though the standard lets them mean
        // nothing.
        if (in_place_ && is_scatter(function_)) call.recvcount = 0;
        if (in_place_ && !is_scatter(function_)) call.sendcount = 0;
        return call;
    }

    template <class Memory>
    Call with_buffers(Call call, Memory& send, Memory& recv) const {
        call.sendbuf = send_.empty() ? nullptr : send.address();
        call.recvbuf = recv_.empty() ? nullptr : recv.address();
        if (in_place_) (is_scatter(function_) ? call.recvbuf : const_cast<void*&>(call.sendbuf)) = MPI_IN_PLACE;
        return call;
    }

    const CaseContext& context_;
    Function function_;
    CaseRngs rngs_;
    int rank_ = 0, size_ = 0, root_ = 0, grain_ = 1, most_ = 1, common_ = 0, unit_bytes_ = 1;
    bool in_place_ = false, nothing_ = false;
    Side send_all_, recv_all_, send_, recv_;
    std::vector<char> scratch_;
};

}  // namespace test
