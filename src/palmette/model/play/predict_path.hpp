// What the longest chain of dependences of a play is made of.
#pragma once

#include "palmette/model/play/predict.hpp"
#include "palmette/model/play/predict_play.hpp"

namespace palmette::model {

/// Walks from the step that ended last to what it waited for, and so on to the beginning, and adds up what the time
/// went into.
Prediction longest_chain(const topology::Job& job, const Costs& costs, const PlayedSteps& plan, const Player& player);

}  // namespace palmette::model
