#include "palmette/base/stack_walk.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <array>
#include <csetjmp>
#include <functional>
#include <vector>

#include "palmette/base/outer_calls.hpp"
#include "palmette/base/readable.hpp"

namespace palmette::base {
namespace {

using Relation = StackWalk::Relation;

Standing standing_of(const void* return_address, const void* frame) {
    return {reinterpret_cast<std::uintptr_t>(frame), reinterpret_cast<std::uintptr_t>(return_address), 0};
}

/// A call as a wrapper makes it: what comes next is inside of it.
[[gnu::noinline]] void call(const std::function<void(const Standing&)>& next) {
    const Standing own = standing_of(__builtin_return_address(0), __builtin_frame_address(0));
    next(own);
    asm volatile("" ::: "memory");
}

[[gnu::noinline]] Relation seen_from_later(const Standing& begun) {
    StackWalk walk;
    Relation found{};
    call([&](const Standing& own) { found = walk.relation(begun, own.return_address, own.frame); });
    asm volatile("" ::: "memory");
    return found;
}

/// Uses so much of the stack, by an array whose size only the run knows.
[[gnu::noinline]] Relation seen_from_deeper(const Standing& begun, std::size_t bytes) {
    auto* const room = static_cast<volatile char*>(__builtin_alloca(bytes));
    room[0] = 1;
    const Relation found = seen_from_later(begun);
    room[bytes - 1] = 2;
    return found;
}

TEST(StackWalk, a_call_within_another_one_is_inside_of_it) {
    Relation found{};
    call([&](const Standing& outer) { found = seen_from_deeper(outer, 5000); });
    EXPECT_EQ(found, Relation::inside);
}

TEST(StackWalk, a_call_that_a_jump_left_is_no_more_there) {
    static std::jmp_buf back;
    static Standing left;
    if (setjmp(back) == 0)
        call([&](const Standing& outer) {
            left = outer;
            std::longjmp(back, 1);
        });
    EXPECT_EQ(seen_from_later(left), Relation::left);
    for (const std::size_t bytes : {16, 64, 200, 5000, 100000})
        EXPECT_EQ(seen_from_deeper(left, bytes), Relation::left) << bytes;
}

class Coroutine {
  public:
    static constexpr std::size_t bytes = 65536, hole = std::size_t{1} << 20;
    explicit Coroutine(std::function<void()> body) : body_(std::move(body)) {
        room_ = static_cast<char*>(mmap(nullptr, bytes + 2 * hole, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
        mprotect(room_ + hole, bytes, PROT_READ | PROT_WRITE);
        getcontext(&own_);
        own_.uc_stack.ss_sp = room_ + hole;
        own_.uc_stack.ss_size = bytes;
        own_.uc_link = nullptr;
        current = this;
        makecontext(&own_, &begin, 0);
    }
    Coroutine(const Coroutine&) = delete;
    Coroutine& operator=(const Coroutine&) = delete;
    ~Coroutine() { munmap(room_, bytes + 2 * hole); }
    void go_on() {
        current = this;
        swapcontext(&back_, &own_);
    }
    void give_way() { swapcontext(&own_, &back_); }

  private:
    static void begin() {
        Coroutine& self = *current;
        for (;;) {
            self.body_();
            self.give_way();
        }
    }
    static inline Coroutine* current = nullptr;
    std::function<void()> body_;
    char* room_ = nullptr;
    ucontext_t own_{}, back_{};
};

TEST(StackWalk, a_call_on_another_stack_is_elsewhere) {
    Standing of_coroutine;
    Relation from_there{};
    Standing here;
    Coroutine coroutine([&] {
        from_there = seen_from_later(here);
        call([&](const Standing& own) { of_coroutine = own; });
    });
    call([&](const Standing& own) {
        here = own;
        coroutine.go_on();
    });
    EXPECT_EQ(from_there, Relation::elsewhere);
    EXPECT_EQ(seen_from_later(of_coroutine), Relation::elsewhere);
}

/// Walks from a function whose frame has a size that only the run knows.
[[gnu::noinline]] std::size_t frames_of(StackWalk& walk, std::size_t bytes, bool& known) {
    auto* const room = static_cast<volatile char*>(__builtin_alloca(bytes));
    room[0] = 1;
    std::size_t count = 0;
    call([&](const Standing& own) {
        std::array<std::uintptr_t, 64> found{};
        StackWalk::End end = walk.follow(own.return_address, own.frame, found.size());
        known = end.node != nullptr;
        if (!known) end = walk.walk(own.return_address, own.frame, found.size());
        count = StackWalk::addresses(end.node, found);
    });
    room[bytes - 1] = 2;
    return count;
}

TEST(StackWalk, a_known_path_is_known_on_a_small_stack_too_and_nothing_is_read_beyond_it) {
    StackWalk walk;
    bool known = false;
    // The same function, with half a megabyte more below its callers than there is of the coroutine's stack.
    const std::size_t here = frames_of(walk, 500000, known);
    EXPECT_GT(here, 3U);
    std::vector<std::size_t> there;
    std::vector<char> were_known;
    Coroutine coroutine([&] {
        for (int i = 0; i < 2; ++i) {
            there.push_back(frames_of(walk, 16, known));
            were_known.push_back(known ? 1 : 0);
        }
    });
    coroutine.go_on();
    EXPECT_FALSE(were_known[0]);
    EXPECT_TRUE(were_known[1]);
    EXPECT_EQ(there[0], there[1]);
    for (const std::size_t bytes : {std::size_t{16}, std::size_t{500000}, std::size_t{3000}}) {
        EXPECT_EQ(frames_of(walk, bytes, known), here);
        EXPECT_EQ(known, bytes != 16) << "from the second time on, whatever the frame's size";
        known = false;
    }
}

TEST(StackWalk, addresses_are_those_of_the_callers_from_the_innermost_one_on) {
    StackWalk walk;
    call([&](const Standing& own) {
        std::array<std::uintptr_t, 64> found{};
        const StackWalk::End end = walk.walk(own.return_address, own.frame, found.size());
        ASSERT_GT(StackWalk::addresses(end.node, found), 2U);
        EXPECT_EQ(found[0], own.return_address);
        EXPECT_TRUE(end.is_complete);
        std::array<std::uintptr_t, 1> one{};
        EXPECT_EQ(StackWalk::addresses(end.node, one), 1U);
        EXPECT_EQ(one[0], own.return_address);
    });
}

TEST(Readable, tells_what_can_be_read) {
    constexpr std::size_t page = memory_page;
    auto* const room = static_cast<char*>(mmap(nullptr, 3 * page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    mprotect(room + page, page, PROT_NONE);
    const auto at = reinterpret_cast<std::uintptr_t>(room);
    EXPECT_TRUE(is_readable(at));
    EXPECT_FALSE(is_readable(at + page));
    EXPECT_TRUE(is_readable(at + 100, page - 100));
    EXPECT_FALSE(is_readable(at + 100, page));
    EXPECT_FALSE(is_readable(at, 3 * page));
    EXPECT_TRUE(is_readable(at + page, 0));
    EXPECT_FALSE(is_readable(~std::uintptr_t{0} - 4, 8));
    munmap(room, 3 * page);
    EXPECT_FALSE(is_readable(at));
    EXPECT_FALSE(is_readable(0));
}

[[gnu::noinline]] OuterCalls::Place begin(OuterCalls& calls, const std::function<void()>& inside, bool ends = true) {
    const OuterCalls::Place place = calls.begin(__builtin_return_address(0), __builtin_frame_address(0));
    inside();
    if (place && ends) calls.end(place);
    return place;
}

TEST(OuterCalls, are_those_that_are_inside_of_none) {
    OuterCalls calls;
    OuterCalls::Place inner;
    const OuterCalls::Place outer = begin(calls, [&] { inner = begin(calls, [] {}); });
    EXPECT_TRUE(outer);
    EXPECT_FALSE(inner);
    EXPECT_FALSE(calls.any());
    std::jmp_buf back;
    if (setjmp(back) == 0) begin(calls, [&] { std::longjmp(back, 1); });
    EXPECT_TRUE(calls.any());
    EXPECT_TRUE(begin(calls, [] {})) << "the other one has been left";
    EXPECT_FALSE(calls.any());
}

TEST(OuterCalls, go_on_beside_those_of_other_stacks) {
    OuterCalls calls;
    OuterCalls::Place there;
    OuterCalls::Place inside;
    Coroutine* self = nullptr;
    Coroutine coroutine([&] {
        there = begin(calls, [&] {
            inside = begin(calls, [] {});
            self->give_way();
        });
    });
    self = &coroutine;
    const OuterCalls::Place here = begin(calls, [&] { coroutine.go_on(); });
    EXPECT_TRUE(here);
    EXPECT_FALSE(calls.holds(here));
    EXPECT_TRUE(calls.any()) << "the coroutine's hasn't returned";
    coroutine.go_on();
    EXPECT_TRUE(there);
    EXPECT_NE(there.slot, here.slot);
    EXPECT_FALSE(inside);
    EXPECT_FALSE(calls.any());
}

}  // namespace
}  // namespace palmette::base
