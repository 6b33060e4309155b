// Key window=W of trees and rounds: a rank has so many of its messages under way at once.
#pragma once

#include <cstddef>
#include <vector>

#include "palmette/collectives/spec.hpp"
#include "palmette/plan/program.hpp"

namespace palmette::collectives {

/// A message leaves when the W-th before it has arrived; without the key all leave as soon as they can. Messages of a rank that are under way together
/// share its link and arrive together, so that the one with most behind it comes no sooner than the others: in turn it comes first. What the MPI
/// takes off a sender's hands counts as arrived, so that short messages aren't held back.
class SendWindow {
  public:
    /// Throws base::Error on a value that is no number of at least 1.
    explicit SendWindow(const Spec& spec)
        : width_(spec.find("window") ? static_cast<std::size_t>(spec.integer("window", 1)) : 0) {}
    /// With the step that a next message waits for besides `ready`.
    std::vector<plan::StepId> after(std::vector<plan::StepId> ready) const {
        if (width_ > 0 && sent_.size() >= width_) ready.push_back(sent_[sent_.size() - width_]);
        return ready;
    }
    void add(plan::StepId sent) { sent_.push_back(sent); }

  private:
    std::size_t width_;
    std::vector<plan::StepId> sent_;
};

}  // namespace palmette::collectives
