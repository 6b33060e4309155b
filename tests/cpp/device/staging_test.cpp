// Detection, places and staged copies, on the test driver (tests/fakes).
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <numeric>
#include <thread>
#include <vector>

#include "palmette/device/place.hpp"
#include "palmette/device/staged_buffer.hpp"

namespace palmette::device {
namespace {

using testing::ElementsAre;

/// Before anything of this program has loaded a driver.
const bool learned_at_start = learned_count() != nullptr;
const bool loaded_at_start = driver_loaded();

/// The driver, with a context of the program's.
class Cuda {
  public:
    static Cuda& instance() {
        static Cuda it;
        return it;
    }
    bool works() const { return library_ != nullptr; }
    bool noticed() const { return noticed_; }

    char* allocate(std::size_t bytes) {
        unsigned long long at = 0;
        EXPECT_EQ((call<int(unsigned long long*, std::size_t)>("cuMemAlloc_v2", &at, bytes)), 0);
        return reinterpret_cast<char*>(at);
    }
    void release(char* memory) {
        call<int(unsigned long long)>("cuMemFree_v2", reinterpret_cast<unsigned long long>(memory));
    }
    void copy(void* to, const void* from, std::size_t bytes) {
        EXPECT_EQ((call<int(unsigned long long, unsigned long long, std::size_t)>(
                      "cuMemcpy", reinterpret_cast<unsigned long long>(to), reinterpret_cast<unsigned long long>(from),
                      bytes)),
                  0);
    }
    template <class Function, class... Arguments>
    int call(const char* name, Arguments... arguments) {
        return reinterpret_cast<Function*>(dlsym(library_, name))(arguments...);
    }

  private:
    Cuda() {
        setenv("PALMETTE_FAKE_CUDA", "seed=5,lazy,devices=2", 1);
        library_ = dlopen(PALMETTE_FAKES "/libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
        if (!library_) return;
        noticed_ = driver_loaded();
        void* context = nullptr;
        call<int(unsigned)>("cuInit", 0U);
        call<int(void**, int)>("cuDevicePrimaryCtxRetain", &context, 0);
        call<int(void*)>("cuCtxSetCurrent", context);
    }
    void* library_ = nullptr;
    bool noticed_ = false;
};

class Staging : public testing::Test {
  protected:
    void SetUp() override {
        if (!cuda.works()) GTEST_SKIP() << "no test driver: build the target palmette_fakes";
    }
    static std::vector<char> numbered(std::size_t bytes) {
        std::vector<char> out(bytes);
        for (std::size_t i = 0; i < bytes; ++i) out[i] = static_cast<char>(i * 7 + i / 251);
        return out;
    }
    Cuda& cuda = Cuda::instance();
};

TEST_F(Staging, DriversAreNoticedWhenTheyCome) {
    EXPECT_FALSE(loaded_at_start);
    EXPECT_TRUE(cuda.noticed());
    ASSERT_EQ(all_drivers().size(), 1U);
    EXPECT_STREQ(all_drivers()[0]->name(), "cuda");
}

TEST_F(Staging, TheLoadersCountIsLearned) {
#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__)
    EXPECT_TRUE(learned_at_start) << "each check of a call takes the loader's lock";
#endif
    EXPECT_FALSE(libraries_came());
    void* other = dlopen("libresolv.so.2", RTLD_NOW | RTLD_NOLOAD);
    if (other) GTEST_SKIP() << "libresolv is there already";
    other = dlopen("libresolv.so.2", RTLD_NOW);
    ASSERT_NE(other, nullptr);
    EXPECT_TRUE(libraries_came());
    look_for_drivers();
    EXPECT_FALSE(libraries_came());
    dlclose(other);
}

char in_the_program[100];

TEST_F(Staging, OnlyWhatStaysTheHostsIsKnownUnasked) {
    char* const memory = cuda.allocate(4096);
    const Place place = place_of(memory + 100);
    EXPECT_TRUE(place.on_device());
    EXPECT_EQ(place.device, 0);
    EXPECT_NE(place.context, nullptr);
    EXPECT_FALSE(known_host(memory));
    cuda.release(memory);

    char on_stack[100];
    EXPECT_TRUE(known_host(&in_the_program[50]));
    EXPECT_TRUE(known_host(&on_stack[99]));
    EXPECT_TRUE(known_host(static_cast<const void*>(nullptr)));
    // What may be unmapped is asked for each time.
    void* const mapped = mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(mapped, MAP_FAILED);
    for (int time = 0; time < 2; ++time) {
        EXPECT_EQ(place_of(mapped).memory, Memory::host);
        EXPECT_FALSE(known_host(mapped));
    }
    munmap(mapped, 8192);
    // What brk has given. An allocator that has nothing there is asked like any other.
    if (void* const heap = sbrk(0); heap != reinterpret_cast<void*>(-1) && sbrk(4096) == heap) {
        EXPECT_FALSE(known_host(static_cast<char*>(heap) + 8192));
        sbrk(-4096);
        EXPECT_FALSE(known_host(heap));
    }
}

TEST_F(Staging, TheStacksOfOthersAreAskedFor) {
    char here[100];
    bool own = false, others = true;
    std::thread([&] {
        char there[100];
        own = known_host(&there[0]);
        others = known_host(&here[0]);
    }).join();
    EXPECT_TRUE(own);
    EXPECT_FALSE(others) << "it ends with its thread";
}

TEST_F(Staging, APlaceThatWasTheHostsMayBeADevicesAtOnce) {
    // Its end, in the same page, and the place of memory that was freed.
    char* memory = cuda.allocate(64);
    for (int time = 0; time < 20; ++time) {
        EXPECT_EQ(place_of(memory + 64 + 2).memory, Memory::host);
        EXPECT_TRUE(place_of(memory).on_device());
        char* const before = memory;
        cuda.release(memory);
        EXPECT_EQ(place_of(before).memory, Memory::host);
        memory = cuda.allocate(64);
        EXPECT_TRUE(place_of(memory).on_device());
    }
    cuda.release(memory);
}

TEST_F(Staging, PinnedMemoryIsAskedForEachTime) {
    void* pinned = nullptr;
    ASSERT_EQ((cuda.call<int(void**, std::size_t, unsigned)>("cuMemHostAlloc", &pinned, 4096, 0U)), 0);
    EXPECT_EQ(place_of(pinned).memory, Memory::pinned);
    EXPECT_FALSE(known_host(pinned));
    cuda.call<int(void*)>("cuMemFreeHost", pinned);
}

TEST_F(Staging, DataComesInPieces) {
    constexpr std::size_t bytes = 3 * StagedBuffer::piece_bytes + 1000;
    const std::vector<char> data = numbered(bytes);
    char* const memory = cuda.allocate(bytes);
    cuda.copy(memory, data.data(), bytes);
    StagedBuffer staged;
    staged.open(place_of(memory), memory, bytes, {}, false);
    staged.start_reading();
    staged.await(10, 100);
    EXPECT_EQ(std::memcmp(staged.host() + 10, data.data() + 10, 100), 0);
    staged.await(2 * StagedBuffer::piece_bytes - 5, 10);
    EXPECT_EQ(std::memcmp(staged.host(), data.data(), 2 * StagedBuffer::piece_bytes + 5), 0);
    staged.await_all();
    EXPECT_EQ(std::memcmp(staged.host(), data.data(), bytes), 0);
    EXPECT_EQ(staged.bytes_read(), static_cast<std::int64_t>(bytes));
    EXPECT_EQ(staged.failure(), nullptr);
    staged.close();
    cuda.release(memory);
}

TEST_F(Staging, PartsAreWrittenBackAndTheRestIsLeftAlone) {
    std::vector<char> data = numbered(100000);
    char* const memory = cuda.allocate(data.size());
    cuda.copy(memory, data.data(), data.size());
    StagedBuffer staged;
    staged.open(place_of(memory), memory, 100000, {}, false);
    std::memset(staged.host(), 1, data.size());
    staged.start_writing(500, 1000);
    while (!staged.is_done()) {
    }
    std::vector<char> result(data.size());
    cuda.copy(result.data(), memory, result.size());
    std::memset(data.data() + 500, 1, 1000);
    EXPECT_EQ(result, data);
    staged.close();
    cuda.release(memory);
}

TEST_F(Staging, BytesBetweenTheDataAreNeitherReadNorWritten) {
    std::vector<char> data = numbered(4000);
    char* const memory = cuda.allocate(data.size());
    cuda.copy(memory, data.data(), data.size());
    std::vector<RunGroup> groups;
    for (std::int64_t i = 0; i < 20; ++i) add_run(groups, 8 + i * 64, 16);
    add_run(groups, 2000, 300);
    ASSERT_EQ(groups.size(), 2U);
    StagedBuffer staged;
    staged.open(place_of(memory), memory, 4000, groups, false);
    std::memset(staged.host(), 99, 4000);
    staged.start_reading();
    staged.await_all();
    EXPECT_EQ(staged.bytes_read(), 20 * 16 + 300);
    std::vector<char> expected(4000, 99);
    const auto each = [&](auto visit) {
        for (std::size_t i = 0; i < 20; ++i) visit(8 + i * 64, std::size_t{16});
        visit(std::size_t{2000}, std::size_t{300});
    };
    each([&](std::size_t at, std::size_t bytes) { std::memcpy(expected.data() + at, data.data() + at, bytes); });
    EXPECT_EQ(std::memcmp(staged.host(), expected.data(), expected.size()), 0);
    std::memset(staged.host(), 1, 4000);
    staged.start_writing_all();
    staged.await_done();
    each([&](std::size_t at, std::size_t bytes) { std::memset(data.data() + at, 1, bytes); });
    std::vector<char> result(data.size());
    cuda.copy(result.data(), memory, result.size());
    EXPECT_EQ(result, data);
    staged.close();
    cuda.release(memory);
}

TEST_F(Staging, BlocksAndQueuesAreUsedAgain) {
    char* const memory = cuda.allocate(1 << 20);
    StagedBuffer staged;
    staged.open(place_of(memory), memory, 1 << 20, {}, false);
    char* const first = staged.host();
    // It is pinned at its first copy.
    staged.start_reading();
    staged.await_all();
    const std::int64_t pinned = Resources::instance().counts().pinned;
    EXPECT_GE(pinned, 1 << 20);
    staged.close();
    staged.open(place_of(memory), memory, 1 << 20, {}, false);
    EXPECT_EQ(staged.host(), first);
    staged.start_reading();
    staged.await_all();
    EXPECT_EQ(Resources::instance().counts().pinned, pinned);
    staged.close();
    Resources::instance().release();
    EXPECT_EQ(Resources::instance().counts().pinned, 0);
    cuda.release(memory);
}

TEST_F(Staging, HostAndDeviceHaveTheSameAlignment) {
    char* const memory = cuda.allocate(4096);
    StagedBuffer staged;
    staged.open(place_of(memory), memory + 24, 100, {}, false);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(staged.host()) % 64, 24U);
    EXPECT_TRUE(staged.holds(staged.host() + 99));
    EXPECT_FALSE(staged.holds(staged.host() + 100));
    staged.close();
    cuda.release(memory);
}

TEST_F(Staging, AFailureIsToldAndStopsNothing) {
    char* const memory = cuda.allocate(4096);
    Place place = place_of(memory);
    place.context = nullptr;
    StagedBuffer staged;
    staged.open(place, memory, 4096, {}, false);
    staged.start_reading();
    staged.await_all();
    EXPECT_NE(staged.failure(), nullptr);
    staged.close();
    cuda.release(memory);
}

TEST(RunGroups, EqualRunsAtEqualDistancesAreOne) {
    std::vector<RunGroup> groups;
    add_run(groups, 0, 8);
    add_run(groups, 8, 8);
    ASSERT_EQ(groups.size(), 1U);
    EXPECT_EQ(groups[0].rows.width, 16);
    add_run(groups, 32, 16);
    add_run(groups, 64, 16);
    ASSERT_EQ(groups.size(), 1U);
    EXPECT_EQ(groups[0].rows.count, 3);
    EXPECT_EQ(groups[0].end(), 80);
    add_run(groups, 100, 16);
    add_run(groups, 200, 4);
    EXPECT_EQ(groups.size(), 3U);
}

}  // namespace
}  // namespace palmette::device
