#include "palmette/runtime/transport/simulated_services.hpp"

#if defined(PALMETTE_ABI_SMPI)

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "palmette/plan/space.hpp"

namespace palmette::runtime {
namespace {

void limit_service_messages(plan::Program& program, const plan::Request& request, const topology::Job& job) {
    const topology::JobLevel& nodes = job.nodes();
    const double rate = nodes.slowest_edge_bytes_per_s * nodes.groups.count() / job.size();  // a rank's share
    double latency_s = 0;
    for (const topology::JobLevel& level : job.levels()) latency_s = std::max(latency_s, level.costs.latency_s);
    const std::vector<std::int64_t> vector{request.block_bytes};
    const plan::BlockLengths lengths(request, job, program.cut, vector);
    std::map<std::int32_t, std::vector<plan::StepId>> sends;  // by peer
    for (plan::StepId s = 0; s < program.steps.size(); ++s) {
        plan::Step& step = program.steps[s];
        if (step.kind != plan::StepKind::send || (program.service < 0 && step.peer.value < job.size())) continue;
        const auto bytes = static_cast<double>(lengths.of(program.sources_of(step), step.slice));
        // One, and as many as the link carries in a latency, unless that loses less than one more of them under way.
        const double in_latency = rate > 0 ? latency_s * rate / std::max(bytes, 1.0) : 1000;
        const auto under_way = static_cast<std::size_t>(1 + std::ceil(std::clamp(in_latency - 0.03, 0.0, 1000.0)));
        std::vector<plan::StepId>& earlier = sends[step.peer.value];
        if (earlier.size() >= under_way) {
            const auto own = program.waits_of(step);
            std::vector<plan::StepId> waits(own.begin(), own.end());
            waits.push_back(earlier[earlier.size() - under_way]);
            step.first_wait = static_cast<std::uint32_t>(program.waits.size());
            step.wait_count = static_cast<std::uint32_t>(waits.size());
            program.waits.insert(program.waits.end(), waits.begin(), waits.end());
        }
        earlier.push_back(s);
    }
}

}  // namespace

bool is_with_service(MPI_Comm comm, int peer) {
    int rank = 0;
    int size = 0;
    PMPI_Comm_rank(comm, &rank);
    PMPI_Comm_size(comm, &size);
    return std::max(rank, peer) >= size - simulated_services;
}

plan::Program simulated_program(const collectives::Algorithm& row, const topology::Job& job, plan::Rank rank,
                                const plan::Request& request, const collectives::Spec& spec) {
    if (rank.value >= job.size() && !row.in_network) return {};
    plan::Program program = row.make(job, rank, request, spec);
    if (row.in_network) limit_service_messages(program, request, job);
    return program;
}

}  // namespace palmette::runtime

#endif
