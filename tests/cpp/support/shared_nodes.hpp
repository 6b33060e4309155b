// Shared memory of a node for tests: all members in one process, or one each in forked processes.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "palmette/node/shared_node.hpp"
#include "palmette/node/spin_wait.hpp"

namespace palmette::test {

inline std::shared_ptr<node::SharedSegment> make_segment(int members, std::int64_t ring_bytes = 1 << 16) {
    std::string name;
    std::string why;
    node::SharedShape shape;
    shape.ring_bytes = ring_bytes;
    std::shared_ptr<node::SharedSegment> out =
        node::SharedSegment::create(members, shape, node::SharedSegment::Backing::memfd, name, why);
    EXPECT_TRUE(out) << why;
    return out;
}

inline std::unique_ptr<node::SharedNode> join(std::shared_ptr<node::SharedSegment> segment, int me) {
    std::string why;
    auto out = node::SharedNode::join(std::move(segment), me, why);
    EXPECT_TRUE(out) << why;
    return out;
}

/// All members in this process.
inline std::vector<std::unique_ptr<node::SharedNode>> make_members(int members, std::int64_t ring_bytes = 1 << 16) {
    const auto segment = make_segment(members, ring_bytes);
    std::vector<std::unique_ptr<node::SharedNode>> out;
    for (int i = 0; i < members; ++i) out.push_back(join(segment, i));
    for (auto& node : out) node->all_joined();
    return out;
}

inline void begin(node::SharedNode& node, node::SpinWait& spin_wait, std::int64_t ring_bytes = 0) {
    spin_wait.reset();
    while (!node.begin(ring_bytes)) spin_wait.pause();
}

inline const node::Exposure& wait_for(node::SharedNode& node, node::SpinWait& spin_wait, int member, unsigned tag) {
    spin_wait.reset();
    const node::Exposure* exposure = nullptr;
    while (!(exposure = node.find_exposure(member, tag))) spin_wait.pause();
    return *exposure;
}

/// Bytes that tell where they come from.
inline std::vector<char> pattern(std::int64_t seed, std::int64_t bytes) {
    std::vector<char> out(static_cast<std::size_t>(bytes));
    auto word = static_cast<std::uint32_t>(seed * 2654435761 + 12345);
    for (char& c : out) {
        word = word * 1664525 + 1013904223;
        c = static_cast<char>(word >> 24);
    }
    return out;
}

inline void expose_in_ring(node::SharedNode& node, unsigned tag, const std::vector<char>& data) {
    char* slot = node.ring_slot(static_cast<std::int64_t>(data.size()));
    ASSERT_TRUE(slot);
    std::copy(data.begin(), data.end(), slot);
    node.expose_slot(tag, slot, static_cast<std::int64_t>(data.size()));
}

/// In one process the address of a member's data is good for all: a mapping that changes nothing.
struct SameAddressAttacher : node::SharedAttacher {
    char* attach(int, std::uint64_t address, std::int64_t) override { return reinterpret_cast<char*>(address); }
    void detach(char*, std::int64_t) override {}
};

}  // namespace palmette::test
