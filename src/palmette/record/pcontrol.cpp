// MPI_Pcontrol: the program switches recording off and on.
#include "palmette/mpi/offers.hpp"
#include "palmette/record/regions.hpp"
#include "palmette/record/wrapping.hpp"

namespace palmette::record {
namespace {

/// Level 0 records nothing from here on, any other one everything, as the standard suggests; 2, where other tools write
/// out what they have, is a border between phases of the program.
void control(int level) {
    Recorder* const current = recorder.load(std::memory_order_acquire);
    if (!current) return;
    active.store(level == 0 ? nullptr : current, std::memory_order_release);
    regions_are_off.store(level == 0, std::memory_order_release);
    if (level == 0) current->forget_requests();
    if (level == 2) current->update_clock(Moment::border);
}

}  // namespace
}  // namespace palmette::record

using palmette::interpose::Word;

// Its further arguments mean something to other tools at most: as many are passed on as registers hold.
extern "C" __attribute__((visibility("default"))) int entry_MPI_Pcontrol(Word level, Word a, Word b, Word c, Word d,
                                                                         Word e) __asm__("MPI_Pcontrol");
int entry_MPI_Pcontrol(Word level, Word a, Word b, Word c, Word d, Word e) {
    static constinit palmette::interpose::PassOn pass_on{"MPI_Pcontrol"};
    if (palmette::mpi::is_ours(__builtin_return_address(0))) palmette::record::control(static_cast<int>(level));
    return pass_on(level, a, b, c, d, e);
}

extern "C" __attribute__((visibility("default"))) void entry_mpi_pcontrol_(Word level) __asm__("mpi_pcontrol_");
void entry_mpi_pcontrol_(Word level) {
    static constinit palmette::interpose::PassOn pass_on{"mpi_pcontrol_"};
    if (palmette::mpi::is_ours(__builtin_return_address(0)))
        palmette::record::control(*reinterpret_cast<const int*>(level));
    pass_on(level);
}

PALMETTE_OFFER(MPI_Pcontrol)
PALMETTE_OFFER(mpi_pcontrol_)
