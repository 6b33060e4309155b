// The host's memory, in which MPI's operations combine.
#pragma once

#include "palmette/execute/memory.hpp"
#include "palmette/runtime/data/operation.hpp"

namespace palmette::runtime {

class OperationMemory final : public execute::HostMemory {
  public:
    /// As a plan counts them; they must live as long as this is used.
    void use(const Operation* operations) { operations_ = operations; }

    int combine(std::uint8_t index, const char* left, const char* right, char* target, std::int64_t bytes) override {
        const Operation& operation = operations_[index];
        // Plans see elements from their first byte on.
        const std::int64_t lower = operation.layout().true_lower;
        return operation.apply(left - lower, right - lower, target - lower, bytes / operation.layout().extent);
    }
    std::int64_t element_bytes(std::uint8_t index) const override { return operations_[index].layout().extent; }
    std::optional<execute::KnownOperation> known(std::uint8_t index) const override {
        const auto known = operations_[index].known();
        if (!known || !operations_[index].layout().dense()) return std::nullopt;
        return execute::KnownOperation{known->op, known->element};
    }

  private:
    const Operation* operations_ = nullptr;
};

}  // namespace palmette::runtime
