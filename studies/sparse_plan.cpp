// CPU time and memory that a rank needs to plan a tomography's sparse sum: all ranks' parts, one after the other, in
// one process. What the runtime sends by MPI_Alltoallv is moved by hand; the exchanges themselves aren't timed.
//
// Usage: sparse_plan RANKS PER_HOST IMAGE ANGLES TILE COARSEN     COARSEN 0: by the model; prints its candidates, too
#include <malloc.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <new>
#include <numbers>
#include <numeric>

#include "palmette/compose/factor.hpp"
#include "palmette/compose/sparse.hpp"
#include "palmette/execute/binding.hpp"
#include "palmette/execute/packed_blocks.hpp"
#include "palmette/model/estimate/estimate_sparse.hpp"

namespace {
std::size_t in_use = 0, most_in_use = 0;
}  // namespace

// Counts what is allocated, so that one rank's memory can be told from the others'.
void* operator new(std::size_t bytes) {
    void* at = std::malloc(bytes);
    if (!at) throw std::bad_alloc();
    in_use += malloc_usable_size(at);
    most_in_use = std::max(most_in_use, in_use);
    return at;
}
void operator delete(void* at) noexcept {
    in_use -= malloc_usable_size(at);
    std::free(at);
}
void operator delete(void* at, std::size_t) noexcept { operator delete(at); }

namespace {

using namespace palmette;

/// Of one rank: seconds of each part of the planning, and bytes at the most.
struct Spent {
    std::array<double, 4> parts{};
    std::size_t bytes = 0;
    double seconds() const { return parts[0] + parts[1] + parts[2] + parts[3]; }
};

template <class Work>
void spend(Spent& spent, std::size_t part, const Work& work) {
    const auto now = [] {
        timespec at{};
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &at);
        return static_cast<double>(at.tv_sec) + static_cast<double>(at.tv_nsec) * 1e-9;
    };
    const std::size_t before = in_use;
    most_in_use = in_use;
    const double began = now();
    work();
    spent.parts[part] += now() - began;
    spent.bytes = std::max(spent.bytes, most_in_use - before);
}

/// The cell of a square with a side of a power of two at a place in Hilbert order.
std::pair<int, int> hilbert(int side, int place) {
    int x = 0, y = 0;
    for (int step = 1; step < side; step *= 2, place /= 4) {
        const int right = 1 & (place / 2), up = 1 & (place ^ right);
        if (up == 0) {
            if (right == 1) x = step - 1 - x, y = step - 1 - y;
            std::swap(x, y);
        }
        x += step * right, y += step * up;
    }
    return {x, y};
}

/// The rays that a rank's tile of the image touches, numbered tile by tile of the sinogram.
compose::Words touched_by(int rank, int ranks, int image, int angles, int tile) {
    const int side = static_cast<int>(std::lround(std::sqrt(ranks)));
    const auto [column, row] = hilbert(side, rank);
    const double width = static_cast<double>(image) / side;
    const double x = (column + 0.5) * width - image / 2.0, y = (row + 0.5) * width - image / 2.0;
    compose::Words out;
    for (int angle = 0; angle < angles; ++angle) {
        const double theta = angle * std::numbers::pi / angles;
        const double middle = x * std::cos(theta) + y * std::sin(theta) + image / 2.0;
        const double half = width / 2 * (std::abs(std::cos(theta)) + std::abs(std::sin(theta)));
        const int first = std::max(0, static_cast<int>(std::floor(middle - half + 1e-9)));
        const int end = std::min(image, static_cast<int>(std::ceil(middle + half - 1e-9)));
        for (int bin = first; bin < end; ++bin)
            out.push_back(((std::int64_t{angle} / tile * (image / tile) + bin / tile) * tile + angle % tile) * tile +
                          bin % tile);
    }
    return out;
}

void plan_all(int ranks, int per_host, int image, int angles, int tile, std::int64_t coarsen) {
    const auto count = static_cast<std::size_t>(ranks);
    std::vector<std::vector<std::int32_t>> hosts;
    for (int r = 0; r < ranks; ++r) hosts.push_back({r / per_host});
    const topology::Job job = topology::Job::from_groups({"node"}, hosts);
    const compose::Tree tree = compose::Tree::of(job);
    const compose::Factoring factoring;
    const std::int64_t tiles = std::int64_t{image} * angles / tile / tile;
    compose::Words bounds;
    for (int r = 0; r <= ranks; ++r) bounds.push_back(tiles * r / ranks * tile * tile);

    std::vector<Spent> spent(count);
    std::vector<model::OwnersPart> parts(count);
    for (std::int32_t r = 0; r < ranks; ++r) {
        const auto at = static_cast<std::size_t>(r);
        parts[at].owner = base::Rank{r};
        parts[at].owned = {bounds[at], bounds[at + 1] - bounds[at]};
        const compose::Words touched = touched_by(r, ranks, image, angles, tile);
        std::vector<compose::Words> runs;
        spend(spent[at], 0, [&] { runs = compose::runs_by_owner(touched, bounds); });
        for (std::size_t owner = 0; owner < count; ++owner)
            for (std::size_t i = 0; i < runs[owner].size(); i += 2)
                parts[owner].touched.emplace_back(r, plan::Interval{runs[owner][i], runs[owner][i + 1]});
    }

    if (coarsen == 0) {
        const std::vector<std::int64_t> candidates = model::coarsen_candidates(bounds);
        std::vector<std::int64_t> sum(candidates.size());
        for (std::size_t r = 0; r < count; ++r) {
            std::vector<std::int64_t> mine;
            spend(spent[r], 1,
                  [&] { mine = model::coarsen_picoseconds(parts[r], candidates, 4, {}, job, factoring, job); });
            for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += mine[i];
        }
        for (std::size_t i = 0; i < sum.size(); ++i)
            std::printf("coarsen %lld: %.1f us by the model\n", static_cast<long long>(candidates[i]),
                        static_cast<double>(sum[i]) * 1e-6);
        coarsen = candidates[static_cast<std::size_t>(std::min_element(sum.begin(), sum.end()) - sum.begin())];
    }

    compose::Words first_number(count + 1);
    const auto blocks_of = [&](std::size_t owner, Spent& into) {
        std::vector<compose::Words> words;
        spend(into, 2, [&] {
            const auto made = compose::signatures(parts[owner].touched, parts[owner].owned, coarsen);
            const compose::Composition own = compose::owners_composition(ranks, made, parts[owner].owner, {});
            first_number[owner + 1] = first_number[owner] + std::ssize(made);
            words = compose::blocks_by_rank(made, first_number[owner], own, {own, job, tree, factoring});
        });
        return words;
    };
    compose::Words sent(count), received(count);
    for (std::size_t owner = 0; owner < count; ++owner) {
        const std::vector<compose::Words> words = blocks_of(owner, spent[owner]);
        for (std::size_t r = 0; r < count; ++r)
            sent[owner] += std::ssize(words[r]), received[r] += std::ssize(words[r]);
    }
    // Programs take most: of those ranks that are told most. All that owners tell would be too much for one process.
    std::vector<std::size_t> chosen(count);
    std::iota(chosen.begin(), chosen.end(), std::size_t{0});
    std::sort(chosen.begin(), chosen.end(), [&](std::size_t a, std::size_t b) { return received[a] > received[b]; });
    chosen.resize(std::min<std::size_t>(count, 16));
    std::vector<std::vector<compose::Words>> told(chosen.size());
    for (std::size_t owner = 0; owner < count; ++owner) {
        Spent again;
        std::vector<compose::Words> words = blocks_of(owner, again);
        for (std::size_t i = 0; i < chosen.size(); ++i) told[i].push_back(std::move(words[chosen[i]]));
    }
    std::int64_t most_known = 0, all_known = 0;
    for (std::size_t i = 0; i < chosen.size(); ++i) {
        const base::Rank rank{static_cast<std::int32_t>(chosen[i])};
        std::vector<compose::SparseBlock> known;
        spend(spent[chosen[i]], 3, [&] {
            for (std::int32_t owner = 0; owner < ranks; ++owner) {
                const compose::Words& words = told[i][static_cast<std::size_t>(owner)];
                compose::read(base::Rank{owner}, words.data(), std::ssize(words), known);
            }
            for (const bool back : {false, true}) {
                const compose::Composition composition =
                    compose::sparse_composition(ranks, first_number.back(), known, 4, 4, {}, back);
                const compose::Factory factory(composition, job, tree, factoring);
                std::uint64_t balance = 0;
                const plan::Program program = factory.program(rank, &balance);
                const runtime::PackedBlocks packed(composition, 1, rank);
                runtime::Layout layout;
                layout.element_bytes = 4, layout.places = &packed;
                runtime::bind(plan::Collective::composed, program, job, layout);
            }
        });
        most_known = std::max(most_known, std::ssize(known)), all_known += std::ssize(known);
    }

    const Spent& slowest = *std::max_element(spent.begin(), spent.end(),
                                             [](const Spent& a, const Spent& b) { return a.seconds() < b.seconds(); });
    double in_programs = 0;
    std::size_t bytes = 0;
    for (const Spent& one : spent) in_programs += one.parts[3], bytes = std::max(bytes, one.bytes);
    std::printf(
        "%d ranks, %d a host, coarsen %lld: %lld blocks, a rank knows at most %lld, tells %.1f MB, is told %.1f MB\n"
        "slowest rank: %.2f s of CPU (runs %.2f, model %.2f, blocks %.2f, programs %.2f); %.1f us a known block\n"
        "largest rank: %.1f MB at once, beside what it is told\n",
        ranks, per_host, static_cast<long long>(coarsen), static_cast<long long>(first_number.back()),
        static_cast<long long>(most_known), static_cast<double>(*std::max_element(sent.begin(), sent.end())) * 8e-6,
        static_cast<double>(received[chosen.front()]) * 8e-6, slowest.seconds(), slowest.parts[0], slowest.parts[1],
        slowest.parts[2], slowest.parts[3], in_programs / static_cast<double>(all_known) * 1e6,
        static_cast<double>(bytes) * 1e-6);
}

}  // namespace

int main(int argc, char** argv) {
    std::array<int, 6> numbers{};
    if (argc != 7) {
        std::fprintf(stderr, "usage: sparse_plan RANKS PER_HOST IMAGE ANGLES TILE COARSEN\n");
        return 2;
    }
    for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = std::atoi(argv[i + 1]);
    const auto [ranks, per_host, image, angles, tile, coarsen] = numbers;
    const int side = static_cast<int>(std::lround(std::sqrt(ranks)));
    if (ranks < 1 || side * side != ranks || (side & (side - 1)) != 0 || per_host < 1 || tile < 1 ||
        image % tile != 0 || angles % tile != 0 || coarsen < 0) {
        std::fprintf(stderr, "sparse_plan: RANKS is a power of four, TILE divides IMAGE and ANGLES\n");
        return 2;
    }
    plan_all(ranks, per_host, image, angles, tile, coarsen);
    return 0;
}
