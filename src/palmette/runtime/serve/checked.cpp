#include "palmette/runtime/serve/checked.hpp"

#include "palmette/base/text.hpp"
#include "palmette/runtime/check/call_place.hpp"
#include "palmette/runtime/check/check.hpp"
#include "palmette/runtime/check/check_arguments.hpp"
#include "palmette/runtime/serve/background.hpp"
#include "palmette/runtime/state/process.hpp"

namespace palmette::runtime {
namespace {

/// What can't be served isn't checked either.
Communicator* checked_state(MPI_Comm comm, Process::Making making) {
    Refusal refusal = Refusal::no_state;
    Communicator* state = Process::instance().communicator(comm, refusal, making);
    if (!state || state->shadow_comm() == MPI_COMM_NULL) return nullptr;
    begin_checks(comm, state->shadow_comm());
    return state;
}

/// Rank 0 hears of what others do there, whatever it has called itself.
void begin_with_world() {
    static bool begun = false;
    if (begun || !Process::instance().world()) return;
    begun = true;
    checked_state(MPI_COMM_WORLD, Process::Making::never);
}

int raised(int code, MPI_Comm comm) {
    if (code != MPI_SUCCESS) PMPI_Comm_call_errhandler(comm, code);
    return code;
}

/// Keeps MPI's waiting functions polling until what this rank has started is compared.
class Comparing : public BackgroundOperation {
  public:
    bool progress() override { return !(outstanding_ = !progress_checks()); }
    /// With the lock of Background.
    void begin() {
        if (outstanding_) return;
        outstanding_ = true;
        Background::instance().add(*this);
    }

  private:
    bool outstanding_ = false;
};

/// "MPI_Ibcast" of "MPI_Bcast".
std::string nonblocking_name(std::string name) {
    name[4] = static_cast<char>(name[4] - 'A' + 'a');
    return base::cat("MPI_I", std::string_view(name).substr(4));
}

}  // namespace

bool checks() { return Process::instance().settings().check; }

int check_blocking(const CallArguments& arguments) {
    begin_with_world();
    Communicator* const state = checked_state(arguments.comm, Process::Making::makes);
    if (!state) return MPI_SUCCESS;
    CheckedCall call = checked_call({state->rank(), state->size()}, arguments);
    call.place = place_of_call();
    return raised(check_call(call, arguments.comm, state->shadow_comm()), arguments.comm);
}

int check_blocking(const char* function, MPI_Comm comm) {
    if (!checks() || comm == MPI_COMM_NULL) return MPI_SUCCESS;
    begin_with_world();
    const Communicator* const state = checked_state(comm, Process::Making::never);
    if (!state) return MPI_SUCCESS;
    CheckedCall call;
    call.function = function;
    call.place = place_of_call();
    return raised(check_call(call, comm, state->shadow_comm()), comm);
}

int check_started(const CallArguments& arguments, CheckedAs kind) {
    Communicator* const state = checked_state(arguments.comm, Process::Making::counts);
    if (!state) return MPI_SUCCESS;
    CheckedCall call = checked_call({state->rank(), state->size()}, arguments);
    call.function = kind == CheckedAs::persistent ? call.function + "_init" : nonblocking_name(call.function);
    call.place = place_of_call();
    const int code = check_started(call, arguments.comm, state->shadow_comm());
    // Never destroyed, as Background.
    static auto* comparing = new Comparing;
    const auto lock = Background::instance().lock();
    comparing->begin();
    return raised(code, arguments.comm);
}

void make_checkable(MPI_Comm made) {
    int inter = 0;
    if (!checks() || made == MPI_COMM_NULL || PMPI_Comm_test_inter(made, &inter) != MPI_SUCCESS || inter) return;
    checked_state(made, Process::Making::now);
}

}  // namespace palmette::runtime
