// A plan together with its job: the state of Python's Plan.
#pragma once

#include <cstdint>
#include <string_view>
#include <variant>
#include <vector>

#include "palmette/plan/plan.hpp"

namespace palmette::bindings {

struct PlanWithJob {
    topology::Job job;
    plan::Plan plan;
};

/// Optional parameters of a request, with their defaults.
struct Details {
    bool ordered = false;
    bool shared_memory = false;
    std::int64_t element_bytes = 1;
};

/// Checks root, names and sizes. Throws base::Error.
plan::Request make_request(const topology::Job& job, std::string_view collective, std::int32_t root,
                           std::int64_t block_bytes, const Details& details = {});

/// Lengths of blocks as Python gives them, one number or a list. Throws base::Error on a negative one.
std::vector<std::int64_t> lengths_of(const std::variant<std::int64_t, std::vector<std::int64_t>>& given);

}  // namespace palmette::bindings
