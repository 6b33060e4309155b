#include "palmette/plan/verify.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <set>

#include "palmette/base/text.hpp"
#include "palmette/plan/contributions.hpp"
#include "palmette/plan/matching.hpp"
#include "palmette/plan/space.hpp"

namespace palmette::plan {
namespace {

using base::cat;
using Complaint = std::optional<std::string>;

constexpr Contents undefined = undefined_contents;
constexpr std::int64_t most_parts = 1 << 16;

std::string at(const Program& program, StepId step) {
    return cat("rank ", program.rank, ", step ", step, " (", name_of(program.steps[step].kind), ", ",
               program.stages.empty() ? "" : program.stages[program.steps[step].stage], ")");
}

/// Which blocks of which buffer a rank has.
class Rights {
  public:
    Rights(const Plan& plan, const Job& job, const Program& program)
        : program_(program),
          send_(blocks_before(plan.request, job, program)),
          recv_(blocks_after(plan.request, job, program)) {}

    const Blocks& of(Buffer buffer) const {
        static const Blocks none;
        if (buffer == Buffer::send) return send_;
        if (buffer == Buffer::recv) return recv_;
        return layer_of(buffer) < program_.scratch.size() ? program_.scratch[layer_of(buffer)] : none;
    }
    std::size_t buffers() const { return 2 + program_.scratch.size(); }

    bool covers(const Region& region) const {
        const auto& intervals = of(region.buffer).intervals();
        const auto after =
            std::upper_bound(intervals.begin(), intervals.end(), region.blocks.first,
                             [](std::int64_t block, const Interval& interval) { return block < interval.first; });
        return after != intervals.begin() && region.blocks.end() <= (after - 1)->end();
    }

  private:
    const Program& program_;
    Blocks send_, recv_;
};

/// The memory of one rank: for every part of every block that it has, what it holds. `aliased`: input and output are the same memory.
class Memory {
  public:
    Memory(const Rights& rights, std::int64_t parts, bool aliased) : parts_(parts), aliased_(aliased) {
        areas_.resize(rights.buffers());
        for (std::size_t b = 0; b < areas_.size(); ++b)
            for (const Interval& interval : rights.of(static_cast<Buffer>(b)).intervals())
                areas_[b].push_back(
                    {interval, std::vector<Contents>(static_cast<std::size_t>(interval.count * parts), undefined)});
    }
    /// The buffer that stands for both where they are one.
    Buffer place(Buffer buffer) const { return aliased_ && buffer == Buffer::recv ? Buffer::send : buffer; }

    Contents& cell(Buffer buffer, std::int64_t block, std::int64_t part) {
        auto& areas = areas_[static_cast<std::size_t>(place(buffer))];
        auto area = std::upper_bound(areas.begin(), areas.end(), block,
                                     [](std::int64_t b, const Area& candidate) { return b < candidate.blocks.first; });
        if (area == areas.begin()) return nowhere_;
        --area;
        return area->cells[static_cast<std::size_t>((block - area->blocks.first) * parts_ + part)];
    }

  private:
    struct Area {
        Interval blocks;
        std::vector<Contents> cells;
    };
    std::vector<std::vector<Area>> areas_;
    std::int64_t parts_;
    bool aliased_;
    Contents nowhere_ = undefined;
};

/// The blocks of a list of regions, in the order in which a message carries them.
using Place = std::pair<Buffer, std::int64_t>;
using Sequence = std::vector<Place>;
Sequence sequence(Span<Region> regions) {
    Sequence out;
    for (const Region& region : regions)
        for (std::int64_t b = region.blocks.first; b < region.blocks.end(); ++b) out.emplace_back(region.buffer, b);
    return out;
}

class Verifier {
  public:
    Verifier(const Plan& plan, const Job& job) : plan_(plan), job_(job) {}

    Complaint run() {
        if (Complaint complaint = check_frame()) return complaint;
        for (const Program& program : plan_.programs) rights_.emplace_back(plan_, job_, program);
        for (std::size_t r = 0; r < plan_.programs.size(); ++r)
            if (Complaint complaint = check_program(r)) return complaint;
        if (Complaint complaint = check_memory(false)) return complaint;
        if (Complaint complaint = check_order()) return complaint;
        const Collective c = plan_.request.collective;
        const bool same_shape = is_reduction(c) && c != Collective::reduce_scatter;
        if (!same_shape) return std::nullopt;
        if (Complaint complaint = check_memory(true)) return "with MPI_IN_PLACE: " + *complaint;
        return std::nullopt;
    }

  private:
    /// What must hold before steps can be looked at.
    Complaint check_frame() {
        if (static_cast<std::int32_t>(plan_.programs.size()) != job_.size())
            return cat("the plan has ", plan_.programs.size(), " programs for a job of ", job_.size(), " ranks");
        const Rank root = plan_.request.root;
        if (is_rooted(plan_.request.collective) && (root.value < 0 || root.value >= job_.size()))
            return cat("root ", root, " is outside of a job of ", job_.size(), " ranks");
        for (std::size_t r = 0; r < plan_.programs.size(); ++r) {
            const Program& program = plan_.programs[r];
            if (program.rank.value != static_cast<std::int32_t>(r))
                return cat("program ", r, " is made for rank ", program.rank);
            if (program.order != plan_.programs.front().order)
                return cat("rank ", program.rank, " counts its blocks in another order than rank 0");
            if (program.cut != plan_.programs.front().cut || program.cut < 1)
                return cat("rank ", program.rank, " cuts the vector in ", program.cut, " blocks and rank 0 in ",
                           plan_.programs.front().cut);
            for (StepId s = 0; s < program.steps.size(); ++s) {
                const Slice slice = program.steps[s].slice;
                if (slice.of < 1 || slice.index >= slice.of)
                    return cat(at(program, s), ": part ", slice.index, " of ", slice.of, " is no part");
                parts_ = std::lcm(parts_, std::int64_t{slice.of});
                if (parts_ > most_parts)
                    return cat(at(program, s), ": blocks are cut in so many ways that they have more than ", most_parts,
                               " common parts");
            }
        }
        return std::nullopt;
    }

    Complaint check_program(std::size_t index) const {
        const Program& program = plan_.programs[index];
        const Collective collective = plan_.request.collective;
        const std::int64_t own = block_of(job_, program.order, program.rank);
        const bool has_both = (collective == Collective::gather || collective == Collective::scatter ||
                               collective == Collective::allgather) &&
                              rights_[index].covers({Buffer::send, {own, 1}}) &&
                              rights_[index].covers({Buffer::recv, {own, 1}});
        for (StepId s = 0; s < program.steps.size(); ++s) {
            const Step& step = program.steps[s];
            for (const Region& region : program.regions_of(step))
                if (!rights_[index].covers(region))
                    return cat(at(program, s), ": touches ", name_of(region.buffer), " blocks ", region.blocks.first,
                               " to ", region.blocks.end() - 1, ", which this rank doesn't have");
            for (const Region& region : written_by(program, step)) {
                if (region.buffer == Buffer::send)
                    return cat(at(program, s), ": writes the caller's input, block ", region.blocks.first);
                const bool own_result = has_both && region.buffer == Buffer::recv && region.blocks.first <= own &&
                                        own < region.blocks.end();
                if (own_result && !copies_input(program, step))
                    return cat(at(program, s), ": writes the rank's own block ", own,
                               " of the result, which is its input with MPI_IN_PLACE");
            }
            if (step.kind == StepKind::expose && (step.tag < 0 || step.tag >= most_expose_tags))
                return cat(at(program, s), ": tag ", step.tag, " is not below ", most_expose_tags);
            const bool combines = step.kind == StepKind::reduce || step.kind == StepKind::pull_reduce;
            if (combines && !is_reduction(collective))
                return cat(at(program, s), ": combines contributions, which a ", name_of(collective), " doesn't");
            const bool pulls = step.kind == StepKind::pull || step.kind == StepKind::pull_reduce;
            if (pulls && step.peer.value >= 0 && step.peer.value < job_.size() &&
                !on_same_node(program.rank, step.peer))
                return cat(at(program, s), ": rank ", step.peer, " is on another node");
        }
        return std::nullopt;
    }

    bool on_same_node(Rank a, Rank b) const {
        const topology::Partition& nodes = job_.nodes().groups;
        return nodes.group_of(job_.position_of(a).value) == nodes.group_of(job_.position_of(b).value);
    }

    static Span<Region> written_by(const Program& program, const Step& step) {
        switch (step.kind) {
            case StepKind::send:
            case StepKind::expose:
                return {nullptr, 0};
            case StepKind::recv:
            case StepKind::pull:
                return program.regions_of(step);
            case StepKind::copy:
            case StepKind::reduce:
            case StepKind::pull_reduce:
                return program.targets_of(step);
        }
        return {nullptr, 0};
    }

    static bool copies_input(const Program& program, const Step& step) {
        if (step.kind != StepKind::copy) return false;
        const Span<Region> sources = program.sources_of(step);
        return std::all_of(sources.begin(), sources.end(), [](const Region& r) { return r.buffer == Buffer::send; });
    }

    /// Contents, races and result.
    Complaint check_memory(bool aliased) {
        memory_.clear();
        for (const Rights& rights : rights_) memory_.emplace_back(rights, parts_, aliased);
        if (Complaint complaint = play()) return complaint;
        for (std::size_t r = 0; r < plan_.programs.size(); ++r)
            if (Complaint complaint = check_races(plan_.programs[r], memory_[r])) return complaint;
        return plan_.request.collective == Collective::barrier ? check_barrier() : check_result();
    }

    /// Programs without messages may be run one step after the other, where an expose doesn't wait for its readers.
    Complaint check_order() const {
        std::set<std::pair<std::int32_t, std::int32_t>> exposed;
        for (const Program& program : plan_.programs)
            for (const Step& step : program.steps)
                if (step.kind == StepKind::send || step.kind == StepKind::recv) return std::nullopt;
        std::vector<StepId> next(plan_.programs.size(), 0);
        for (bool moved = true; moved;) {
            moved = false;
            for (std::size_t r = 0; r < next.size(); ++r)
                for (const auto& steps = plan_.programs[r].steps; next[r] < steps.size(); ++next[r], moved = true) {
                    const Step& step = steps[next[r]];
                    if (has_peer(step.kind) && !exposed.contains({step.peer.value, step.tag})) break;
                    if (step.kind == StepKind::expose) exposed.insert({static_cast<std::int32_t>(r), step.tag});
                }
        }
        for (std::size_t r = 0; r < next.size(); ++r)
            if (next[r] < plan_.programs[r].steps.size())
                return cat(at(plan_.programs[r], next[r]),
                           ": can't start where ranks take their steps one after the other");
        return std::nullopt;
    }

    /// Who brings block b into the world: what is moved is told apart by its block alone.
    Contents brought(std::size_t rank, std::int64_t block) {
        return contributions_.leaf(is_reduction(plan_.request.collective) ? static_cast<std::int32_t>(rank) : 0, block);
    }

    Complaint play() {
        const bool barrier = plan_.request.collective == Collective::barrier;
        heard_.assign(plan_.programs.size(), {});
        for (std::size_t r = 0; r < plan_.programs.size(); ++r) {
            for (const Interval& interval : rights_[r].of(Buffer::send).intervals())
                for (std::int64_t b = interval.first; b < interval.end(); ++b)
                    for (std::int64_t part = 0; part < parts_; ++part)
                        memory_[r].cell(Buffer::send, b, part) = brought(r, b);
            if (barrier) heard_[r].resize(plan_.programs[r].steps.size());
        }
        Complaint wrong;
        const Complaint stuck = for_each_in_order(plan_, [&](StepRef ref, const StepRef* partner) {
            if (barrier) hear(ref, partner);
            if (wrong) return;
            const bool exposes = plan_.programs[ref.rank].steps[ref.step].kind == StepKind::expose;
            wrong = partner ? deliver(ref, *partner) : exposes ? put_out(ref) : inside(ref);
        });
        return stuck ? stuck : wrong;
    }

    /// What a step knows: the ranks that entered before it could complete.
    std::vector<bool> heard_before(StepRef ref) const {
        const Program& program = plan_.programs[ref.rank];
        std::vector<bool> out(plan_.programs.size(), false);
        out[ref.rank] = true;
        for (const StepId wait : program.waits_of(program.steps[ref.step]))
            for (std::size_t r = 0; r < out.size(); ++r)
                if (heard_[ref.rank][wait][r]) out[r] = true;
        return out;
    }
    void hear(StepRef ref, const StepRef* partner) {
        // Nothing comes back to a sender, whatever the transport.
        std::vector<bool> sent = heard_before(ref);
        if (partner) {
            std::vector<bool> taken = heard_before(*partner);
            for (std::size_t r = 0; r < sent.size(); ++r)
                if (sent[r]) taken[r] = true;
            heard_[partner->rank][partner->step] = std::move(taken);
        }
        heard_[ref.rank][ref.step] = std::move(sent);
    }
    Complaint check_barrier() const {
        for (std::size_t r = 0; r < plan_.programs.size(); ++r)
            for (std::size_t other = 0; other < plan_.programs.size(); ++other) {
                const bool heard = other == r || std::any_of(heard_[r].begin(), heard_[r].end(),
                                                             [other](const auto& by_step) { return by_step[other]; });
                if (!heard) return cat("rank ", r, ": leaves without having heard of rank ", other);
            }
        return std::nullopt;
    }

    Complaint deliver(StepRef from, StepRef to) {
        const Program& sender = plan_.programs[from.rank];
        const Program& receiver = plan_.programs[to.rank];
        const Step& send = sender.steps[from.step];
        const Step& recv = receiver.steps[to.step];
        const auto sent = sequence(sender.regions_of(send));
        const auto taken = sequence(written_by(receiver, recv));
        if (!(send.slice == recv.slice))
            return cat(at(receiver, to.step), ": takes part ", recv.slice.index + 1, '/', recv.slice.of, " where ",
                       at(sender, from.step), " sends part ", send.slice.index + 1, '/', send.slice.of);
        if (send.kind == StepKind::expose) return read(from, sent, to, taken);
        if (sent.size() != taken.size())
            return cat(at(receiver, to.step), ": takes ", taken.size(), " blocks where ", at(sender, from.step),
                       " sends ", sent.size());
        for (std::size_t i = 0; i < sent.size(); ++i)
            if (sent[i].second != taken[i].second)
                return cat(at(receiver, to.step), ": takes block ", taken[i].second, " where ", at(sender, from.step),
                           " sends block ", sent[i].second);
        return transfer(from, sent, to, taken, send.slice);
    }

    /// A pull takes some of the exposed blocks, by their number.
    Complaint read(StepRef from, const Sequence& exposed, StepRef to, const Sequence& taken) {
        const Program& reader = plan_.programs[to.rank];
        const Step& step = reader.steps[to.step];
        const std::int64_t first = exposed.empty() ? 0 : exposed.front().second;
        for (std::size_t i = 0; i < exposed.size(); ++i)
            if (exposed[i].second != first + static_cast<std::int64_t>(i))
                return cat(at(plan_.programs[from.rank], from.step), ": exposes blocks that are not consecutive");
        const Interval all{first, static_cast<std::int64_t>(exposed.size())};
        if (step.exposed.count != all.count || (all.count > 0 && step.exposed.first != all.first))
            return cat(at(reader, to.step), ": takes it that ", step.exposed.count, " blocks from ", step.exposed.first,
                       " on are exposed where ", at(plan_.programs[from.rank], from.step), " exposes ", all.count,
                       " from ", all.first, " on");
        const auto own = sequence(reader.sources_of(step));
        if (step.kind == StepKind::pull_reduce && own.size() != taken.size())
            return cat(at(reader, to.step), ": combines ", own.size(), " own blocks into ", taken.size());
        const std::vector<Contents>& put = put_out_.at({from.rank, from.step});
        const std::int64_t width = parts_ / step.slice.of;
        for (std::size_t i = 0; i < taken.size(); ++i) {
            const std::int64_t block = taken[i].second;
            if (block < all.first || block >= all.end())
                return cat(at(reader, to.step), ": takes block ", block, ", which ",
                           at(plan_.programs[from.rank], from.step), " doesn't expose");
            for (std::int64_t k = 0; k < width; ++k) {
                const std::int64_t part = width * step.slice.index + k;
                Contents value = put[static_cast<std::size_t>((block - all.first) * width + k)];
                if (step.kind == StepKind::pull_reduce) {
                    const Contents mine = memory_[to.rank].cell(own[i].first, own[i].second, part);
                    if (mine == undefined) return undefined_at(to, own[i]);
                    std::string why;
                    const auto both = step.exposed_first ? contributions_.combine(value, mine, why)
                                                         : contributions_.combine(mine, value, why);
                    if (!both) return cat(at(reader, to.step), ": ", why);
                    value = *both;
                }
                memory_[to.rank].cell(taken[i].first, block, part) = value;
            }
        }
        return std::nullopt;
    }

    /// What readers of an expose get: its contents as it starts. Where nothing is copied, the check of races shows that they stay.
    Complaint put_out(StepRef ref) {
        const Program& program = plan_.programs[ref.rank];
        const Step& step = program.steps[ref.step];
        std::vector<Contents>& put = put_out_[{ref.rank, ref.step}];
        put.clear();
        const std::int64_t width = parts_ / step.slice.of;
        for (const Place& place : sequence(program.regions_of(step)))
            for (std::int64_t k = 0; k < width; ++k) {
                put.push_back(memory_[ref.rank].cell(place.first, place.second, width * step.slice.index + k));
                if (put.back() == undefined) return undefined_at(ref, place);
            }
        return std::nullopt;
    }

    Complaint inside(StepRef ref) {
        const Program& program = plan_.programs[ref.rank];
        const Step& step = program.steps[ref.step];
        const auto read = sequence(program.sources_of(step));
        const auto written = sequence(program.targets_of(step));
        if (step.kind == StepKind::copy) {
            if (read.size() != written.size())
                return cat(at(program, ref.step), ": copies ", read.size(), " blocks to ", written.size());
            return transfer(ref, read, ref, written, step.slice);
        }
        if (read.size() != 2 * written.size())
            return cat(at(program, ref.step), ": combines ", read.size(), " blocks, two by two, to ", written.size());
        const auto half = read.begin() + static_cast<std::ptrdiff_t>(written.size());
        return combine(ref, {read.begin(), half}, ref, {half, read.end()}, ref, written, step.slice);
    }

    Complaint undefined_at(StepRef ref, const Place& place) const {
        return cat(at(plan_.programs[ref.rank], ref.step), ": reads ", name_of(place.first), " block ", place.second,
                   " before anything is there");
    }

    Complaint transfer(StepRef from, const Sequence& read, StepRef to, const Sequence& written, Slice slice) {
        const std::int64_t begin = parts_ / slice.of * slice.index;
        const std::int64_t end = begin + parts_ / slice.of;
        for (std::size_t i = 0; i < read.size(); ++i)
            for (std::int64_t part = begin; part < end; ++part) {
                const Contents value = memory_[from.rank].cell(read[i].first, read[i].second, part);
                if (value == undefined) return undefined_at(from, read[i]);
                memory_[to.rank].cell(written[i].first, written[i].second, part) = value;
            }
        return std::nullopt;
    }

    Complaint combine(StepRef left_of, const Sequence& left, StepRef right_of, const Sequence& right, StepRef to,
                      const Sequence& written, Slice slice) {
        const std::int64_t begin = parts_ / slice.of * slice.index;
        const std::int64_t end = begin + parts_ / slice.of;
        for (std::size_t i = 0; i < written.size(); ++i)
            for (std::int64_t part = begin; part < end; ++part) {
                const Contents a = memory_[left_of.rank].cell(left[i].first, left[i].second, part);
                const Contents b = memory_[right_of.rank].cell(right[i].first, right[i].second, part);
                if (a == undefined) return undefined_at(left_of, left[i]);
                if (b == undefined) return undefined_at(right_of, right[i]);
                std::string why;
                const auto value = contributions_.combine(a, b, why);
                if (!value) return cat(at(plan_.programs[to.rank], to.step), ": ", why);
                memory_[to.rank].cell(written[i].first, written[i].second, part) = *value;
            }
        return std::nullopt;
    }

    struct Access {
        StepId step;
        bool writes;
    };

    Complaint check_races(const Program& program, const Memory& memory) const {
        const std::size_t n = program.steps.size();
        const std::size_t words = (n + 63) / 64;
        // before[s]: the steps that are complete when s starts.
        std::vector<std::uint64_t> before(n * words, 0);
        for (StepId s = 0; s < n; ++s)
            for (const StepId wait : program.waits_of(program.steps[s])) {
                for (std::size_t w = 0; w < words; ++w) before[s * words + w] |= before[wait * words + w];
                before[s * words + wait / 64] |= std::uint64_t{1} << wait % 64;
            }
        const auto ordered = [&](StepId earlier, StepId later) {
            return earlier == later || (before[later * words + earlier / 64] >> earlier % 64 & 1) != 0;
        };
        std::map<std::tuple<Buffer, std::int64_t, std::int64_t>, std::vector<Access>> accesses;
        for (StepId s = 0; s < n; ++s) {
            const Step& step = program.steps[s];
            const std::int64_t begin = parts_ / step.slice.of * step.slice.index;
            const std::int64_t end = begin + parts_ / step.slice.of;
            const auto written = written_by(program, step);
            const auto reads = static_cast<std::uint32_t>(step.region_count - written.size());
            std::uint32_t i = 0;
            for (const Region& region : program.regions_of(step)) {
                const bool writes = i++ >= reads;
                for (std::int64_t b = region.blocks.first; b < region.blocks.end(); ++b)
                    for (std::int64_t part = begin; part < end; ++part) {
                        auto& list = accesses[{memory.place(region.buffer), b, part}];
                        for (const Access& access : list)
                            if ((writes || access.writes) && !ordered(access.step, s))
                                return cat(at(program, s), " and step ", access.step, " touch ", name_of(region.buffer),
                                           " block ", b, " and neither waits for the other");
                        list.push_back({s, writes});
                    }
            }
        }
        return std::nullopt;
    }

    /// Which ranks a block of the result of `rank` must hold: first..first+count-1.
    Interval expected(std::size_t rank) const {
        switch (plan_.request.collective) {
            case Collective::scan:
                return {0, static_cast<std::int64_t>(rank) + 1};
            case Collective::exscan:
                return {0, static_cast<std::int64_t>(rank)};
            default:
                return {0, job_.size()};
        }
    }

    Complaint check_result() {
        for (std::size_t r = 0; r < plan_.programs.size(); ++r)
            for (const Interval& interval : rights_[r].of(Buffer::recv).intervals())
                for (std::int64_t b = interval.first; b < interval.end(); ++b)
                    for (std::int64_t part = 0; part < parts_; ++part)
                        if (Complaint complaint = check_cell(r, b, part)) return complaint;
        return std::nullopt;
    }

    Complaint check_cell(std::size_t r, std::int64_t b, std::int64_t part) {
        const Contents value = memory_[r].cell(Buffer::recv, b, part);
        if (value == undefined) return cat("rank ", r, ": block ", b, " of the result is never written");
        if (contributions_.block_of(value) != b)
            return cat("rank ", r, ": block ", b, " of the result holds block ", contributions_.block_of(value));
        if (!is_reduction(plan_.request.collective)) return std::nullopt;
        const Interval want = expected(r);
        for (std::int64_t other = want.first; other < want.end(); ++other)
            if (!contributions_.holds(value, static_cast<std::int32_t>(other)))
                return cat("rank ", r, ": block ", b, " of the result lacks the contribution of rank ", other);
        if (contributions_.count(value) != want.count)
            return cat("rank ", r, ": block ", b, " of the result holds ", contributions_.text(value),
                       ", which is too much");
        if (plan_.request.ordered && contributions_.order_of(value).size() != 1)
            return cat(
                "rank ", r, ": block ", b,
                " of the result is combined in another order than that of the ranks: ", contributions_.text(value));
        if (plan_.request.collective == Collective::allreduce && value != memory_[0].cell(Buffer::recv, b, part))
            return cat("rank ", r, ": block ", b, " of the result is put together in another way than on rank 0");
        return std::nullopt;
    }

    const Plan& plan_;
    const Job& job_;
    std::vector<Rights> rights_;
    std::vector<Memory> memory_;
    Contributions contributions_;
    std::vector<std::vector<std::vector<bool>>> heard_;  ///< barrier: by rank and step
    std::map<std::pair<std::uint32_t, StepId>, std::vector<Contents>> put_out_;
    std::int64_t parts_ = 1;
};

}  // namespace

std::optional<std::string> verify(const Plan& plan, const Job& job) { return Verifier(plan, job).run(); }

}  // namespace palmette::plan
