// Wrappers of MPI_Init, MPI_Finalize, MPI_Abort and sessions: the runtime's lifetime.
#include <mpi.h>

#include "palmette/device/loaded.hpp"
#include "palmette/device/nccl.hpp"
#include "palmette/device/resources.hpp"
#include "palmette/interpose/guard.hpp"
#include "palmette/interpose/settings.hpp"
#include "palmette/interpose/wrappers.hpp"
#include "palmette/runtime/data/mpi_devices.hpp"
#include "palmette/runtime/data/runs.hpp"
#include "palmette/runtime/network/kept_members.hpp"
#include "palmette/runtime/network/switch_groups.hpp"
#include "palmette/runtime/report/recording.hpp"
#include "palmette/runtime/serve/background.hpp"
#include "palmette/runtime/serve/checked.hpp"
#include "palmette/runtime/serve/postponed.hpp"
#include "palmette/runtime/state/process.hpp"

namespace palmette::interpose {

constinit thread_local bool inside = false;
constinit thread_local base::Standing inside_from;
constinit std::atomic<bool> is_up{false};
constinit std::atomic<bool> init_was_ours{false};
constinit std::atomic<bool> api_was_used{false};

bool was_left(const void* return_address, const void* frame) {
    return base::StackWalk::own().relation(inside_from, reinterpret_cast<std::uintptr_t>(return_address),
                                           reinterpret_cast<std::uintptr_t>(frame)) == base::StackWalk::Relation::left;
}

namespace {

void watch_for_drivers(const runtime::Settings& settings) {
#if defined(PALMETTE_ABI_SMPI)
    (void)settings;
    device::ignore_drivers();
#else
    runtime::set_mpi_takes_devices(settings.device_mpi);
    if (!settings.device_check)
        device::ignore_drivers();
    else
        device::learned_count();
#endif
}

}  // namespace

bool start_late() {
    int initialized = 0;
    int finalized = 0;
    PMPI_Initialized(&initialized);
    PMPI_Finalized(&finalized);
    // After MPI_Init this is a library that was loaded too late; its ranks may not all have it, so nothing is served.
    if (initialized || finalized) return false;
#if MPI_VERSION >= 4
    const runtime::Settings settings = settings_from_environment();
    watch_for_drivers(settings);
    runtime::Process::instance().start_without_world(settings);
    is_up.store(true, std::memory_order_release);
    return true;
#else
    return false;
#endif
}

namespace {

#ifdef MPI_SESSION_NULL
/// Open sessions. With the last of them the MPI ends, unless MPI_Init was called.
constinit std::atomic<int> sessions{0};

bool has_world() {
    int initialized = 0;
    int finalized = 0;
    PMPI_Initialized(&initialized);
    PMPI_Finalized(&finalized);
    return initialized && !finalized;
}
#endif

/// Before the MPI ends; a program's contexts may end after it.
void release_devices() {
    if (!device::driver_loaded()) return;
    runtime::forget_runs_of_types();
    device::Nccl::abort_all();
    device::Resources::instance().release();
}

void start(const runtime::Presence& presence) {
    const Guard guard;
    if (!guard.entered()) return;
    const runtime::Settings settings = settings_from_environment();
    watch_for_drivers(settings);
    runtime::Process::instance().start(settings, presence);
    is_up.store(true, std::memory_order_release);
}

}  // namespace

int on_MPI_Init(int* argc, char*** argv) {
    init_was_ours = true;
    const runtime::Presence presence;
    const int code = next::MPI_Init(argc, argv);
    if (code == MPI_SUCCESS) start(presence);
    return code;
}

int on_MPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
    init_was_ours = true;
    const runtime::Presence presence;
    const int code = next::MPI_Init_thread(argc, argv, required, provided);
    if (code == MPI_SUCCESS) start(presence);
    return code;
}

int on_MPI_Finalize() {
    {
        const Guard guard;
        if (guard.entered()) {
            runtime::check_blocking("MPI_Finalize", MPI_COMM_WORLD);
            // Operations that the program never waited for complete here: other ranks may need them.
            runtime::settle_postponed(nullptr);
            if (runtime::has_outstanding()) runtime::Background::instance().finish(MPI_COMM_NULL);
            runtime::RecordedCalls::synchronize_again();
            runtime::KeptMembers::end_all();
            runtime::SwitchGroups::end_all();
            runtime::Process::instance().finish();
            release_devices();
        }
    }
    return next::MPI_Finalize();
}

int on_MPI_Abort(MPI_Comm comm, int code) {
    {
        const Guard guard;
        if (guard.entered()) runtime::Process::instance().abort();
    }
    return next::MPI_Abort(comm, code);
}

#ifdef MPI_SESSION_NULL

int on_MPI_Session_init(MPI_Info info, MPI_Errhandler errhandler, MPI_Session* session) {
    const int code = next::MPI_Session_init(info, errhandler, session);
    if (code == MPI_SUCCESS) sessions.fetch_add(1, std::memory_order_relaxed);
    return code;
}

int on_MPI_Session_finalize(MPI_Session* session) {
    if (sessions.fetch_sub(1, std::memory_order_relaxed) == 1 && !has_world()) {
        const Guard guard;
        if (guard.entered()) {
            if (runtime::has_outstanding()) runtime::Background::instance().finish(MPI_COMM_NULL);
            runtime::KeptMembers::end_all();
            runtime::SwitchGroups::end_all();
            runtime::Process::instance().end_without_world();
            release_devices();
            is_up.store(false, std::memory_order_release);
        }
    }
    const int code = next::MPI_Session_finalize(session);
    if (code != MPI_SUCCESS) sessions.fetch_add(1, std::memory_order_relaxed);
    return code;
}

#endif

}  // namespace palmette::interpose
