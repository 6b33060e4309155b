// Critical-path analysis of a simulated plan.
#pragma once

#include "palmette/model/play/predict.hpp"
#include "palmette/model/play/predict_play.hpp"

namespace palmette::model {

/// Follows the critical path back from the step that completed last, and attributes its time to levels, stages and
/// kinds of cost.
Prediction critical_path(const topology::Job& job, const Costs& costs, const StepGraph& plan,
                         const Simulator& simulator);

}  // namespace palmette::model
