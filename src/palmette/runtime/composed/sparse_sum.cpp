#include "palmette/runtime/composed/sparse_sum.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <new>
#include <string>

#include "palmette/base/error.hpp"
#include "palmette/base/hash.hpp"
#include "palmette/compose/factoring_text.hpp"
#include "palmette/compose/sparse.hpp"
#include "palmette/runtime/transport/agreement.hpp"
#include "palmette/runtime/transport/outstanding.hpp"

namespace palmette::runtime {

using base::fail;
using compose::SparseBlock;
using plan::Interval;

namespace {

void finish(int code, MPI_Request& request) {
    if (complete(code, request) != MPI_SUCCESS)
        fail("the MPI reports an error while ranks tell each other what they touch");
}

template <std::size_t size>
std::vector<std::array<std::int64_t, size>> gather(MPI_Comm comm, int ranks, std::array<std::int64_t, size> mine) {
    std::vector<std::array<std::int64_t, size>> out(static_cast<std::size_t>(ranks));
    MPI_Request request = MPI_REQUEST_NULL;
    finish(PMPI_Iallgather(mine.data(), static_cast<int>(size), MPI_INT64_T, out.data(), static_cast<int>(size),
                           MPI_INT64_T, comm, &request),
           request);
    return out;
}

/// What all ranks have for this one, rank by rank.
struct Received {
    std::vector<std::int64_t> words;
    std::vector<int> counts, offsets;
};

/// MPI's counts and displacements are ints.
void check_length(const std::vector<std::vector<std::int64_t>>& parts) {
    std::size_t total = 0;
    for (const auto& part : parts) total += part.size();
    if (total > static_cast<std::size_t>(std::numeric_limits<int>::max()))
        fail("a rank would tell the others ", total, " numbers about its indices; raise coarsen");
}

Received swap_words(MPI_Comm comm, const std::vector<std::vector<std::int64_t>>& parts) {
    const std::size_t ranks = parts.size();
    std::vector<int> counts(ranks), offsets(ranks);
    std::vector<std::int64_t> words;
    for (std::size_t r = 0; r < ranks; ++r) {
        offsets[r] = static_cast<int>(words.size());
        counts[r] = static_cast<int>(parts[r].size());
        words.insert(words.end(), parts[r].begin(), parts[r].end());
    }
    Received in;
    in.counts.resize(ranks), in.offsets.resize(ranks);
    MPI_Request request = MPI_REQUEST_NULL;
    finish(PMPI_Ialltoall(counts.data(), 1, MPI_INT, in.counts.data(), 1, MPI_INT, comm, &request), request);
    std::int64_t total = 0;
    for (std::size_t r = 0; r < ranks; ++r) in.offsets[r] = static_cast<int>(total), total += in.counts[r];
    in.words.resize(static_cast<std::size_t>(total));
    finish(PMPI_Ialltoallv(words.data(), counts.data(), offsets.data(), MPI_INT64_T, in.words.data(), in.counts.data(),
                           in.offsets.data(), MPI_INT64_T, comm, &request),
           request);
    return in;
}

/// Runs of what a rank touches, cut at the owners' ranges.
std::vector<std::vector<std::int64_t>> for_owners(std::vector<std::int64_t> touched,
                                                  const std::vector<std::int64_t>& bounds) {
    std::sort(touched.begin(), touched.end());
    touched.erase(std::unique(touched.begin(), touched.end()), touched.end());
    std::vector<std::vector<std::int64_t>> out(bounds.size() - 1);
    std::size_t owner = 0;
    for (std::size_t i = 0; i < touched.size();) {
        while (touched[i] >= bounds[owner + 1]) ++owner;
        std::size_t end = i + 1;
        while (end < touched.size() && touched[end] == touched[end - 1] + 1 && touched[end] < bounds[owner + 1]) ++end;
        out[owner].push_back(touched[i]);
        out[owner].push_back(static_cast<std::int64_t>(end - i));
        i = end;
    }
    return out;
}

void append(std::vector<std::int64_t>& rows, const std::vector<Interval>& runs) {
    for (const Interval& run : runs)
        for (std::int64_t index = run.first; index < run.end(); ++index) rows.push_back(index);
}

/// The words for each rank that takes part in this owner's blocks.
std::vector<std::vector<std::int64_t>> told(const std::vector<compose::Signature>& made, std::int64_t first_number,
                                            base::Rank self, const compose::Operation& operation,
                                            const topology::Job& job, const compose::NamedFactoring& factoring) {
    std::vector<SparseBlock> known;
    for (std::size_t b = 0; b < made.size(); ++b)
        known.push_back({static_cast<std::int64_t>(b), self, 1, compose::RankSet::of(made[b].contributors), {}});
    const compose::Composition sum =
        compose::sparse_composition(job.size(), static_cast<std::int64_t>(made.size()), known, 1, 1, operation, false);
    const compose::Tree tree = compose::Tree::of(job);
    const compose::Factory factory(sum, job, tree, factoring.factoring);
    std::vector<std::vector<std::int64_t>> out(static_cast<std::size_t>(job.size()));
    sum.visit([&](std::int32_t phase, const compose::Primitive& primitive) {
        const auto block = primitive.blocks.first;
        for (const std::int32_t rank : factory.ranks_of(phase, primitive)) {
            const bool needs_indices = rank == self.value || primitive.others.contains(rank);
            compose::write(out[static_cast<std::size_t>(rank)], first_number + block,
                           made[static_cast<std::size_t>(block)], needs_indices);
        }
    });
    return out;
}

}  // namespace

std::unique_ptr<SparseSum> SparseSum::make(MPI_Comm comm, const SparseRequest& request, std::string_view factoring,
                                           MPI_Op operation, MPI_Datatype type, const Settings& settings) {
    Communicator& state = composing_state(comm, settings);
    const int ranks = state.job().size();
    const base::Rank self{state.rank()};
    // Local errors are agreed on before the next collective step.
    std::string complaint = request.complaint;
    const auto locally = [&](const auto& what) {
        try {
            if (complaint.empty()) what();
        } catch (const std::bad_alloc&) {
            complaint = "out of memory";
        } catch (const std::exception& error) {
            complaint = error.what();
        }
    };
    const auto agreed = [&] {
        const auto all = all_true(state.shadow_comm(), complaint.empty());
        if (!complaint.empty()) fail(complaint);
        if (!all || !*all) fail("another rank refuses the sparse sum; its error says why");
    };

    compose::NamedFactoring parsed;
    compose::Operation sum;
    topology::Job hierarchy;
    locally([&] {
        if (request.width < 1 || request.coarsen < 1)
            fail("width ", request.width, ", coarsen ", request.coarsen, ": expected 1 or more");
        if (request.owned.count < 0) fail("a range of ", request.owned.count, " owned indices");
        int commutative = 0;
        if (operation == MPI_OP_NULL || PMPI_Op_commutative(operation, &commutative) != MPI_SUCCESS)
            fail("the operation is invalid");
        sum.commutative = commutative != 0;
        parsed = compose::parse_factoring(factoring);
        if (!parsed.hierarchy.empty()) hierarchy = compose::job_of_hierarchy(parsed.hierarchy, ranks);
    });
    agreed();
    const topology::Job& job = parsed.hierarchy.empty() ? state.job() : hierarchy;

    std::uint64_t hash = base::fnv1a_start;
    base::hash_append(hash, factoring);
    const std::array<std::int64_t, 6> mine{request.owned.first, request.owned.end(),   request.width,
                                           request.coarsen,     request.element_bytes, static_cast<std::int64_t>(hash)};
    const auto all = gather(comm, ranks, mine);
    std::vector<std::int64_t> bounds{0};
    for (int r = 0; r < ranks; ++r) {
        const auto& one = all[static_cast<std::size_t>(r)];
        if (!std::equal(one.begin() + 2, one.end(), all.front().begin() + 2))
            fail("width, type, coarsen or factoring differs between ranks; give all the same");
        if (one[0] != bounds.back())
            fail("rank ", r, " owns indices from ", one[0], " on; ", bounds.back(), " is the first behind its ",
                 "predecessor's");
        bounds.push_back(one[1]);
    }
    std::vector<std::vector<std::int64_t>> parts;
    locally([&] {
        for (const std::int64_t index : request.touched)
            if (index < 0 || index >= bounds.back())
                fail("rank ", self, " touches index ", index, ", outside of 0 to ", bounds.back() - 1);
        parts = for_owners(request.touched, bounds);
        check_length(parts);
    });
    agreed();
    Received runs = swap_words(comm, parts);

    std::vector<compose::Signature> made;
    locally([&] {
        std::vector<std::pair<std::int32_t, Interval>> touched;
        for (int r = 0; r < ranks; ++r) {
            const auto at = static_cast<std::size_t>(r);
            for (int i = 0; i < runs.counts[at]; i += 2) {
                const auto word = static_cast<std::size_t>(runs.offsets[at] + i);
                touched.emplace_back(r, Interval{runs.words[word], runs.words[word + 1]});
            }
        }
        made = compose::signatures(touched, request.owned, request.coarsen);
    });
    runs = {};
    const auto counts = gather(comm, ranks, std::array<std::int64_t, 1>{static_cast<std::int64_t>(made.size())});
    std::int64_t first_number = 0, total = 0;
    for (int r = 0; r < ranks; ++r) {
        if (r == self.value) first_number = total;
        total += counts[static_cast<std::size_t>(r)].front();
    }
    locally([&] {
        parts = told(made, first_number, self, sum, job, parsed);
        check_length(parts);
    });
    agreed();
    const Received blocks = swap_words(comm, parts);

    auto out = std::make_unique<SparseSum>();
    out->blocks_ = total;
    std::vector<SparseBlock> known;
    locally([&] {
        for (int r = 0; r < ranks; ++r) {
            const auto at = static_cast<std::size_t>(r);
            compose::read(base::Rank{r}, blocks.words.data() + blocks.offsets[at], blocks.counts[at], known);
        }
        for (const SparseBlock& block : known) {
            if (block.contributors.contains(self.value)) append(out->partial_rows_, block.indices);
            if (block.owner == self) append(out->own_rows_, block.indices);
        }
        out->known_blocks_ = static_cast<std::int64_t>(known.size());
    });
    agreed();
    for (const bool back : {false, true}) {
        const compose::Composition composition = compose::sparse_composition(
            ranks, total, known, request.width * request.element_bytes, request.element_bytes, sum, back);
        (back ? out->back_ : out->forth_) = ComposedPlan::make(
            comm, &composition, factoring, back ? std::vector<MPI_Op>() : std::vector{operation}, type, settings);
    }
    return out;
}

}  // namespace palmette::runtime
