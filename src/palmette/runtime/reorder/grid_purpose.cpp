#include "palmette/runtime/reorder/grid_purpose.hpp"

#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <mutex>
#include <string>
#include <string_view>

#include "palmette/base/text.hpp"
#include "palmette/runtime/state/process.hpp"

namespace palmette::runtime {
namespace {

using topology::GridPurpose;

constexpr const char* key = "palmette_grid";

std::mutex mutex;
int keyval = MPI_KEYVAL_INVALID;
std::uint64_t made_after = 0;  // Process::ends() when `keyval` was made: the MPI may have ended since

/// As MPI_COMM_DUP_FN, which MPICH implements by a function that it doesn't export under that name.
int copy_to_duplicate(MPI_Comm, int, void*, void* value, void* copy, int* flag) {
    *static_cast<void**>(copy) = value;
    *flag = 1;
    return MPI_SUCCESS;
}

/// The attribute under which a communicator keeps its purpose, or MPI_KEYVAL_INVALID where none has one.
int known_keyval() {
    const std::lock_guard lock(mutex);
    return made_after == Process::instance().ends() ? keyval : MPI_KEYVAL_INVALID;
}

int made_keyval() {
    const std::lock_guard lock(mutex);
    const std::uint64_t ends = Process::instance().ends();
    if (keyval == MPI_KEYVAL_INVALID || made_after != ends) {
        if (PMPI_Comm_create_keyval(copy_to_duplicate, MPI_COMM_NULL_DELETE_FN, &keyval, nullptr) != MPI_SUCCESS)
            keyval = MPI_KEYVAL_INVALID;
        made_after = ends;
    }
    return keyval;
}

}  // namespace

std::optional<GridPurpose> grid_purpose_named(std::string_view word) {
    if (word == "halo") return GridPurpose::halo;
    if (word == "exchange") return GridPurpose::exchange;
    return std::nullopt;
}

void note_grid_purpose(MPI_Comm comm, MPI_Info info, bool replaces) {
    if (comm == MPI_COMM_NULL) return;
    std::array<char, 32> text{};
    int found = 0;
    if (info == MPI_INFO_NULL ||
        PMPI_Info_get(info, key, static_cast<int>(text.size()) - 1, text.data(), &found) != MPI_SUCCESS || !found) {
        void* kept = nullptr;
        const int known = replaces ? known_keyval() : MPI_KEYVAL_INVALID;
        if (known != MPI_KEYVAL_INVALID &&
            PMPI_Comm_get_attr(comm, known, static_cast<void*>(&kept), &found) == MPI_SUCCESS && found)
            PMPI_Comm_delete_attr(comm, known);
        return;
    }
    const std::string_view value(text.data());
    const auto named = grid_purpose_named(value);
    if (!named) {
        const std::string note = base::cat("info key ", key, "='", value, "' is none of halo and exchange; ignored");
        Process::instance().report().note(note);
        static std::atomic<bool> told{false};
        if (Process::instance().world_rank() == 0 && !told.exchange(true))
            std::fprintf(stderr, "palmette: %s\n", note.c_str());
        return;
    }
    const auto purpose = static_cast<std::intptr_t>(*named);
    if (const int made = made_keyval(); made != MPI_KEYVAL_INVALID)
        PMPI_Comm_set_attr(comm, made, reinterpret_cast<void*>(purpose));
}

GridPurpose grid_purpose_of(MPI_Comm comm) {
    void* value = nullptr;
    int found = 0;
    if (const int known = known_keyval(); known != MPI_KEYVAL_INVALID)
        PMPI_Comm_get_attr(comm, known, static_cast<void*>(&value), &found);
    return found ? static_cast<GridPurpose>(reinterpret_cast<std::intptr_t>(value))
                 : Process::instance().settings().grids;
}

GridPurpose agreed_grid_purpose(MPI_Comm comm) {
    const int mine = static_cast<int>(grid_purpose_of(comm));
    const std::array<int, 2> ends{mine, -mine};
    std::array<int, 2> least{};
    if (PMPI_Allreduce(ends.data(), least.data(), 2, MPI_INT, MPI_MIN, comm) != MPI_SUCCESS)
        return Process::instance().settings().grids;
    if (least[0] == -least[1]) return static_cast<GridPurpose>(mine);
    Process::instance().report().note(
        base::cat("info key ", key, " differs between the ranks of a communicator; PALMETTE_REORDER counts there"));
    return Process::instance().settings().grids;
}

}  // namespace palmette::runtime
