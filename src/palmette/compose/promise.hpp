// Contract of a composition for the verifier, and the blocks that its ranks hold.
#pragma once

#include <map>

#include "palmette/compose/composition.hpp"
#include "palmette/plan/contract.hpp"

namespace palmette::compose {

/// The blocks that each rank has in each of the caller's buffers: those that primitives access, and those declared with
/// Composition::hold.
class Holdings {
  public:
    /// Computes what all ranks hold, or what rank `only` holds. Traverses all primitives once.
    explicit Holdings(const Composition& composition, std::int32_t only = -1);
    const plan::Blocks& of(Rank rank, Buffer buffer) const;

  private:
    std::map<std::pair<std::int32_t, Buffer>, plan::Blocks> blocks_;
};

/// Evaluates the primitives phase by phase: the final state of every rank is what a factored plan must produce.
class Promise : public plan::Contract {
  public:
    /// The composition is copied. `stripes`: blocks of the plan for each of its blocks.
    Promise(const Composition& composition, std::int32_t stripes);

    std::int64_t blocks() const override { return composition_.blocks() * stripes_; }
    std::int64_t bytes_of(std::int64_t block) const override;
    std::size_t buffers() const override { return composition_.buffers().size(); }
    std::string buffer_name(std::size_t index) const override { return composition_.buffers()[index]; }
    plan::Blocks holds(Rank rank, Buffer buffer) const override;
    std::vector<bool> commutes() const override;
    void evaluate(plan::Terms& terms,
                  const std::function<void(Rank, Buffer, std::int64_t, plan::Contents)>& visit) const override;

    const Composition& composition() const { return composition_; }
    std::int32_t stripes() const { return stripes_; }

  private:
    Composition composition_;
    std::int32_t stripes_;
    Holdings holdings_;
};

}  // namespace palmette::compose
