// Key window=W of trees and rounds: a rank has so many of its messages under way at once.
#pragma once

#include <cstddef>
#include <vector>

#include "palmette/collectives/spec.hpp"
#include "palmette/plan/program.hpp"

namespace palmette::collectives {

/// What a next step waits for where `window` of them may be under way: the one so many before it, if there is one;
/// nothing where `window` is 0.
inline std::vector<plan::StepId> waits_of(const std::vector<plan::StepId>& before, std::size_t window) {
    if (window == 0 || before.size() < window) return {};
    return {before[before.size() - window]};
}

/// A message leaves when the W-th before it has arrived; without the key all leave as soon as they can. Messages of a
/// rank that are under way together share its link and arrive together, so that the one with most behind it comes no
/// sooner than the others: in turn it comes first. What the MPI takes off a sender's hands counts as arrived, so that
/// short messages aren't held back.
class SendWindow {
  public:
    /// Throws base::Error on a value that is no number of at least 1.
    explicit SendWindow(const Spec& spec)
        : width_(spec.find("window") ? static_cast<std::size_t>(spec.integer("window", 1)) : 0) {}
    /// With the step that a next message waits for besides `ready`.
    std::vector<plan::StepId> after(std::vector<plan::StepId> ready) const {
        for (const plan::StepId step : waits_of(sent_, width_)) ready.push_back(step);
        return ready;
    }
    void add(plan::StepId sent) { sent_.push_back(sent); }

  private:
    std::size_t width_;
    std::vector<plan::StepId> sent_;
};

}  // namespace palmette::collectives
