#include "palmette/runtime/composed/sparse_sum.hpp"

#include <algorithm>
#include <array>
#include <new>
#include <numeric>
#include <optional>
#include <string>

#include "palmette/base/error.hpp"
#include "palmette/base/hash.hpp"
#include "palmette/compose/factoring_text.hpp"
#include "palmette/compose/sparse.hpp"
#include "palmette/model/estimate/estimate_sparse.hpp"
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

void add_up(MPI_Comm comm, std::vector<std::int64_t>& values) {
    MPI_Request request = MPI_REQUEST_NULL;
    finish(PMPI_Iallreduce(MPI_IN_PLACE, values.data(), static_cast<int>(values.size()), MPI_INT64_T, MPI_SUM, comm,
                           &request),
           request);
}

/// What all ranks have for this one, rank by rank.
struct Received {
    std::vector<std::int64_t> words;
    std::vector<int> counts, offsets;
};

void append(std::vector<std::int64_t>& rows, const std::vector<Interval>& runs) {
    for (const Interval& run : runs)
        for (std::int64_t index = run.first; index < run.end(); ++index) rows.push_back(index);
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

    const auto swap = [&](std::vector<compose::Words> parts) {
        parts.resize(static_cast<std::size_t>(ranks));  // none after an error
        compose::Words counts, arriving(parts.size());
        for (const compose::Words& part : parts) counts.push_back(std::ssize(part));
        MPI_Request pending = MPI_REQUEST_NULL;
        finish(PMPI_Ialltoall(counts.data(), 1, MPI_INT64_T, arriving.data(), 1, MPI_INT64_T, comm, &pending), pending);
        Received in;
        compose::Words words;
        std::vector<int> lengths, offsets;
        locally([&] {
            offsets = compose::offsets_of(counts), in.offsets = compose::offsets_of(arriving);
            lengths.assign(counts.begin(), counts.end()), in.counts.assign(arriving.begin(), arriving.end());
            for (compose::Words& part : parts) words.insert(words.end(), part.begin(), part.end()), part = {};
            in.words.resize(static_cast<std::size_t>(std::accumulate(arriving.begin(), arriving.end(), 0LL)));
        });
        agreed();
        finish(PMPI_Ialltoallv(words.data(), lengths.data(), offsets.data(), MPI_INT64_T, in.words.data(),
                               in.counts.data(), in.offsets.data(), MPI_INT64_T, comm, &pending),
               pending);
        return in;
    };

    compose::NamedFactoring parsed;
    compose::Operation sum;
    topology::Job hierarchy;
    locally([&] {
        if (request.width < 1) fail("width ", request.width, ": expected 1 or more");
        if (request.coarsen < 0)
            fail("coarsen: expected a number of 1 or more, or the model's choice (0; in Python \"model\")");
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
    std::vector<compose::Words> parts;
    locally([&] { parts = compose::runs_by_owner(request.touched, bounds); });
    Received runs = swap(std::move(parts));

    model::OwnersPart part{self, request.owned, {}};
    locally([&] {
        for (int r = 0; r < ranks; ++r) {
            const auto at = static_cast<std::size_t>(r);
            for (int i = 0; i < runs.counts[at]; i += 2) {
                const auto word = static_cast<std::size_t>(runs.offsets[at] + i);
                part.touched.emplace_back(r, Interval{runs.words[word], runs.words[word + 1]});
            }
        }
    });
    runs = {};
    auto out = std::make_unique<SparseSum>();
    out->coarsen_ = request.coarsen;
    if (request.coarsen == 0) {
        const std::vector<std::int64_t> candidates = model::coarsen_candidates(bounds);
        std::vector<std::int64_t> picoseconds(candidates.size());
        locally([&] {
            picoseconds = model::coarsen_picoseconds(part, candidates, request.width * request.element_bytes, sum, job,
                                                     parsed.factoring, state.job());
        });
        add_up(comm, picoseconds);
        const auto least = std::min_element(picoseconds.begin(), picoseconds.end()) - picoseconds.begin();
        out->coarsen_ = candidates[static_cast<std::size_t>(least)];
    }
    std::vector<compose::Signature> made;
    locally([&] { made = compose::signatures(part.touched, request.owned, out->coarsen_); });
    part.touched = {};
    const auto counts = gather(comm, ranks, std::array<std::int64_t, 1>{static_cast<std::int64_t>(made.size())});
    std::int64_t first_number = 0, total = 0;
    for (int r = 0; r < ranks; ++r) {
        if (r == self.value) first_number = total;
        total += counts[static_cast<std::size_t>(r)].front();
    }
    locally([&] {
        const compose::Composition own = compose::owners_composition(ranks, made, self, sum);
        const compose::Tree tree = compose::Tree::of(job);
        parts = compose::blocks_by_rank(made, first_number, own, {own, job, tree, parsed.factoring});
    });
    const Received blocks = swap(std::move(parts));

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
        std::optional<compose::Composition> composition;
        locally([&] {
            composition = compose::sparse_composition(ranks, total, known, request.width * request.element_bytes,
                                                      request.element_bytes, sum, back);
        });
        // Null where that failed: an error on all ranks.
        (back ? out->back_ : out->forth_) =
            ComposedPlan::make(comm, composition ? &*composition : nullptr, factoring,
                               back ? std::vector<MPI_Op>() : std::vector{operation}, type, settings);
    }
    return out;
}

}  // namespace palmette::runtime
