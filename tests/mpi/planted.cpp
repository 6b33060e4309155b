// Programs with known troubles, for what is found in recordings of them.
//
//     planted SCENARIO[,SCENARIO...] FILE [FACTOR]      on four ranks
//
// All ranks map FILE, which must be new. FACTOR makes delays longer. Each scenario is repeated four times. What is
// planted stands above its function in planted/*.hpp, and which waits follow from that in tests/python/planted.py.
// Status 77: a scenario is unknown, or the MPI lacks what it calls.
#include <mpi.h>

#if defined(PALMETTE_ABI_SMPI)
extern "C" {
#include "recorded_names.h"  // its calls are recorded
}
#endif

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <string_view>
#include <utility>

#include "planted/patterns.hpp"

namespace {

using Scenario = void (*)(int round);

constexpr std::pair<std::string_view, Scenario> scenarios[] = {
    {"late-rank", planted::late_rank},
    {"staircase", planted::staircase},
    {"turns", planted::turns},
    {"once", planted::once},
    {"alternating", planted::alternating},
    {"n-to-n", planted::n_to_n},
    {"late-root", planted::late_root},
    {"late-leaf", planted::late_leaf},
    {"late-scatter-root", planted::late_scatter_root},
    {"early-root", planted::early_root},
    {"early-gather-root", planted::early_gather_root},
    {"late-reduce-root", planted::late_reduce_root},
    {"late-lower-rank", planted::late_lower_rank},
    {"late-highest-rank", planted::late_highest_rank},
    {"imbalance", planted::imbalance},
    {"drift", planted::drift},
    {"two-places", planted::two_places},
    {"balanced", planted::balanced},
    {"halves", planted::halves},
    {"root-of-a-half", planted::root_of_a_half},
    {"sender-of-a-half", planted::sender_of_a_half},
    {"without-rank-0", planted::without_rank_0},
    {"made-anew", planted::made_anew},
    {"duplicate", planted::duplicate},
    {"same-tag", planted::same_tag},
    {"late-sender", planted::late_sender},
    {"late-sender-of-much", planted::late_sender_of_much},
    {"kinds-of-sends", planted::kinds_of_sends},
    {"senders-in-order", planted::senders_in_order},
    {"first-sender-last", planted::first_sender_last},
    {"any-sender", planted::any_sender},
    {"tags-out-of-order", planted::tags_out_of_order},
    {"late-receiver", planted::late_receiver},
    {"late-receiver-of-much", planted::late_receiver_of_much},
    {"eager", planted::eager},
    {"late-receiver-of-two", planted::late_receiver_of_two},
    {"open-chain", planted::open_chain},
    {"ring", planted::ring},
    {"ring-of-much", planted::ring_of_much},
    {"replaced-in-ring", planted::replaced_in_ring},
    {"probe", planted::probe},
    {"nonblocking", planted::nonblocking},
    {"late-isend", planted::late_isend},
    {"overlap", planted::overlap},
    {"full-overlap", planted::full_overlap},
    {"waitall", planted::waitall},
    {"waitany", planted::waitany},
    {"waitsome", planted::waitsome},
    {"waits", planted::waits},
    {"any-irecv", planted::any_irecv},
    {"two-of-one-sender", planted::two_of_one_sender},
    {"sent-besides", planted::sent_besides},
    {"asked-before", planted::asked_before},
    {"freed-request", planted::freed_request},
    {"tests", planted::tests},
    {"late-receiver-of-issend", planted::late_receiver_of_issend},
    {"late-receiver-of-isend", planted::late_receiver_of_isend},
    {"late-ibarrier", planted::late_ibarrier},
    {"late-nonblocking", planted::late_nonblocking},
    {"late-ibcast", planted::late_ibcast},
    {"late-ireduce", planted::late_ireduce},
    {"late-wait", planted::late_wait},
    {"two-outstanding", planted::two_outstanding},
    {"barrier-between", planted::barrier_between},
    {"crossed", planted::crossed},
    {"persistent", planted::persistent},
    {"persistent-from-any", planted::persistent_from_any},
    {"persistent-ring", planted::persistent_ring},
#if MPI_VERSION >= 4
    {"isendrecv", planted::isendrecv},
    {"persistent-barrier", planted::persistent_barrier},
#endif
    {"halo", planted::halo},
    {"pipeline", planted::pipeline},
    {"master", planted::master},
    {"token", planted::token},
    {"red-black", planted::red_black},
    {"writer", planted::writer},
};

bool run(std::string_view name) {
    const auto* const found =
        std::find_if(std::begin(scenarios), std::end(scenarios), [&](const auto& one) { return one.first == name; });
    if (found == std::end(scenarios)) return false;
    for (int round = 0; round < planted::rounds; ++round) found->second(round);
    return true;
}

}  // namespace

[[gnu::visibility("default")]] int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    int ranks = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &planted::rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc < 3 || ranks != planted::ranks || !planted::open_timetable(argv[2])) MPI_Abort(MPI_COMM_WORLD, 2);
    if (argc > 3) planted::factor = std::atof(argv[3]);
    std::string_view names = argv[1];
    while (!names.empty()) {
        const std::size_t end = std::min(names.find(','), names.size());
        if (!run(names.substr(0, end))) MPI_Abort(MPI_COMM_WORLD, 77);
        names.remove_prefix(std::min(end + 1, names.size()));
    }
    MPI_Finalize();
    return 0;
}
