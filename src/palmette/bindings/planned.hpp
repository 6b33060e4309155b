// A plan together with the job that it is made for: what Python's Plan holds.
#pragma once

#include <cstdint>
#include <string_view>
#include <variant>
#include <vector>

#include "palmette/plan/plan.hpp"

namespace palmette::bindings {

struct Planned {
    topology::Job job;
    plan::Plan plan;
};

/// Checks root and names. Throws base::Error.
plan::Request make_request(const topology::Job& job, std::string_view collective, std::int32_t root,
                           std::int64_t block_bytes);

/// Lengths of blocks as Python gives them, one number or a list. Throws base::Error on a negative one.
std::vector<std::int64_t> lengths_of(const std::variant<std::int64_t, std::vector<std::int64_t>>& given);

}  // namespace palmette::bindings
