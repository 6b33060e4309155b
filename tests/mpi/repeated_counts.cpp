// alltoallv and alltoallw with counts that repeat, and that some ranks change now and then: the data that arrive, and
// their gaps, as the counts say.
//
//     repeated_counts [--calls N] [--seed S] [--change one|some|empty|none|uneven] [--elements N] [--function v|w|both]
//                     [--in-place 1]
//
// Blocks have --elements elements (8), each of 8 bytes. `one`: at about every 20th call one rank sends another number
// of elements from then on; `some`: several do; `empty`: a block has none; `uneven`: blocks differ by a factor of four
// from the start. alltoallw goes by vectors with gaps. In place, ranks send each other as much as they receive.
#include <mpi.h>

#include <cstdint>
#include <string>
#include <vector>

#include "support/outcome.hpp"
#include "support/rng.hpp"

namespace {

using namespace test;

constexpr std::int64_t untouched = -77;

std::size_t at(int i) { return static_cast<std::size_t>(i); }

/// Elements from each rank to each other, the same everywhere.
class Counts {
  public:
    Counts(int ranks, int elements, bool uneven, bool symmetric)
        : ranks_(ranks), symmetric_(symmetric), all_(at(ranks * ranks), elements) {
        for (int a = 0; uneven && a < ranks; ++a)
            for (int b = 0; b < ranks; ++b) set(a, b, elements * (1 + (a + b) % 4));
    }
    int operator()(int from, int to) const { return all_[at(from * ranks_ + to)]; }
    void change(Rng& rng, const std::string& how) {
        int changes = how == "some" ? 1 + rng.below(ranks_) : 1;
        for (; changes > 0; --changes) {
            const int from = rng.below(ranks_);
            const int to = rng.below(ranks_);
            set(from, to, how == "empty" && rng.one_in(2) ? 0 : 1 + rng.below(20));
        }
    }

  private:
    void set(int from, int to, int count) {
        all_[at(from * ranks_ + to)] = count;
        if (symmetric_) all_[at(to * ranks_ + from)] = count;
    }

    int ranks_;
    bool symmetric_;
    std::vector<int> all_;
};

std::int64_t value(int call, int from, int to, int element) {
    return (std::int64_t{call} << 32) + from * 1'000'000 + to * 1000 + element;
}

/// Blocks at displacements with a gap between them; elements `stride` apart.
struct Buffer {
    std::vector<int> counts, displacements;
    std::vector<std::int64_t> data;

    void set(std::vector<int> given, int stride) {
        counts = std::move(given);
        displacements.clear();
        int end = 1;
        for (const int count : counts) {
            displacements.push_back(end);
            end += count * stride + 1;
        }
        data.assign(at(end), untouched);
    }
};

void check(MPI_Comm comm, bool typed, bool in_place, int call, const Counts& counts, Outcome& outcome) {
    int rank = 0, size = 0;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    const int stride = typed ? 3 : 1;
    Buffer out, in;
    std::vector<int> to_send, to_receive;
    for (int other = 0; other < size; ++other) {
        to_send.push_back(counts(rank, other));
        to_receive.push_back(counts(other, rank));
    }
    out.set(to_send, stride);
    in.set(to_receive, stride);
    for (int other = 0; other < size; ++other)
        for (int e = 0; e < out.counts[at(other)]; ++e)
            out.data[at(out.displacements[at(other)] + e * stride)] = value(call, rank, other, e);
    if (in_place) in.data = out.data;
    const std::vector<std::int64_t> sent = out.data;
    const void* from = in_place ? MPI_IN_PLACE : out.data.data();
    if (typed) {
        // One vector a block, as an FFT's subarrays: count 1, or 0 for none.
        std::vector<MPI_Datatype> out_types(at(size)), in_types(at(size));
        std::vector<int> out_ones, in_ones, out_bytes, in_bytes;
        const auto type_of = [stride](int elements, MPI_Datatype& type) {
            MPI_Type_vector(elements > 0 ? elements : 1, 1, stride, MPI_INT64_T, &type);
            MPI_Type_commit(&type);
        };
        for (int other = 0; other < size; ++other) {
            type_of(out.counts[at(other)], out_types[at(other)]);
            type_of(in.counts[at(other)], in_types[at(other)]);
            out_ones.push_back(out.counts[at(other)] > 0 ? 1 : 0);
            in_ones.push_back(in.counts[at(other)] > 0 ? 1 : 0);
            out_bytes.push_back(8 * out.displacements[at(other)]);
            in_bytes.push_back(8 * in.displacements[at(other)]);
        }
        MPI_Alltoallw(from, out_ones.data(), out_bytes.data(), out_types.data(), in.data.data(), in_ones.data(),
                      in_bytes.data(), in_types.data(), comm);
        for (auto* types : {&out_types, &in_types})
            for (MPI_Datatype& type : *types) MPI_Type_free(&type);
    } else {
        MPI_Alltoallv(from, out.counts.data(), out.displacements.data(), MPI_INT64_T, in.data.data(), in.counts.data(),
                      in.displacements.data(), MPI_INT64_T, comm);
    }
    outcome.check(out.data == sent, "%s: what was sent has changed", doing);
    std::vector<std::int64_t> expected(in.data.size(), untouched);
    for (int other = 0; other < size; ++other)
        for (int e = 0; e < in.counts[at(other)]; ++e)
            expected[at(in.displacements[at(other)] + e * stride)] = value(call, other, rank, e);
    for (std::size_t i = 0; i < expected.size(); ++i)
        if (!outcome.check(in.data[i] == expected[i], "%s: word %zu is %lld, not %lld", doing, i,
                           static_cast<long long>(in.data[i]), static_cast<long long>(expected[i])))
            return;
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    int size = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const auto calls = static_cast<int>(option(argc, argv, "--calls", 150));
    const auto seed = static_cast<std::uint64_t>(option(argc, argv, "--seed", 1));
    const auto elements = static_cast<int>(option(argc, argv, "--elements", 8));
    const std::string how = word_option(argc, argv, "--change", "one");
    const std::string function = word_option(argc, argv, "--function", "both");
    const bool in_place = option(argc, argv, "--in-place", 0) != 0;
    Outcome outcome;
    watch(60);
    for (const bool typed : {false, true}) {
        if (function == (typed ? "v" : "w")) continue;
        Rng rng(seed, typed ? 1 : 2, 0);
        Counts counts(size, elements, how == "uneven", in_place);
        for (int call = 0; call < calls; ++call) {
            if (how != "none" && how != "uneven" && call > 0 && rng.one_in(20)) counts.change(rng, how);
            std::snprintf(doing, sizeof doing, "call %d of alltoall%s", call, typed ? "w" : "v");
            check(MPI_COMM_WORLD, typed, in_place, call, counts, outcome);
        }
    }
    std::snprintf(doing, sizeof doing, "MPI_Finalize");
    const int status = outcome.close(MPI_COMM_WORLD);
    MPI_Finalize();
    return status;
}
