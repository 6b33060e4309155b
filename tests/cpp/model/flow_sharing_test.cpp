// Max-min fair rates: small cases that can be worked out by hand, and long histories against filling all flows anew.
#include "palmette/model/flow/flow_sharing.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace palmette::model {
namespace {

TEST(FairSharing, gives_two_flows_over_one_link_a_half_each) {
    FairSharing sharing;
    const LinkId link = sharing.add_link(10);
    const BundleId a = sharing.add_bundle({link});
    sharing.change(a, 2);
    sharing.settle();
    EXPECT_DOUBLE_EQ(sharing.rate(a), 5);
    EXPECT_DOUBLE_EQ(sharing.load(link), 10);
    sharing.change(a, -1);
    sharing.settle();
    EXPECT_DOUBLE_EQ(sharing.rate(a), 10);
}

// The textbook's line of links: one flow goes all the way, one other over each link.
TEST(FairSharing, lets_a_flow_take_what_another_can_not_use) {
    FairSharing sharing;
    const LinkId narrow = sharing.add_link(1), wide = sharing.add_link(2);
    const BundleId through = sharing.add_bundle({narrow, wide});
    const BundleId first = sharing.add_bundle({narrow}), second = sharing.add_bundle({wide});
    for (const BundleId bundle : {through, first, second}) sharing.change(bundle, 1);
    sharing.settle();
    EXPECT_DOUBLE_EQ(sharing.rate(through), 0.5);
    EXPECT_DOUBLE_EQ(sharing.rate(first), 0.5);
    EXPECT_DOUBLE_EQ(sharing.rate(second), 1.5);
    // Two more over the wide link: each of its four has at most a half, so that nothing is left over.
    sharing.change(second, 2);
    sharing.settle();
    EXPECT_DOUBLE_EQ(sharing.rate(second), 0.5);
    EXPECT_DOUBLE_EQ(sharing.rate(through), 0.5);
    // A third: now the wide link is the narrower one for the flow over both.
    sharing.change(second, 1);
    sharing.settle();
    EXPECT_DOUBLE_EQ(sharing.rate(second), 0.4);
    EXPECT_DOUBLE_EQ(sharing.rate(through), 0.4);
    EXPECT_DOUBLE_EQ(sharing.rate(first), 0.6);
}

TEST(FairSharing, leaves_to_others_what_a_cap_keeps_a_flow_from_using) {
    FairSharing sharing;
    const LinkId link = sharing.add_link(12);
    const BundleId slow = sharing.add_bundle({link}, 2), free = sharing.add_bundle({link});
    sharing.change(slow, 2);
    sharing.change(free, 2);
    sharing.settle();
    EXPECT_DOUBLE_EQ(sharing.rate(slow), 2);
    EXPECT_DOUBLE_EQ(sharing.rate(free), 4);
    sharing.change(free, 6);
    sharing.settle();
    EXPECT_DOUBLE_EQ(sharing.rate(slow), 1.2);
    EXPECT_DOUBLE_EQ(sharing.rate(free), 1.2);
}

TEST(FairSharing, looks_at_nothing_that_a_change_does_not_reach) {
    FairSharing sharing;
    std::vector<BundleId> bundles;
    for (int i = 0; i < 100; ++i) {
        bundles.push_back(sharing.add_bundle({sharing.add_link(1)}));
        sharing.change(bundles.back(), 1);
    }
    sharing.settle();
    const std::uint64_t before = sharing.work();
    sharing.change(bundles[7], 1);
    EXPECT_EQ(sharing.settle().size(), 1);
    EXPECT_EQ(sharing.work() - before, 1);
}

struct Flow {
    std::vector<LinkId> links;
    double cap;
    int flows = 0;
};

/// All flows filled together, the slow and simple way.
std::vector<double> filled(const std::vector<double>& capacity, const std::vector<Flow>& flows) {
    std::vector<double> left = capacity, rate(flows.size(), -1);
    for (std::size_t i = 0; i < flows.size(); ++i)
        if (flows[i].flows == 0) rate[i] = 0;
    for (;;) {
        double least = FairSharing::unlimited;
        std::size_t tightest = capacity.size(), capped = flows.size();
        for (std::size_t l = 0; l < capacity.size(); ++l) {
            int users = 0;
            for (std::size_t i = 0; i < flows.size(); ++i)
                if (rate[i] < 0 && std::count(flows[i].links.begin(), flows[i].links.end(), l)) users += flows[i].flows;
            if (users > 0 && left[l] / users < least) least = left[l] / users, tightest = l;
        }
        for (std::size_t i = 0; i < flows.size(); ++i)
            if (rate[i] < 0 && flows[i].cap < least) least = flows[i].cap, capped = i;
        if (least == FairSharing::unlimited) return rate;
        for (std::size_t i = 0; i < flows.size(); ++i) {
            const bool here = capped < flows.size()
                                  ? i == capped
                                  : std::count(flows[i].links.begin(), flows[i].links.end(), tightest) > 0;
            if (rate[i] >= 0 || !here) continue;
            rate[i] = least;
            for (const LinkId l : flows[i].links) left[l] -= least * flows[i].flows;
        }
    }
}

TEST(FairSharing, agrees_with_filling_everything_anew_after_every_change) {
    for (unsigned seed = 0; seed < 30; ++seed) {
        std::mt19937 random(seed);
        const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
        FairSharing sharing;
        std::vector<double> capacity;
        for (std::size_t l = 0; l < 4 + below(12); ++l) {
            capacity.push_back(static_cast<double>(1 + below(5)));
            sharing.add_link(capacity.back());
        }
        std::vector<Flow> flows;
        for (std::size_t i = 0; i < 5 + below(40); ++i) {
            Flow flow{{}, below(4) == 0 ? 0.25 * static_cast<double>(1 + below(4)) : FairSharing::unlimited};
            for (LinkId l = 0; l < capacity.size(); ++l)
                if (below(capacity.size()) < 3) flow.links.push_back(l);
            if (flow.links.empty()) flow.links.push_back(0);
            sharing.add_bundle(flow.links, flow.cap);
            flows.push_back(flow);
        }
        for (int change = 0; change < 200; ++change) {
            for (std::size_t k = 0; k <= below(3); ++k) {
                const std::size_t i = below(flows.size());
                const int by = flows[i].flows > 0 && below(2) == 0 ? -1 : 1 + static_cast<int>(below(2));
                flows[i].flows += by;
                sharing.change(static_cast<BundleId>(i), by);
            }
            sharing.settle();
            const std::vector<double> expected = filled(capacity, flows);
            std::vector<double> load(capacity.size(), 0);
            for (std::size_t i = 0; i < flows.size(); ++i) {
                ASSERT_NEAR(sharing.rate(static_cast<BundleId>(i)), expected[i], 1e-9)
                    << "seed " << seed << ", change " << change << ", bundle " << i;
                for (const LinkId l : flows[i].links) load[l] += expected[i] * flows[i].flows;
            }
            for (LinkId l = 0; l < capacity.size(); ++l) ASSERT_NEAR(sharing.load(l), load[l], 1e-9);
        }
    }
}

TEST(FairSharing, with_a_tolerance_fills_no_link_too_much_and_is_about_fair_everywhere) {
    const double tolerance = 0.02;
    for (unsigned seed = 0; seed < 20; ++seed) {
        std::mt19937 random(seed);
        const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
        FairSharing sharing(tolerance);
        std::vector<Flow> flows;
        for (int l = 0; l < 12; ++l) sharing.add_link(static_cast<double>(1 + below(5)));
        for (int i = 0; i < 40; ++i) {
            const auto a = static_cast<LinkId>(below(12)), b = static_cast<LinkId>((a + 1 + below(11)) % 12);
            flows.push_back({{a, b}, FairSharing::unlimited});
            sharing.add_bundle(flows.back().links);
        }
        for (int change = 0; change < 300; ++change) {
            const std::size_t i = below(flows.size());
            const int by = flows[i].flows > 0 && below(2) == 0 ? -1 : 1;
            flows[i].flows += by;
            sharing.change(static_cast<BundleId>(i), by);
            sharing.settle();
            for (LinkId l = 0; l < 12; ++l) ASSERT_LE(sharing.load(l), sharing.capacity(l) * (1 + 1e-9));
            for (BundleId b = 0; b < flows.size(); ++b) {
                if (flows[b].flows == 0) continue;
                const bool has_bottleneck = std::any_of(flows[b].links.begin(), flows[b].links.end(), [&](LinkId l) {
                    if (sharing.load(l) < sharing.capacity(l) * (1 - 2 * tolerance)) return false;
                    double highest = 0;
                    for (BundleId other = 0; other < flows.size(); ++other)
                        if (flows[other].flows > 0 &&
                            std::count(flows[other].links.begin(), flows[other].links.end(), l))
                            highest = std::max(highest, sharing.rate(other));
                    return sharing.rate(b) >= highest * (1 - 2 * tolerance);
                });
                ASSERT_TRUE(has_bottleneck) << "seed " << seed << ", change " << change << ", bundle " << b;
            }
        }
    }
}

}  // namespace
}  // namespace palmette::model
