#include "palmette/compose/crossing.hpp"

#include "palmette/base/error.hpp"

namespace palmette::compose {

std::vector<std::vector<Crossing>> crossing(const Composition& composition, const topology::Job& job) {
    if (job.size() != composition.ranks())
        base::fail("the composition has ", composition.ranks(), " ranks and the job ", job.size());
    std::vector<std::vector<Crossing>> out;
    for (const topology::JobLevel& level : job.levels())
        out.emplace_back(static_cast<std::size_t>(level.groups.count()));
    std::vector<std::vector<char>> wants;
    for (const auto& level : out) wants.emplace_back(level.size());
    composition.visit([&](std::int32_t, const Primitive& primitive) {
        std::int64_t bytes = 0;
        for (std::int64_t b = primitive.blocks.first; b < primitive.blocks.end(); ++b)
            bytes += composition.lengths()[b];
        const std::int32_t root = job.position_of(primitive.root).value;
        for (std::size_t l = 0; l < out.size(); ++l) {
            const topology::Partition& groups = job.levels()[l].groups;
            wants[l].assign(wants[l].size(), 0);
            for (std::size_t i = 0; i < primitive.others.runs(); ++i)
                for (std::int64_t r = primitive.others.run(i).first; r < primitive.others.run(i).end(); ++r)
                    wants[l][static_cast<std::size_t>(
                        groups.group_of(job.position_of(Rank{static_cast<std::int32_t>(r)}).value))] = 1;
            const auto home = static_cast<std::size_t>(groups.group_of(root));
            bool any = false;
            for (std::size_t g = 0; g < wants[l].size(); ++g) {
                if (g == home || !wants[l][g]) continue;
                any = true;
                (primitive.reduces ? out[l][g].out : out[l][g].in) += bytes;
            }
            if (any) (primitive.reduces ? out[l][home].in : out[l][home].out) += bytes;
        }
    });
    return out;
}

}  // namespace palmette::compose
