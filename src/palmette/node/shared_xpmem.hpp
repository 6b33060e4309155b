// XPMEM, where its kernel module and its library are available: maps other processes' memory into this one.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "palmette/node/shared_attach_cache.hpp"

namespace palmette::node {

/// One line for `palmette doctor`: that XPMEM is available, or what is missing.
std::string xpmem_status();

/// This process's memory as a segment that the same user's processes may map; -1 without XPMEM. Made once per process.
std::int64_t xpmem_segment();

/// Maps memory of the members whose segments are given. Null without XPMEM or where a member has no segment.
std::unique_ptr<SharedAttacher> xpmem_attacher(const std::vector<std::int64_t>& segments);

}  // namespace palmette::node
