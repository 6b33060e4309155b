// A group of switches with one member, over a library that is made up of functions here.
#include "palmette/aggregate/sharp/group.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <memory>
#include <numeric>
#include <vector>

#include "alone.hpp"
#include "palmette/aggregate/known_memory.hpp"

namespace palmette::aggregate::sharp {
namespace {

struct PostedReduction {
    ReduceSpec spec{};
    bool ended = false;
};

/// What the library knows.
struct Switches {
    std::map<void*, std::pair<char*, std::size_t>> registered;  ///< by handle
    std::vector<std::unique_ptr<PostedReduction>> sent;
    bool holds = false;  ///< operations don't end
    std::uintptr_t next = 0;
};
Switches* switches = nullptr;

Library made_up() {
    Library out;
    static const Config config{};
    out.default_config = &config;
    out.init = [](InitSpec*, Context** context) {
        *context = reinterpret_cast<Context*>(switches);
        return 0;
    };
    out.finalize = [](Context*) {
        EXPECT_TRUE(switches->registered.empty()) << "registered at the end";
        return 0;
    };
    out.caps_query = [](Context*, Capabilities* all) {
        all->mask.types = all->mask.ops = ~std::uint64_t{0};
        return 0;
    };
    out.progress = [](Context*) { return 0; };
    out.comm_init = [](Context*, CommSpec*, Comm** comm) {
        *comm = reinterpret_cast<Comm*>(switches);
        return 0;
    };
    out.comm_destroy = [](Comm*) { return 0; };
    out.do_allreduce_nb = [](Comm*, ReduceSpec* spec, void** request) {
        switches->sent.push_back(std::make_unique<PostedReduction>(PostedReduction{*spec}));
        *request = switches->sent.back().get();
        return 0;
    };
    out.req_test = [](void* request) {
        if (switches->holds) return 0;
        auto& sent = *static_cast<PostedReduction*>(request);
        // It reads and writes what is registered alone.
        for (const DataDescription* const one : {&sent.spec.from, &sent.spec.to}) {
            const auto found = switches->registered.find(one->buffer.memory);
            if (found == switches->registered.end()) {
                ADD_FAILURE() << "not registered";
                return 1;
            }
            const auto [data, bytes] = found->second;
            const char* const begin = static_cast<char*>(one->buffer.data);
            EXPECT_GE(begin, data);
            EXPECT_LE(begin + one->buffer.bytes, data + bytes);
        }
        std::memcpy(sent.spec.to.buffer.data, sent.spec.from.buffer.data, sent.spec.to.buffer.bytes);
        sent.ended = true;
        return 1;
    };
    out.req_wait = [](void*) { return 0; };
    out.reg_mr = [](Context*, void* data, std::size_t bytes, void** handle) {
        *handle = reinterpret_cast<void*>(++switches->next);
        switches->registered[*handle] = {static_cast<char*>(data), bytes};
        return 0;
    };
    out.dereg_mr = [](Context*, void* handle) {
        EXPECT_EQ(switches->registered.erase(handle), 1U);
        return 0;
    };
    out.strerror = [](int) { return "error"; };
    return out;
}

class SharpGroup : public ::testing::Test {
  protected:
    static constexpr std::size_t count = 100'000;

    void SetUp() override {
        switches = &known;
        ASSERT_EQ(group.init(1).reason, Reason::none);
        ASSERT_EQ(group.create().reason, Reason::none);
        ASSERT_EQ(group.prove().reason, Reason::none);
        known.sent.clear();
        input.resize(count);
        std::iota(input.begin(), input.end(), 1);
    }
    void TearDown() override {
        group.close();
        KnownMemory::instance().removed(input.data());
    }

    void sum() {
        std::vector<std::int32_t> output(count);
        post(output);
        while (!group.done(number)) group.progress();
        EXPECT_EQ(output, input);
    }
    void post(std::vector<std::int32_t>& output) {
        const auto operation = Operation::allreduce(kernels::Operator::sum, kernels::Element::int32, input.data(),
                                                    output.data(), input.size());
        ASSERT_EQ(group.post(operation, number), Reason::none);
    }
    /// Whether all that was sent lies in `input`, or none.
    bool all_from_input() const {
        std::size_t own = 0;
        for (const auto& one : known.sent) {
            const auto* const data = static_cast<const std::int32_t*>(one->spec.from.buffer.data);
            own += data >= input.data() && data < input.data() + input.size() ? 1 : 0;
        }
        EXPECT_TRUE(own == 0 || own == known.sent.size());
        return own > 0;
    }

    Switches known;
    Library library = made_up();
    SoleMember alone;
    Group group{library, alone, 0, 1, false};
    std::vector<std::int32_t> input;
    std::uint32_t number = 0;
};

TEST_F(SharpGroup, copies_memory_that_may_go_without_a_word) {
    sum();
    EXPECT_FALSE(all_from_input());
    EXPECT_EQ(group.registrations().foreign, 1);
    EXPECT_EQ(known.registered.size(), 1U) << "the pool";
}

TEST_F(SharpGroup, sends_owned_memory_from_where_it_is_and_registers_it_once) {
    KnownMemory::instance().added(input.data(), count * sizeof input[0]);
    sum();
    EXPECT_TRUE(all_from_input());
    sum();
    EXPECT_EQ(group.registrations().misses, 1);
    EXPECT_EQ(group.registrations().hits, 1);
    EXPECT_EQ(known.registered.size(), 2U);
}

TEST_F(SharpGroup, forgets_owned_memory_that_is_freed) {
    KnownMemory::instance().added(input.data(), count * sizeof input[0]);
    sum();
    KnownMemory::instance().removed(input.data());
    EXPECT_EQ(known.registered.size(), 1U);
    known.sent.clear();
    sum();  // the same address, of somebody else
    EXPECT_FALSE(all_from_input());
}

TEST_F(SharpGroup, keeps_what_is_freed_registered_until_its_operation_has_ended) {
    KnownMemory::instance().added(input.data(), count * sizeof input[0]);
    known.holds = true;
    std::vector<std::int32_t> output(count);
    post(output);
    KnownMemory::instance().removed(input.data());
    EXPECT_EQ(known.registered.size(), 2U);
    known.holds = false;
    while (!group.done(number)) group.progress();
    EXPECT_EQ(known.registered.size(), 1U);
}

TEST_F(SharpGroup, that_is_left_in_the_middle_of_an_operation_gives_all_back) {
    KnownMemory::instance().added(input.data(), count * sizeof input[0]);
    known.holds = true;
    std::vector<std::int32_t> output(count);
    post(output);
    group.leave();
    known.holds = false;  // close() waits for what was issued
}

}  // namespace
}  // namespace palmette::aggregate::sharp
