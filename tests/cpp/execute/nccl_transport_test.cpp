// Messages by NCCL, on the drivers of tests/fakes: no grouping of them may let ranks wait for each other for ever.
#include "palmette/execute/nccl_transport.hpp"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>

#include "palmette/compose/factor.hpp"
#include "palmette/compose/factoring_text.hpp"
#include "palmette/compose/named.hpp"
#include "palmette/device/place.hpp"
#include "palmette/execute/packed_blocks.hpp"
#include "support/loopback.hpp"
#include "support/played_composition.hpp"
#include "support/processes.hpp"

namespace palmette::execute::nccl_transport_tests {
namespace {

using device::Nccl;
using device::Place;
using device::Progress;
using test::LoopbackRank;
using test::LoopbackRanks;

/// The fakes in this process, with one device that ranks share. It stays loaded.
class Fakes {
  public:
    static Fakes* instance() {
        static Fakes* fakes = [] {
            auto* made = new Fakes;
            return made->load() ? made : nullptr;
        }();
        return fakes;
    }

    static std::filesystem::path folder() {
        return std::filesystem::read_symlink("/proc/self/exe").parent_path() / "fakes";
    }
    static bool are_there() { return std::filesystem::exists(folder() / "libcuda.so.1"); }

    const Place& place() const { return place_; }
    /// Where the host reads and writes an address, wherever it lies.
    char* on_host(const char* address) const {
        void* alias = alias_(address);
        return alias ? static_cast<char*>(alias) : const_cast<char*>(address);
    }
    char* allocate(std::int64_t bytes) const {
        void* memory = nullptr;
        EXPECT_EQ(place_.driver->allocate(place_, bytes, memory), nullptr);
        return static_cast<char*>(memory);
    }
    void release(void* memory) const { place_.driver->release(place_, memory); }

  private:
    bool load() {
        setenv("PALMETTE_FAKE_NCCL", "multi", 1);
        setenv("PALMETTE_FAKE_CUDA", "lazy", 1);
        void* cuda = dlopen((folder() / "libcuda.so.1").c_str(), RTLD_NOW);
        if (!cuda) return false;
        const auto find = [&](auto& function, const char* name) {
            function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(cuda, name));
        };
        int (*init)(unsigned) = nullptr;
        int (*retain)(void**, int) = nullptr;
        int (*set_current)(void*) = nullptr;
        int (*allocate_memory)(unsigned long long*, std::size_t) = nullptr;
        find(init, "cuInit");
        find(retain, "cuDevicePrimaryCtxRetain");
        find(set_current, "cuCtxSetCurrent");
        find(allocate_memory, "cuMemAlloc_v2");
        find(alias_, "fake_cuda_alias");
        void* context = nullptr;
        unsigned long long some = 0;
        if (init(0) || retain(&context, 0) || set_current(context) || allocate_memory(&some, 64)) return false;
        if (!device::find_drivers() || !device::find_nccl(folder() / "libnccl.so.2")) return false;
        place_ = device::place_of(reinterpret_cast<const void*>(some));
        return place_.on_device();
    }

    Place place_;
    void* (*alias_)(const void*) = nullptr;
};

/// Reductions on the host, wherever the bytes lie.
class AnyMemory final : public test::AffineMemory {
  public:
    explicit AnyMemory(const Fakes& fakes) : fakes_(fakes) {}
    void copy(char* to, const char* from, std::int64_t bytes) override {
        AffineMemory::copy(fakes_.on_host(to), fakes_.on_host(from), bytes);
    }
    int combine(std::uint8_t operation, const char* left, const char* right, char* target,
                std::int64_t bytes) override {
        return AffineMemory::combine(operation, fakes_.on_host(left), fakes_.on_host(right), fakes_.on_host(target),
                                     bytes);
    }

  private:
    const Fakes& fakes_;
};

std::vector<std::unique_ptr<Nccl>> communicator(const Fakes& fakes, std::int32_t ranks) {
    device::NcclId id;
    EXPECT_EQ(device::make_nccl_id(id), nullptr);
    std::vector<std::unique_ptr<Nccl>> all;
    for (std::int32_t r = 0; r < ranks; ++r)
        all.push_back(std::make_unique<Nccl>(fakes.place(), ranks, r, id, std::chrono::seconds(20)));
    for (const auto& one : all) {
        Progress now = Progress::under_way;
        while (now == Progress::under_way) now = one->join();
        EXPECT_EQ(now, Progress::done) << one->why();
    }
    return all;
}

enum class Where : std::uint8_t { host, device, either };

struct Case {
    std::string_view name, factoring;
    std::string hierarchy;
    Where where;
    int by_mpi = 0;  ///< one of so many tags goes another way; 0: none
};

/// Returns the number of NCCL's messages; `limit` for each group.
std::int64_t expect_right(const Fakes& fakes, std::int32_t p, const Case& test_case, std::uint64_t seed,
                          std::chrono::seconds limit = std::chrono::seconds(20)) {
    compose::NamedRequest request;
    request.ranks = p;
    request.root = plan::Rank{p / 2};
    request.bytes = {96};
    request.element_bytes = 8;
    const compose::Composition composition = compose::compose(test_case.name, request);
    const topology::Job job = compose::job_of_hierarchy(test_case.hierarchy, p);
    const compose::Tree tree = compose::Tree::of(job);
    const compose::Factoring how = compose::parse_factoring(test_case.factoring).factoring;
    const compose::Factory factory(composition, job, tree, how);
    test::PlayedComposition expected(composition);
    std::vector<NcclTransport*> transports;
    LoopbackRanks ranks(p, seed, false, [&](std::int32_t, Messages&) {
        auto made = std::make_unique<NcclTransport>(std::uint8_t{0});
        transports.push_back(made.get());
        return made;
    });
    const auto nccl = communicator(fakes, p);
    AnyMemory memory(fakes);
    std::vector<LoopbackRank> all;
    std::vector<std::vector<std::vector<char>>> buffers(static_cast<std::size_t>(p));
    std::vector<std::vector<char*>> bases(static_cast<std::size_t>(p));
    std::vector<char*> allocated;
    std::int64_t messages = 0;
    for (std::int32_t r = 0; r < p; ++r) {
        const auto at = static_cast<std::size_t>(r);
        transports[at]->use(nccl[at].get(), limit);
        const PackedBlocks packed(composition, how.stripes, plan::Rank{r});
        Layout layout;
        layout.element_bytes = 8;
        layout.places = &packed;
        LoopbackRank& one = all.emplace_back();
        one.program = bind(plan::Collective::composed, factory.program(plan::Rank{r}), job, layout);
        for (BoundStep& step : one.program.steps) {
            step.nccl = plan::is_message(step.kind) && !(test_case.by_mpi > 0 && step.tag % test_case.by_mpi == 0);
            messages += step.nccl && step.bytes > 0;
            // The executor packs them in the host's memory, or the transport on the device.
            step.stages_itself = step.nccl && step.staging >= 0 && seed % 2 == 0;
        }
        choose_transports(one.program, ranks.executors[at]->transports(), job, plan::Rank{r});
        for (std::size_t b = 0; b < composition.buffers().size(); ++b)
            buffers[at].push_back(expected.buffer(r, b, false));
        for (std::size_t b = 0; b < buffers[at].size(); ++b) {
            auto& buffer = buffers[at][b];
            const bool on_device = test_case.where == Where::device ||
                                   (test_case.where == Where::either && (static_cast<std::size_t>(r) + b) % 2 == 0);
            if (!on_device || buffer.empty()) {
                bases[at].push_back(buffer.data());
                continue;
            }
            char* const memory_of_it = fakes.allocate(static_cast<std::int64_t>(buffer.size()));
            std::memcpy(fakes.on_host(memory_of_it), buffer.data(), buffer.size());
            allocated.push_back(memory_of_it);
            bases[at].push_back(memory_of_it);
        }
        bases[at].resize(std::max<std::size_t>(2, bases[at].size()));
        one.environment.bases = {bases[at][0], bases[at][1], bases[at].data() + 2};
        one.environment.memory = &memory;
        one.environment.control_tags = static_cast<int>(factory.tag_limit());
    }
    const auto codes = ranks.run(all);
    expected.play();
    for (std::int32_t r = 0; r < p; ++r) {
        const auto at = static_cast<std::size_t>(r);
        EXPECT_EQ(codes[at], 0);
        EXPECT_EQ(transports[at]->why(), "") << "rank " << r;
        EXPECT_EQ(transports[at]->pending(), 0U);
        for (std::size_t b = 0; b < composition.buffers().size(); ++b) {
            std::vector<char> got = buffers[at][b];
            if (!got.empty()) std::memcpy(got.data(), fakes.on_host(bases[at][b]), got.size());
            EXPECT_EQ(got, expected.buffer(r, b, true))
                << test_case.name << ' ' << test_case.factoring << " on " << test_case.hierarchy << ": rank " << r;
        }
    }
    for (char* memory_of_it : allocated) fakes.release(memory_of_it);
    return messages;
}

class CompositionByNccl : public testing::TestWithParam<std::int32_t> {};

void expect_all_right(std::int32_t p) {
    const Fakes* fakes = Fakes::instance();
    ASSERT_TRUE(fakes);
    std::vector<std::string> hierarchies{std::to_string(p)};
    if (p > 3) hierarchies.push_back("2:" + std::to_string(p - p / 3) + "+" + std::to_string(p / 3));
    if (p == 8) hierarchies.emplace_back("2:2:2");
    std::uint64_t seed = static_cast<std::uint64_t>(p);
    std::int64_t messages = 0;
    for (const compose::NamedCollective& row : compose::named())
        for (const std::string& hierarchy : hierarchies)
            for (const char* factoring : {"method=direct", "method=tree stripes=2 pipeline=3", "method=ring/1"}) {
                const auto where = static_cast<Where>(seed % 3);
                messages += expect_right(*fakes, p, {row.name, factoring, hierarchy, where}, ++seed);
                // Another transport's messages, which can't reach devices, wait for NCCL's, and these for them.
                expect_right(*fakes, p, {row.name, factoring, hierarchy, Where::host, 2}, ++seed);
                ASSERT_FALSE(testing::Test::HasFailure()) << row.name << ' ' << factoring << " on " << hierarchy;
            }
    EXPECT_GT(messages, 100);
}

TEST_P(CompositionByNccl, ends_and_moves_the_right_bytes) {
    if (!Fakes::are_there()) GTEST_SKIP() << "the fakes of tests/fakes aren't built";
    // Where the driver is, processes that are forked off don't get it any more: other tests do that.
    test::run_processes(1, [](int) { expect_all_right(GetParam()); });
}

INSTANTIATE_TEST_SUITE_P(Ranks, CompositionByNccl, testing::Values(2, 3, 5, 8));

void expect_no_effect_after_a_failure() {
    const Fakes* fakes = Fakes::instance();
    if (!fakes) return;
    const std::int32_t p = 3;
    const topology::Job job = compose::job_of_hierarchy("3", p);
    compose::NamedRequest request;
    request.ranks = p;
    request.bytes = {96};
    const compose::Composition composition = compose::compose("allgather", request);
    const compose::Tree tree = compose::Tree::of(job);
    const compose::Factoring how = compose::parse_factoring("method=ring/1").factoring;
    const compose::Factory factory(composition, job, tree, how);
    std::vector<NcclTransport*> transports;
    LoopbackRanks ranks(p, 1, false, [&](std::int32_t, Messages&) {
        auto made = std::make_unique<NcclTransport>(std::uint8_t{0});
        transports.push_back(made.get());
        return made;
    });
    auto nccl = communicator(*fakes, p);
    test::AffineMemory memory;
    std::vector<LoopbackRank> all;
    std::vector<std::array<std::vector<char>, 2>> buffers(3, {std::vector<char>(96), std::vector<char>(288)});
    for (std::int32_t r = 0; r < p; ++r) {
        const auto at = static_cast<std::size_t>(r);
        // The middle one has none, for which the others wait until their limit.
        transports[at]->use(r == 1 ? nullptr : nccl[at].get(), std::chrono::seconds(1));
        const PackedBlocks packed(composition, how.stripes, plan::Rank{r});
        Layout layout;
        layout.places = &packed;
        LoopbackRank& one = all.emplace_back();
        one.program = bind(plan::Collective::composed, factory.program(plan::Rank{r}), job, layout);
        for (BoundStep& step : one.program.steps) step.nccl = plan::is_message(step.kind);
        choose_transports(one.program, ranks.executors[at]->transports(), job, plan::Rank{r});
        one.environment.bases = {buffers[at][0].data(), buffers[at][1].data()};
        one.environment.memory = &memory;
    }
    ranks.between_turns = [] { usleep(20); };
    for (const int code : ranks.run(all)) EXPECT_EQ(code, 0);
    for (const NcclTransport* transport : transports) {
        EXPECT_NE(transport->why(), "");
        EXPECT_EQ(transport->pending(), 0U);
    }
}

TEST(NcclTransport, completes_without_effect_after_a_failure) {
    test::run_processes(1, [](int) { expect_no_effect_after_a_failure(); });
}

}  // namespace
}  // namespace palmette::execute::nccl_transport_tests
