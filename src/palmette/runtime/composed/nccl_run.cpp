#include "palmette/runtime/composed/nccl_run.hpp"

#include <algorithm>
#include <chrono>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "palmette/base/text.hpp"
#include "palmette/device/place.hpp"
#include "palmette/runtime/nccl/nccl_meeting.hpp"
#include "palmette/runtime/serve/background.hpp"
#include "palmette/runtime/state/process.hpp"
#include "palmette/runtime/transport/agreement.hpp"
#include "palmette/runtime/transport/outstanding.hpp"

namespace palmette::runtime {

using device::Progress;

namespace {

/// Runs that have been started, in that order.
std::vector<NcclRun*>& queue() {
    static auto* runs = new std::vector<NcclRun*>;
    return *runs;
}

/// Where this thread's commands of CUDA go; false: nowhere.
bool is_current(device::Place& place) {
    for (device::Driver* driver : device::all_drivers())
        if (driver->name() == std::string_view("cuda") && driver->current_place(place)) return true;
    return false;
}

/// Why this rank can't use NCCL; null: it can, at `place`.
const char* obstacle(const Settings& settings, device::Place& place) {
    if (!settings.device_check || settings.device_path == Settings::DevicePath::staging)
        return "the settings exclude it";
    if (!device::driver_loaded()) return "no driver of a GPU is in the process";
    if (!device::find_nccl(settings.nccl)) return "no libnccl.so.2 is found";
    return is_current(place) ? nullptr : "no device's context is current in the thread that makes the plan";
}

/// What NCCL does on a device to make a communicator may wait for operations that are under way there.
void finish_runs(std::chrono::seconds limit) {
    const auto latest = std::chrono::steady_clock::now() + limit;
    wait_until([&] {
        const auto lock = Background::instance().lock();
        return !NcclRun::any_under_way() || std::chrono::steady_clock::now() > latest;
    });
}

}  // namespace

std::shared_ptr<ComposedNccl> nccl_of_plan(Communicator& state, const Settings& settings) {
    const std::chrono::seconds limit(settings.nccl_timeout_s);
    device::Place place;
    const char* const problem = obstacle(settings, place);
    std::string why = problem ? problem : "";
    finish_runs(limit);
    auto& kept = state.kept().get<NcclOfCompositions>();
    std::shared_ptr<ComposedNccl> all_plans = kept.nccl.lock();
    const bool fits = all_plans && all_plans->in_service && same_queue(all_plans->handle->place(), place);
    const auto all = all_true(state.shadow_comm(), {!problem, fits});
    if (all && (*all)[0] && (*all)[1]) return all_plans;
    if (all && (*all)[0]) {
        constexpr auto order = device::Nccl::Order::apart;
        if (auto made = make_nccl({state.shadow_comm(), state.rank(), state.size()}, place, limit, order, why)) {
            all_plans = std::make_shared<ComposedNccl>(std::move(made));
            kept.nccl = all_plans;
            return all_plans;
        }
    }
    if (!why.empty())
        Process::instance().report().note(
            base::cat("NCCL isn't used by a plan of ", std::to_string(state.size()), " ranks that asks for it: ", why));
    return nullptr;
}

NcclRun::NcclRun(std::shared_ptr<ComposedNccl> nccl, Communicator& state, int first_tag)
    : nccl_(std::move(nccl)),
      state_(state),
      started_(std::make_unique<Consensus>(state.shadow_comm(), state.rank(), state.size(), first_tag)),
      outcome_(
          std::make_unique<Consensus>(state.shadow_comm(), state.rank(), state.size(), first_tag + Consensus::tags)) {}

NcclRun::~NcclRun() {
    // The MPI may write there yet.
    if (started_->broken()) static_cast<void>(started_.release());
    if (outcome_->broken()) static_cast<void>(outcome_.release());
}

bool NcclRun::any_under_way() { return !queue().empty(); }

void NcclRun::start() {
    queue().push_back(this);
    started_->begin(++state_.kept().get<NcclOfCompositions>().runs);
    outcome_->begin();
    started_->step(Progress::done);
}

NcclRun::Mode NcclRun::look() {
    // The others may be waiting for this rank's messages by the MPI.
    if (some_failed()) return Mode::without_effect;
    if (queue().front() != this) return Mode::not_yet;
    if (nccl_->in_service) return turn_.try_take() ? Mode::by_nccl : Mode::not_yet;
    return in_same_order() ? Mode::by_messages : Mode::not_yet;
}

bool NcclRun::step(Progress mine) {
    started_->step(Progress::done);
    if (started_->some_failed()) mine = Progress::failed;
    if (mine == Progress::done && !started_->over()) mine = Progress::under_way;
    outcome_->step(mine);
    return started_->over() && outcome_->over();
}

bool NcclRun::end(Mode mode) {
    std::erase(queue(), this);
    turn_.give_back();
    const bool succeeded = outcome_->all_succeeded();
    if (!succeeded && mode != Mode::by_messages) nccl_->give_up();
    return succeeded;
}

}  // namespace palmette::runtime
