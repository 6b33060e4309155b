// Key window=W of trees and rounds: upper bound of a rank's outstanding sends.
#pragma once

#include <cstddef>
#include <vector>

#include "palmette/collectives/spec.hpp"
#include "palmette/plan/program.hpp"

namespace palmette::collectives {

/// Dependency of the next step where `window` steps may be outstanding: the step so many before it, if there is one;
/// nothing where `window` is 0.
inline std::vector<plan::StepId> waits_of(const std::vector<plan::StepId>& before, std::size_t window) {
    if (window == 0 || before.size() < window) return {};
    return {before[before.size() - window]};
}

/// A message is sent when the W-th before it has completed; without the key all are sent as soon as they can. A rank's
/// concurrent messages share its link and complete together, so that the one on the critical path arrives no sooner
/// than the others: in sequence it arrives first. Eager sends complete locally, so that short messages aren't delayed.
class SendWindow {
  public:
    /// Throws base::Error on a value that is no number of at least 1.
    explicit SendWindow(const Spec& spec)
        : width_(spec.find("window") ? static_cast<std::size_t>(spec.integer("window", 1)) : 0) {}
    /// `ready` with the step that the next message additionally waits for.
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
