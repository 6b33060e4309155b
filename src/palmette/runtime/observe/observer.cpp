#include "palmette/runtime/observe/observer.hpp"

namespace palmette::runtime {

void Observers::add(std::unique_ptr<Observer> observer) {
    Observer* const only = all_.empty() ? observer.get() : this;
    if (observer->wants_steps()) of_steps_ = of_steps_ ? this : static_cast<execute::StepObserver*>(observer.get());
    of_calls_ = only;
    all_.push_back(std::move(observer));
}

void Observers::plan_made(Communicator& state, CachedPlan& plan) {
    for (const auto& one : all_) one->plan_made(state, plan);
}
void Observers::call_begins(const CallEvent& call) {
    for (const auto& one : all_) one->call_begins(call);
}
void Observers::call_ended(const CallEvent& call) {
    for (const auto& one : all_) one->call_ended(call);
}
void Observers::call_left(const CallEvent& call) {
    for (const auto& one : all_) one->call_left(call);
}
void Observers::compared(const Communicator& state, const CachedPlan& plan) {
    for (const auto& one : all_) one->compared(state, plan);
}
void Observers::step_started(const execute::BoundProgram& program, std::uint32_t step) {
    for (const auto& one : all_)
        if (one->wants_steps()) one->step_started(program, step);
}
void Observers::step_completed(const execute::BoundProgram& program, std::uint32_t step) {
    for (const auto& one : all_)
        if (one->wants_steps()) one->step_completed(program, step);
}

}  // namespace palmette::runtime
