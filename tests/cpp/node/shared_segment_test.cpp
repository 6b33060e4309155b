#include "palmette/node/shared_segment.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include <cstring>
#include <filesystem>

#include "palmette/node/shared_node.hpp"
#include "support/processes.hpp"

namespace palmette::node {
namespace {

using test::end_of;
using test::run_processes;
using test::start_process;
using testing::HasSubstr;
using Backing = SharedSegment::Backing;

std::string decimal(std::int64_t number) { return std::to_string(number); }

/// The file in /dev/shm that a name of Backing::named speaks of.
std::filesystem::path file_of(const std::string& name) {
    const auto begin = name.find(':') + 1;
    return std::filesystem::path("/dev/shm") / name.substr(begin, name.find(':', begin) - begin);
}

class SharedSegmentOfEachKind : public testing::TestWithParam<Backing> {};
INSTANTIATE_TEST_SUITE_P(, SharedSegmentOfEachKind, testing::Values(Backing::memfd, Backing::named),
                         [](const auto& kind) { return kind.param == Backing::memfd ? "memfd" : "named"; });

TEST_P(SharedSegmentOfEachKind, is_the_same_memory_in_another_process) {
    std::string name;
    std::string why;
    const auto segment = SharedSegment::create(3, {}, GetParam(), name, why);
    ASSERT_TRUE(segment) << why;
    EXPECT_LT(name.size(), static_cast<std::size_t>(SharedSegment::name_capacity));
    std::strcpy(segment->part(2), "from the creator");
    run_processes(1, [&](int) {
        const auto opened = SharedSegment::open(name, 3, why);
        ASSERT_TRUE(opened) << why;
        EXPECT_STREQ(opened->part(2), "from the creator");
        std::strcpy(opened->part(1), "from the other");
    });
    EXPECT_STREQ(segment->part(1), "from the other");
}

TEST_P(SharedSegmentOfEachKind, cannot_be_opened_once_its_name_is_forgotten) {
    std::string name;
    std::string why;
    const auto segment = SharedSegment::create(2, {}, GetParam(), name, why);
    ASSERT_TRUE(segment) << why;
    segment->forget_name();
    EXPECT_FALSE(SharedSegment::open(name, 2, why));
    EXPECT_THAT(why, HasSubstr("No such file"));
    std::strcpy(segment->part(1), "still there");
}

TEST_P(SharedSegmentOfEachKind, leaves_nothing_when_all_its_processes_are_killed) {
    const int members = 4;
    int names[2];
    int joined[2];
    ASSERT_EQ(pipe(names), 0);
    ASSERT_EQ(pipe(joined), 0);
    // The creator tells its name through one pipe; everyone says through the other that it has joined, and then sleeps.
    char name[SharedSegment::name_capacity] = {};
    std::vector<pid_t> processes;
    const auto tell = [&] { EXPECT_EQ(write(joined[1], "x", 1), 1); };
    const auto heard = [&] {
        char x = 0;
        EXPECT_EQ(read(joined[0], &x, 1), 1);
    };
    processes.push_back(start_process(0, [&](int) {
        std::string mine;
        std::string why;
        const auto node = SharedNode::create(members, 0, {}, GetParam(), mine, why);
        ASSERT_TRUE(node) << why;
        std::strcpy(name, mine.c_str());
        EXPECT_EQ(write(names[1], name, sizeof name), static_cast<ssize_t>(sizeof name));
        for (int i = 1; i < members; ++i) heard();
        node->all_joined();
        EXPECT_EQ(write(names[1], name, sizeof name), static_cast<ssize_t>(sizeof name));
        sleep(test::patience_s);
    }));
    ASSERT_EQ(read(names[0], name, sizeof name), static_cast<ssize_t>(sizeof name));
    for (int i = 1; i < members; ++i)
        processes.push_back(start_process(i, [&](int me) {
            std::string why;
            const auto node = SharedNode::attach(name, members, me, why);
            ASSERT_TRUE(node) << why;
            tell();
            sleep(test::patience_s);
        }));
    ASSERT_EQ(read(names[0], name, sizeof name), static_cast<ssize_t>(sizeof name));
    for (const pid_t process : processes) kill(process, SIGKILL);
    for (const pid_t process : processes) EXPECT_EQ(end_of(process), "signal 9");
    std::string why;
    EXPECT_FALSE(SharedSegment::open(name, members, why));
    if (GetParam() == Backing::named) {
        EXPECT_FALSE(std::filesystem::exists(file_of(name)));
    }
}

TEST(SharedSegment, takes_the_name_of_the_fallback_away_when_it_is_given_up) {
    std::string name;
    std::string why;
    auto segment = SharedSegment::create(2, {}, Backing::named, name, why);
    ASSERT_TRUE(segment) << why;
    EXPECT_TRUE(std::filesystem::exists(file_of(name)));
    EXPECT_EQ(std::filesystem::status(file_of(name)).permissions(),
              std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
    segment.reset();
    EXPECT_FALSE(std::filesystem::exists(file_of(name)));
}

TEST(SharedSegment, cannot_be_cut_by_anybody) {
    std::string name;
    std::string why;
    const auto segment = SharedSegment::create(2, {}, Backing::memfd, name, why);
    ASSERT_TRUE(segment) << why;
    const auto descriptor = std::stoi(name.substr(name.find(':', 6) + 1));
    EXPECT_NE(ftruncate(descriptor, 4096), 0);
}

TEST(SharedSegment, falls_back_where_the_creators_descriptors_may_not_be_opened) {
    // A process that isn't dumpable keeps its /proc entries to root; so everybody here has to be somebody else.
    run_processes(1, [](int) {
        if (getuid() == 0) {
            ASSERT_EQ(setgid(65534), 0);
            ASSERT_EQ(setuid(65534), 0);
        }
        ASSERT_EQ(prctl(PR_SET_DUMPABLE, 0, 0, 0, 0), 0);
        std::string name;
        std::string why;
        const auto memfd = SharedNode::create(2, 0, {}, Backing::memfd, name, why);
        ASSERT_TRUE(memfd) << why;
        run_processes(1, [&](int) {
            EXPECT_FALSE(SharedNode::attach(name, 2, 1, why));
            EXPECT_THAT(why, HasSubstr("Permission denied"));
        });
        const auto named = SharedNode::create(2, 0, {}, Backing::named, name, why);
        ASSERT_TRUE(named) << why;
        int joined[2];
        ASSERT_EQ(pipe(joined), 0);
        const pid_t other = start_process(1, [&](int) {
            prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
            const auto node = SharedNode::attach(name, 2, 1, why);
            ASSERT_TRUE(node) << why;
            EXPECT_EQ(write(joined[1], "x", 1), 1);
            node->all_joined();
            while (!node->single_copy()) usleep(100);
            EXPECT_FALSE(*node->single_copy()) << "the creator's memory may not be read";
        });
        char x = 0;
        ASSERT_EQ(read(joined[0], &x, 1), 1);
        named->all_joined();
        EXPECT_EQ(end_of(other), "");
        EXPECT_EQ(named->single_copy(), std::optional<bool>(false));
    });
}

TEST(SharedSegment, says_what_is_wrong_with_a_name) {
    std::string name;
    std::string why;
    const auto segment = SharedSegment::create(2, {}, Backing::memfd, name, why);
    ASSERT_TRUE(segment) << why;
    const auto refused = [&](const std::string& wrong, int members = 2) {
        why.clear();
        EXPECT_FALSE(SharedSegment::open(wrong, members, why)) << wrong;
        return why;
    };
    for (const char* wrong :
         {"", "x", "memfd:1:2", "memfd:a:b:c", "memfd:1:2:xyz", "named:a/b:1", "named:a", "memfd:1:2:3:4"})
        EXPECT_THAT(refused(wrong), HasSubstr("names no shared memory"));
    EXPECT_THAT(refused("memfd:" + decimal(getpid()) + ":999:1"), HasSubstr("No such file"));
    EXPECT_THAT(refused("named:palmette-nobody:1"), HasSubstr("No such file"));
    EXPECT_THAT(refused(name, 3), HasSubstr("is for 2 ranks, not for 3"));
    EXPECT_THAT(refused(name.substr(0, name.rfind(':')) + ":1"), HasSubstr("is another shared memory"));
}

TEST(SharedSegment, refuses_what_is_not_its_own) {
    std::string why;
    const auto refused = [&](int descriptor) {
        EXPECT_FALSE(SharedSegment::open("memfd:" + decimal(getpid()) + ":" + decimal(descriptor) + ":1", 2, why));
        return why;
    };
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    EXPECT_THAT(refused(ends[0]), HasSubstr("is no shared memory of palmette"));
    const int empty = memfd_create("other", MFD_CLOEXEC);
    EXPECT_THAT(refused(empty), HasSubstr("is no shared memory of palmette"));
    ASSERT_EQ(ftruncate(empty, 1 << 20), 0);
    EXPECT_THAT(refused(empty), HasSubstr("or of another version"));
    const SharedHeader header{SharedHeader::magic_word, 1, 2, 1 << 20};
    ASSERT_EQ(pwrite(empty, &header, sizeof header, 0), static_cast<ssize_t>(sizeof header));
    EXPECT_THAT(refused(empty), HasSubstr("which contradicts its header"));
    for (const int descriptor : {ends[0], ends[1], empty}) close(descriptor);
}

TEST(SharedShape, gives_few_members_large_rings) {
    const SharedShape shape;
    EXPECT_EQ(shape.ring_for(2), 4 << 20);
    EXPECT_EQ(shape.ring_for(4), 4 << 20);
    EXPECT_EQ(shape.ring_for(8), 2 << 20);
    EXPECT_EQ(shape.ring_for(64), 1 << 20);
    EXPECT_LT(shape.ring_for(1024), 1 << 20) << "the limit";
    EXPECT_EQ((SharedShape{.ring_bytes = 100 << 10}.ring_for(2)), 100 << 10);
}

TEST(SharedShape, shrinks_the_rings_to_the_limit) {
    const SharedShape shape{.ring_bytes = 1 << 20, .limit_bytes = 64 << 20};
    EXPECT_EQ(shape.ring_for(2), 1 << 20);
    for (const std::int64_t members : {60, 100, 400, 800}) {
        const std::int64_t ring = shape.ring_for(members);
        EXPECT_GT(ring, 0) << members;
        EXPECT_EQ(ring % shared_page, 0);
        EXPECT_LE(SharedShape::segment_bytes(members, ring), shape.limit_bytes);
    }
    EXPECT_EQ(shape.ring_for(2000), 0);
    std::string name;
    std::string why;
    EXPECT_FALSE(SharedSegment::create(2000, shape, Backing::memfd, name, why));
    EXPECT_THAT(why, HasSubstr("too little for 2000 ranks: raise its limit"));
}

TEST(SharedSegment, takes_memory_only_where_it_is_written) {
    std::string name;
    std::string why;
    const auto segment = SharedSegment::create(256, {}, Backing::memfd, name, why);
    ASSERT_TRUE(segment) << why;
    struct stat status{};
    const auto descriptor = std::stoi(name.substr(name.find(':', 6) + 1));
    ASSERT_EQ(fstat(descriptor, &status), 0);
    EXPECT_GT(status.st_size, 256 << 20);
    EXPECT_LT(status.st_blocks * 512, 1 << 20);
}

}  // namespace
}  // namespace palmette::node
