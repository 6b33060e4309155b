#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <linux/userfaultfd.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <fstream>
#include <map>
#include <thread>
#include <vector>

#include "palmette/aggregate/io_uring_registrar.hpp"
#include "palmette/aggregate/known_memory.hpp"
#include "palmette/aggregate/registration_cache.hpp"
#include "palmette/aggregate/socket.hpp"

namespace palmette::aggregate {
namespace {

const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));

class FakeRegistrar : public Registrar {
  public:
    std::uintptr_t register_memory(void* memory, std::size_t bytes) override {
        live[++next_] = {memory, bytes};
        return next_;
    }
    void unregister_memory(std::uintptr_t handle) noexcept override { EXPECT_EQ(live.erase(handle), 1U); }
    std::map<std::uintptr_t, std::pair<void*, std::size_t>> live;

  private:
    std::uintptr_t next_ = 0;
};

/// Anonymous pages full of a letter, wanted at an address or anywhere.
char* pages_of(char letter, std::size_t bytes, void* at = nullptr) {
    void* const memory =
        mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | (at ? MAP_FIXED_NOREPLACE : 0), -1, 0);
    if (memory == MAP_FAILED) return nullptr;
    std::memset(memory, letter, bytes);
    return static_cast<char*>(memory);
}

TEST(RegistrationCache, takes_only_memory_whose_owner_says_when_it_goes) {
    FakeRegistrar registrar;
    RegistrationCache cache(registrar, {});
    alignas(4096) static char pool[4 * 4096];
    EXPECT_EQ(cache.take(pool, 100), nullptr);
    EXPECT_EQ(cache.counts().foreign, 1);
    EXPECT_EQ(cache.counts().misses, 0) << "the registrar isn't asked";

    cache.allow(pool, 2 * 4096);
    cache.allow(pool + 2 * 4096, 4096);
    auto* const registration = cache.take(pool + 10, 3 * 4096 - 10);
    ASSERT_NE(registration, nullptr) << "neighbours are allowed as one";
    EXPECT_EQ(cache.take(pool + 10, 3 * 4096), nullptr) << "its end is a stranger's";
    cache.release(registration);

    cache.withdraw(pool + 4096, 4096);
    EXPECT_TRUE(registrar.live.empty());
    EXPECT_EQ(cache.counts().invalidations, 1);
    EXPECT_EQ(cache.take(pool, 2 * 4096), nullptr);
    auto* const before = cache.take(pool, 4096);
    auto* const behind = cache.take(pool + 2 * 4096, 4096);
    EXPECT_TRUE(before && behind) << "what is left stays allowed";
    cache.release(before);
    cache.release(behind);
}

TEST(RegistrationCache, memory_withdrawn_in_use_is_registered_until_released_and_found_no_more) {
    FakeRegistrar registrar;
    RegistrationCache cache(registrar, {});
    alignas(4096) static char memory[4096];
    cache.allow(memory, sizeof memory);
    auto* const old = cache.take(memory, 8);
    cache.withdraw(memory, sizeof memory);
    cache.allow(memory, sizeof memory);
    auto* const fresh = cache.take(memory, 8);
    ASSERT_TRUE(old && fresh);
    EXPECT_NE(old->handle, fresh->handle);
    EXPECT_EQ(registrar.live.size(), 2U);
    cache.release(old);
    EXPECT_EQ(registrar.live.size(), 1U);
    cache.release(fresh);
}

TEST(RegistrationCache, of_memory_that_is_used_in_pieces_registers_all_of_it_once) {
    FakeRegistrar registrar;
    RegistrationCache cache(registrar, {});
    alignas(4096) static char memory[8 * 4096];
    cache.allow(memory, sizeof memory);
    for (std::size_t at = 0; at < sizeof memory; at += 4096) {
        auto* const piece = cache.take(memory + at, 4096, RegistrationCache::Extent::allowed);
        ASSERT_NE(piece, nullptr);
        cache.release(piece);
    }
    EXPECT_EQ(cache.counts().misses, 1);
    EXPECT_EQ(cache.bytes(), static_cast<std::int64_t>(sizeof memory));
    // Where all of it is too much, the piece alone.
    RegistrationCache small(registrar, {128, 8 * 4096});
    small.allow(memory, sizeof memory);
    auto* const piece = small.take(memory, 4096, RegistrationCache::Extent::allowed);
    ASSERT_NE(piece, nullptr);
    EXPECT_EQ(small.bytes(), 4096);
    small.release(piece);
}

TEST(KnownMemory, goes_to_all_caches_and_is_withdrawn_from_them_when_it_goes) {
    FakeRegistrar registrar;
    RegistrationCache early(registrar, {}), late(registrar, {});
    KnownMemory known;
    alignas(4096) static char memory[2 * 4096], stranger[4096];
    known.join(early);
    known.added(memory, sizeof memory);
    known.join(late);
    for (RegistrationCache* const cache : {&early, &late}) {
        auto* const registration = cache->take(memory + 100, 5000);
        ASSERT_NE(registration, nullptr);
        cache->release(registration);
        EXPECT_EQ(cache->take(stranger, 8), nullptr);
    }
    known.removed(stranger);
    EXPECT_EQ(registrar.live.size(), 2U);
    known.removed(memory);
    EXPECT_TRUE(registrar.live.empty());
    EXPECT_EQ(early.take(memory, 8), nullptr);
    known.added(memory, sizeof memory);
    auto* const stale = late.take(memory, 8);
    ASSERT_NE(stale, nullptr);
    late.release(stale);
    known.added(memory, sizeof memory);
    EXPECT_EQ(late.counts().invalidations, 2) << "what is allocated again has gone before, even if nobody said so";
    known.removed(memory);
    known.leave(early);
    known.added(memory, sizeof memory);
    EXPECT_EQ(early.take(memory, 8), nullptr) << "it has left";
    known.removed(memory);
}

/// A TCP connection on this host.
struct Connection {
    Connection() {
        const Fd listener(socket(AF_INET, SOCK_STREAM, 0));
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t length = sizeof address;
        auto* const where = reinterpret_cast<sockaddr*>(&address);
        EXPECT_EQ(bind(listener.get(), where, sizeof address), 0);
        EXPECT_EQ(listen(listener.get(), 1), 0);
        EXPECT_EQ(getsockname(listener.get(), where, &length), 0);
        from = Fd(socket(AF_INET, SOCK_STREAM, 0));
        EXPECT_EQ(connect(from.get(), where, sizeof address), 0);
        to = Fd(accept(listener.get(), nullptr, nullptr));
    }
    std::vector<char> receive(std::size_t bytes) const {
        std::vector<char> out(bytes);
        std::size_t done = 0;
        for (ssize_t got = 1; done < bytes && got > 0; done += static_cast<std::size_t>(got))
            got = std::max<ssize_t>(0, recv(to.get(), out.data() + done, bytes - done, 0));
        EXPECT_EQ(done, bytes);
        return out;
    }
    Fd from, to;
};

class IoUring : public ::testing::Test {
  protected:
    void SetUp() override {
        std::string why;
        registrar = IoUringRegistrar::open(8, why);
        if (!registrar) GTEST_SKIP() << why;
        char* const memory = pages_of('t', bytes);
        const std::uintptr_t handle = registrar->register_memory(memory, bytes);
        if (!handle) GTEST_SKIP() << "registering memory: " << std::strerror(registrar->refused_by());
        const int error = registrar->send(connection.from.get(), handle, memory, bytes).error;
        registrar->unregister_memory(handle);
        munmap(memory, bytes);
        if (error) GTEST_SKIP() << "sending from registered memory: " << std::strerror(error);
        connection.receive(bytes);
    }
    /// What comes when the memory is sent by its registration in the cache.
    char sent(RegistrationCache& cache, const char* memory) {
        auto* const registration = cache.take(memory, bytes);
        if (!registration) return '?';
        const IoUringRegistrar::SendResult ended =
            registrar->send(connection.from.get(), registration->handle, memory, bytes);
        cache.release(registration);
        EXPECT_EQ(ended.error, 0) << std::strerror(ended.error);
        if (ended.error) return '?';
        const std::vector<char> got = connection.receive(bytes);
        EXPECT_EQ(got, std::vector<char>(bytes, got[0]));
        return got[0];
    }
    const std::size_t bytes = 4 * page;
    std::unique_ptr<IoUringRegistrar> registrar;
    Connection connection;
};

TEST_F(IoUring, sends_registered_pages_and_counts_them) {
    RegistrationCache cache(*registrar, {}, RegistrationCache::Others::trusted);
    char* const memory = pages_of('a', bytes);
    EXPECT_EQ(sent(cache, memory), 'a');
    std::memset(memory, 'b', bytes);
    EXPECT_EQ(sent(cache, memory), 'b') << "the same pages";
    EXPECT_EQ(cache.counts().hits, 1);
    EXPECT_EQ(cache.counts().misses, 1);
    cache.withdraw(memory, bytes);
    munmap(memory, bytes);
}

/// The hazard: nothing tells the cache that the addresses have other pages now.
TEST_F(IoUring, old_pages_are_sent_from_reused_addresses_unless_they_were_withdrawn) {
    for (const bool told : {false, true}) {
        RegistrationCache cache(*registrar, {}, RegistrationCache::Others::trusted);
        char* const memory = pages_of('o', bytes);
        EXPECT_EQ(sent(cache, memory), 'o');
        if (told) cache.withdraw(memory, bytes);
        munmap(memory, bytes);
        ASSERT_EQ(pages_of('n', bytes, memory), memory);
        EXPECT_EQ(sent(cache, memory), told ? 'n' : 'o');
        cache.withdraw(memory, bytes);
        munmap(memory, bytes);
    }
}

TEST_F(IoUring, memory_of_strangers_is_refused_so_that_reused_addresses_cannot_be_sent) {
    RegistrationCache cache(*registrar, {});
    char* const memory = pages_of('o', bytes);
    EXPECT_EQ(sent(cache, memory), '?');
    EXPECT_EQ(cache.counts().foreign, 1);
    munmap(memory, bytes);
}

TEST_F(IoUring, its_table_and_the_cache_have_bounds) {
    RegistrationCache cache(*registrar, {4, static_cast<std::int64_t>(64 * page)}, RegistrationCache::Others::trusted);
    std::vector<char*> all;
    for (int i = 0; i < 12; ++i) {
        all.push_back(pages_of('x', 8 * page));
        auto* const registration = cache.take(all.back(), 8 * page);
        ASSERT_NE(registration, nullptr) << std::strerror(registrar->refused_by());
        cache.release(registration);
        EXPECT_LE(cache.entries(), 4);
    }
    EXPECT_EQ(cache.counts().evictions, 8);
    for (char* const one : all) cache.withdraw(one, 8 * page);

    RegistrationCache wide(*registrar, {}, RegistrationCache::Others::trusted);
    for (char* const one : all) {
        auto* const registration = wide.take(one, 8 * page);
        ASSERT_NE(registration, nullptr) << "the table has 8 entries, and the oldest makes room";
        wide.release(registration);
    }
    EXPECT_EQ(wide.entries(), 8);
    for (char* const one : all) wide.withdraw(one, 8 * page);
    for (char* const one : all) munmap(one, 8 * page);
    EXPECT_EQ(cache.bytes(), 0);
}

TEST(IoUringForbidden, says_so) {
    // In a child: a filter can't be taken away again.
    const pid_t child = fork();
    if (child == 0) {
        sock_filter steps[] = {
            BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
            BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_io_uring_setup, 0, 1),
            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        };
        const sock_fprog filter{4, steps};
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter)) _exit(2);
        std::string why;
        const bool opened = IoUringRegistrar::open(8, why) != nullptr;
        _exit(!opened && why.find("container") != std::string::npos ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    if (WEXITSTATUS(status) == 2) GTEST_SKIP() << "no seccomp filters here";
    EXPECT_EQ(WEXITSTATUS(status), 0);
}

/// Why memory of others isn't watched: munmap doesn't return before the event has been read, which takes a thread that
/// always runs beside the program.
TEST(Userfaultfd, munmap_of_watched_memory_waits_until_the_event_is_read) {
    const Fd watch(static_cast<int>(syscall(__NR_userfaultfd, O_CLOEXEC | O_NONBLOCK)));
    if (!watch) GTEST_SKIP() << "userfaultfd: " << std::strerror(errno);
    uffdio_api api{UFFD_API, UFFD_FEATURE_EVENT_UNMAP, 0};
    if (ioctl(watch.get(), UFFDIO_API, &api) != 0) GTEST_SKIP() << "no events: " << std::strerror(errno);
    char* const memory = pages_of('w', page);
    uffdio_register range{};
    range.range = {reinterpret_cast<std::uintptr_t>(memory), page};
    range.mode = UFFDIO_REGISTER_MODE_MISSING;
    ASSERT_EQ(ioctl(watch.get(), UFFDIO_REGISTER, &range), 0);

    std::atomic<bool> returned = false;
    std::thread program([&] {
        munmap(memory, page);
        returned = true;
    });
    pollfd event{watch.get(), POLLIN, 0};
    ASSERT_EQ(poll(&event, 1, 10000), 1);
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    EXPECT_FALSE(returned) << "then no thread is needed, and user memory could be registered";
    uffd_msg message{};
    ASSERT_EQ(read(watch.get(), &message, sizeof message), static_cast<ssize_t>(sizeof message));
    EXPECT_EQ(message.event, UFFD_EVENT_UNMAP);
    program.join();
    EXPECT_TRUE(returned);
}

}  // namespace
}  // namespace palmette::aggregate
