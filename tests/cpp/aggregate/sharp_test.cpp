// libsharp_coll: which libraries are taken, what their switches combine, and a member's operations over a library that
// is made of functions here.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <numeric>
#include <set>
#include <vector>

#include "alone.hpp"
#include "palmette/aggregate/sharp/group.hpp"
#include "palmette/aggregate/sharp/library.hpp"
#include "palmette/aggregate/sharp/types.hpp"
#include "palmette/base/text.hpp"

namespace palmette::aggregate::sharp {
namespace {

using kernels::Element;
using kernels::Operator;

std::string twin(const std::string& file) { return base::cat(PALMETTE_SHARP_TWINS, "/", file); }

bool is_there(const std::string& path) { return std::filesystem::exists(path); }

TEST(Library, is_taken_with_the_functions_and_the_soname_of_version_3) {
    const std::string path = PALMETTE_SHARP_TWIN;
    if (!is_there(path)) GTEST_SKIP() << path << " isn't built";
    const LibraryLookup& found = find_library(path);
    ASSERT_NE(found.library, nullptr) << found.detail;
    EXPECT_EQ(found.reason, Reason::none);
    EXPECT_EQ(found.library->path, path);
    EXPECT_EQ(found.library->default_config->timeout_ms, -1);
    EXPECT_EQ(found.library->error_text(error_lock_failed), "the tree's lock is taken (-18)");
}

TEST(Library, is_refused_without_a_function_of_version_3) {
    const std::string path = twin("sharp_bare/libsharp_coll.so.5");
    if (!is_there(path)) GTEST_SKIP() << path << " isn't built";
    const LibraryLookup& found = find_library(path);
    EXPECT_EQ(found.library, nullptr);
    EXPECT_EQ(found.reason, Reason::other_library);
    EXPECT_NE(found.detail.find("no sharp_coll_do_allgather_nb"), std::string::npos) << found.detail;
}

TEST(Library, is_refused_with_another_soname) {
    const std::string path = twin("sharp_old/libsharp_coll.so.4");
    if (!is_there(path)) GTEST_SKIP() << path << " isn't built";
    const LibraryLookup& found = find_library(path);
    EXPECT_EQ(found.library, nullptr);
    EXPECT_EQ(found.reason, Reason::other_library);
    EXPECT_NE(found.detail.find("'libsharp_coll.so.4'"), std::string::npos) << found.detail;
}

TEST(Library, that_is_not_there_has_the_loaders_words) {
    const LibraryLookup& found = find_library("/nowhere/libsharp_coll.so.5");
    EXPECT_EQ(found.library, nullptr);
    EXPECT_EQ(found.reason, Reason::no_library);
    EXPECT_NE(found.detail.find("/nowhere/libsharp_coll.so.5"), std::string::npos) << found.detail;
}

TEST(Reasons, tell_codes_apart_that_ask_for_something_else) {
    std::set<Reason> all;
    for (const int code : {error_general, error_unsupported, error_group_alloc, error_tree_connect, error_group_join,
                           error_quota, error_session, error_device, error_job_create, error_no_tree, error_out_of_band,
                           error_lock_failed, error_lock_denied, error_no_resource})
        all.insert(reason_of(code));
    EXPECT_EQ(all.size(), 14U);
    EXPECT_EQ(all.count(Reason::none), 0U);
    EXPECT_EQ(reason_of(-77), Reason::library);
    for (const Reason reason : all) EXPECT_NE(name_of(reason), "unknown");
}

Capabilities capable(std::initializer_list<int> types, std::initializer_list<int> ops) {
    Capabilities out{};
    for (const int type : types) out.mask.types |= std::uint64_t{1} << type;
    for (const int op : ops) out.mask.ops |= std::uint64_t{1} << op;
    return out;
}

TEST(Types, only_what_the_capabilities_have) {
    const Combines combines = Combines::of(capable({type_int32, type_float64}, {op_sum, op_bor}));
    EXPECT_TRUE(combines(Operator::sum, Element::int32));
    EXPECT_TRUE(combines(Operator::bor, Element::int32));
    EXPECT_TRUE(combines(Operator::sum, Element::float64));
    EXPECT_FALSE(combines(Operator::max, Element::int32));
    EXPECT_FALSE(combines(Operator::sum, Element::bfloat16));
    EXPECT_FALSE(combines(Operator::sum, Element::int8));
}

TEST(Types, products_places_and_numbers_that_no_switch_knows_never) {
    Capabilities all{};
    all.mask.types = all.mask.ops = ~std::uint64_t{0};
    const Combines combines = Combines::of(all);
    for (const Operator op : {Operator::prod, Operator::minloc, Operator::maxloc})
        EXPECT_FALSE(combines(op, Element::int32));
    for (const Element element : {Element::complex_float, Element::complex_double, Element::long_double,
                                  Element::logical32, Element::int_int, Element::float_int})
        EXPECT_FALSE(combines(Operator::sum, element));
    EXPECT_TRUE(combines(Operator::sum, Element::bfloat16));
    EXPECT_TRUE(combines(Operator::max, Element::uint8));
}

TEST(Types, have_the_numbers_of_the_interface) {
    EXPECT_EQ(type_of(Element::uint32), 0);
    EXPECT_EQ(type_of(Element::int64), 3);
    EXPECT_EQ(type_of(Element::float64), 5);
    EXPECT_EQ(type_of(Element::float16), 8);
    EXPECT_EQ(type_of(Element::bfloat16), 9);
    EXPECT_EQ(type_of(Element::int8), 11);
    EXPECT_EQ(op_of(Operator::max), 0);
    EXPECT_EQ(op_of(Operator::sum), 2);
    EXPECT_EQ(op_of(Operator::land), 4);
    EXPECT_EQ(op_of(Operator::bxor), 9);
}

/// What the functions below have seen, and what they are to do.
struct LibraryCalls {
    int registered = 0, open = 0, code_after = 0;
    std::size_t operations = 0;
    std::vector<std::size_t> bytes;
    std::vector<bool> with_memory;
    std::vector<ReduceSpec*> outstanding;
    bool completes = true, finalized = false, destroyed = false;
} seen;

/// One member: its sum is its own number. Requests hold their spec until they are waited for.
Library functions() {
    seen = {};
    Library out;
    static const Config config{nullptr, 0, -1, 0, {}};
    out.default_config = &config;
    out.strerror = [](int) { return "an error"; };
    out.init = [](InitSpec* spec, Context** context) {
        EXPECT_EQ(spec->config.flags, hide_errors | no_lazy_resources);
        for (const int field : spec->reserved) EXPECT_EQ(field, 0);
        *context = reinterpret_cast<Context*>(&seen);
        ++seen.open;
        return 0;
    };
    out.finalize = [](Context*) {
        EXPECT_EQ(seen.registered, 0);
        EXPECT_TRUE(seen.destroyed);
        seen.finalized = true;
        --seen.open;
        return 0;
    };
    out.comm_init = [](Context*, CommSpec* spec, Comm** comm) {
        EXPECT_EQ(spec->group_world_ranks[0], 0U);
        *comm = reinterpret_cast<Comm*>(&seen);
        return 0;
    };
    out.comm_destroy = [](Comm*) {
        EXPECT_EQ(seen.registered, 0);
        seen.destroyed = true;
        return 0;
    };
    out.caps_query = [](Context*, Capabilities* out_capabilities) {
        *out_capabilities = capable({type_int32, type_float64}, {op_sum});
        return 0;
    };
    out.progress = [](Context*) { return 0; };
    out.reg_mr = [](Context*, void* data, std::size_t, void** memory) {
        ++seen.registered;
        *memory = data;
        return 0;
    };
    out.dereg_mr = [](Context*, void*) {
        --seen.registered;
        return 0;
    };
    out.do_allreduce_nb = [](Comm*, ReduceSpec* spec, void** handle) {
        EXPECT_EQ(spec->tag_type, 0);
        EXPECT_EQ(spec->mode, 0);
        EXPECT_EQ(spec->reserved[0] | spec->reserved[1], 0);
        ++seen.operations;
        seen.bytes.push_back(spec->from.buffer.bytes);
        seen.with_memory.push_back(spec->from.buffer.memory != nullptr);
        auto* const kept = new ReduceSpec(*spec);
        seen.outstanding.push_back(kept);
        *handle = kept;
        return 0;
    };
    out.req_test = [](void*) { return seen.completes ? 1 : 0; };
    out.req_wait = [](void* handle) {
        auto* const spec = static_cast<ReduceSpec*>(handle);
        std::memcpy(spec->to.buffer.data, spec->from.buffer.data, spec->from.buffer.bytes);
        std::erase(seen.outstanding, spec);
        delete spec;
        return seen.operations > 1 ? seen.code_after : 0;
    };
    return out;
}

class OneMember : public ::testing::Test {
  protected:
    void join() {
        ASSERT_EQ(group.init(1).reason, Reason::none);
        ASSERT_EQ(group.create().reason, Reason::none);
        const Problem problem = group.prove();
        ASSERT_EQ(problem.reason, Reason::none) << problem.detail;
    }

    /// A sum of short vectors.
    void post() {
        const auto operation =
            Operation::allreduce(Operator::sum, Element::float64, input.data(), output.data(), input.size());
        ASSERT_EQ(group.post(operation, number), Reason::none);
    }

    Library library = functions();
    SoleMember others;
    Group group{library, others, 0, 1, false};
    std::vector<double> input = std::vector<double>(100, 1), output = std::vector<double>(100, -1);
    std::uint32_t number = 0;
};

TEST_F(OneMember, gives_everything_back_in_order) {
    join();
    EXPECT_TRUE(group.ready());
    EXPECT_EQ(seen.registered, 1);
    group.close();
    EXPECT_TRUE(seen.finalized);
    EXPECT_EQ(seen.open, 0);
}

TEST_F(OneMember, cuts_what_is_longer_than_its_buffers) {
    join();
    input.resize(5 * Group::slots * Group::slot_bytes / 16 + 3);
    output.resize(input.size());
    std::iota(input.begin(), input.end(), 1);
    post();
    EXPECT_EQ(seen.outstanding.size(), Group::slots);
    for (int turn = 0; turn < 100 && !group.done(number); ++turn) group.progress();
    EXPECT_TRUE(group.done(number));
    EXPECT_EQ(input, output);
    EXPECT_EQ(seen.bytes.back(), 24U);
    EXPECT_FALSE(seen.with_memory.back());  // less than 256 bytes
    EXPECT_TRUE(seen.with_memory.front());
    group.close();
}

TEST_F(OneMember, refuses_what_the_switches_do_not_combine) {
    join();
    float one = 1;
    EXPECT_EQ(group.post(Operation::allreduce(Operator::sum, Element::float32, &one, &one, 1), number),
              Reason::unsupported);
    EXPECT_FALSE(group.failed());
    group.close();
}

TEST_F(OneMember, tells_the_others_of_a_late_failure_and_leaves_the_result_alone) {
    join();
    seen.code_after = error_tree_connect;
    post();
    group.progress();
    EXPECT_TRUE(group.failed());
    EXPECT_EQ(group.reason(), Reason::tree_connect);
    EXPECT_EQ(others.told, Reason::tree_connect);
    EXPECT_FALSE(group.done(number));
    EXPECT_EQ(output, std::vector<double>(100, -1));
    group.close();
    EXPECT_TRUE(seen.finalized);
}

TEST_F(OneMember, ends_with_one_that_has_aborted) {
    join();
    seen.completes = false;
    post();
    others.by = {3, Reason::device};
    for (int turn = 0; turn < 1000 && !group.failed(); ++turn) group.progress();
    EXPECT_EQ(group.reason(), Reason::member_lost);
    EXPECT_EQ(group.detail(), "leader 3 has failed: device");
    seen.completes = true;  // after all
    group.close();
    EXPECT_TRUE(seen.finalized);
}

/// The last of them, for no group of the process joins any more.
TEST_F(OneMember, whose_operation_never_ends_leaves_all_as_it_is) {
    join();
    seen.completes = false;
    post();
    group.leave();
    group.close();
    EXPECT_FALSE(seen.finalized);
    EXPECT_EQ(seen.registered, 1);
    Group next{library, others, 0, 1, false};
    EXPECT_EQ(next.init(2).reason, Reason::library);
    for (ReduceSpec* spec : seen.outstanding) delete spec;
}

}  // namespace
}  // namespace palmette::aggregate::sharp
