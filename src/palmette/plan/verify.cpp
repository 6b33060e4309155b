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
#include "palmette/plan/verify_memory.hpp"

namespace palmette::plan {
namespace {

using base::cat;
using verifying::at;
using verifying::Complaint;
using verifying::Memory;
using verifying::Place;
using verifying::Rights;
using verifying::sequence;
using verifying::Sequence;
using verifying::undefined;
using verifying::written_by;

constexpr std::int64_t most_parts = 1 << 16;

class Verifier {
  public:
    Verifier(const Plan& plan, const Job& job) : plan_(plan), job_(job) {
        if (plan.contract) terms_.emplace(plan.contract->commutes());
    }

    Complaint run() {
        if (Complaint complaint = check_frame()) return complaint;
        rights_.reserve(plan_.programs.size());
        for (const Program& program : plan_.programs) rights_.emplace_back(plan_, job_, program);
        for (std::size_t r = 0; r < plan_.programs.size(); ++r)
            if (Complaint complaint = check_program(r)) return complaint;
        if (Complaint complaint = check_memory(false)) return complaint;
        if (Complaint complaint = verifying::check_order(plan_)) return complaint;
        const Collective c = plan_.request.collective;
        const bool same_shape = is_reduction(c) && c != Collective::reduce_scatter;
        if (!same_shape) return std::nullopt;
        if (Complaint complaint = check_memory(true)) return "with MPI_IN_PLACE: " + *complaint;
        return std::nullopt;
    }

  private:
    /// Preconditions of the checks of single steps.
    Complaint check_frame() {
        const auto ranks = static_cast<std::size_t>(job_.size());
        if (plan_.programs.size() < ranks || plan_.programs.size() > ranks + job_.aggregators().size())
            return cat("the plan has ", plan_.programs.size(), " programs for a job of ", ranks, " ranks and ",
                       job_.aggregators().size(), " aggregators");
        const Rank root = plan_.request.root;
        const bool composed = plan_.request.collective == Collective::composed;
        if (composed != static_cast<bool>(plan_.contract))
            return cat(composed ? "a composed plan without a contract" : "a collective's plan with a contract");
        if (is_rooted(plan_.request.collective) && (root.value < 0 || root.value >= job_.size()))
            return cat("root ", root, " is outside of a job of ", job_.size(), " ranks");
        for (std::size_t r = 0; r < plan_.programs.size(); ++r) {
            const Program& program = plan_.programs[r];
            if (program.rank.value != static_cast<std::int32_t>(r))
                return cat("program ", r, " is made for rank ", program.rank);
            if (program.service != (r < ranks ? -1 : static_cast<std::int32_t>(r - ranks)))
                return cat("program ", r, " is made for ", who(program));
            if (program.order != plan_.programs.front().order)
                return cat("rank ", program.rank, " numbers its blocks in another order than rank 0");
            if (program.cut != plan_.programs.front().cut || program.cut < 1)
                return cat("rank ", program.rank, " cuts the vector in ", program.cut, " blocks and rank 0 in ",
                           plan_.programs.front().cut);
            for (StepId s = 0; s < program.steps.size(); ++s) {
                const Slice slice = program.steps[s].slice;
                if (slice.of < 1 || slice.index >= slice.of)
                    return cat(at(program, s), ": part ", slice.index, " of ", slice.of, " is out of range");
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
                if (region.buffer == Buffer::send && !plan_.contract)
                    return cat(at(program, s), ": writes the caller's input, block ", region.blocks.first);
                const bool own_result = has_both && region.buffer == Buffer::recv && region.blocks.first <= own &&
                                        own < region.blocks.end();
                if (own_result && !copies_input(program, step))
                    return cat(at(program, s), ": writes the rank's own block ", own,
                               " of the result, which is its input with MPI_IN_PLACE");
            }
            if (step.kind == StepKind::expose && (step.tag < 0 || step.tag >= most_expose_tags))
                return cat(at(program, s), ": tag ", step.tag, " is not below ", most_expose_tags);
            const bool combines = traits(step.kind).combines;
            if (plan_.contract && step.operation >= plan_.contract->commutes().size() && combines)
                return cat(at(program, s), ": uses operation ", static_cast<int>(step.operation),
                           ", which the contract doesn't have");
            if (combines && !is_reduction(collective) && !plan_.contract)
                return cat(at(program, s), ": combines contributions, which a ", name_of(collective), " doesn't");
            if (program.service >= 0 && traits(step.kind).needs_node)
                return cat(at(program, s), ": an aggregator shares no memory with ranks");
            const bool pulls = plan::pulls(step.kind);
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
            if (Complaint complaint = verifying::check_races(plan_.programs[r], memory_[r], parts_)) return complaint;
        if (plan_.contract) return check_contract();
        return plan_.request.collective == Collective::barrier ? check_barrier() : check_result();
    }

    /// Initial symbolic contents of block b. Where nothing is reduced, data is identified by its block alone.
    Contents initial_contents(std::size_t rank, std::int64_t block) {
        return contributions_.leaf(is_reduction(plan_.request.collective) ? static_cast<std::int32_t>(rank) : 0, block);
    }

    Complaint play() {
        const bool barrier = plan_.request.collective == Collective::barrier;
        entered_.assign(plan_.programs.size(), {});
        for (std::size_t r = 0; r < plan_.programs.size(); ++r) {
            // Initially a collective's input is defined, of a composition all buffers.
            for (std::size_t i = 0; i < (terms_ ? rights_[r].callers() : 1); ++i)
                for (const Interval& interval : rights_[r].of(caller_buffer(i)).intervals())
                    for (std::int64_t b = interval.first; b < interval.end(); ++b)
                        for (std::int64_t part = 0; part < parts_; ++part)
                            memory_[r].cell(caller_buffer(i), b, part) =
                                terms_ ? terms_->leaf(static_cast<std::int32_t>(r), caller_buffer(i), b)
                                       : initial_contents(r, b);
            if (barrier) entered_[r].resize(plan_.programs[r].steps.size());
        }
        Complaint wrong;
        const Complaint stuck = for_each_in_order(plan_, [&](StepRef ref, const StepRef* partner) {
            if (barrier) propagate_entries(ref, partner);
            if (wrong) return;
            const bool exposes = plan_.programs[ref.rank].steps[ref.step].kind == StepKind::expose;
            wrong = partner ? deliver(ref, *partner) : exposes ? snapshot_exposed(ref) : inside(ref);
        });
        return stuck ? stuck : wrong;
    }

    /// Barrier: the ranks known to have entered before this step can start.
    std::vector<bool> entered_before(StepRef ref) const {
        const Program& program = plan_.programs[ref.rank];
        std::vector<bool> out(plan_.programs.size(), false);
        out[ref.rank] = true;
        for (const StepId wait : program.waits_of(program.steps[ref.step]))
            for (std::size_t r = 0; r < out.size(); ++r)
                if (entered_[ref.rank][wait][r]) out[r] = true;
        return out;
    }
    void propagate_entries(StepRef ref, const StepRef* partner) {
        // A send informs its receiver only: no information returns to the sender, whatever the transport.
        std::vector<bool> sent = entered_before(ref);
        if (partner) {
            std::vector<bool> taken = entered_before(*partner);
            for (std::size_t r = 0; r < sent.size(); ++r)
                if (sent[r]) taken[r] = true;
            entered_[partner->rank][partner->step] = std::move(taken);
        }
        entered_[ref.rank][ref.step] = std::move(sent);
    }
    Complaint check_barrier() const {
        const auto ranks = static_cast<std::size_t>(job_.size());
        for (std::size_t r = 0; r < ranks; ++r)
            for (std::size_t other = 0; other < ranks; ++other) {
                const bool informed =
                    other == r || std::any_of(entered_[r].begin(), entered_[r].end(),
                                              [other](const auto& by_step) { return by_step[other]; });
                if (!informed)
                    return cat("rank ", r, ": leaves without being informed that rank ", other, " has entered");
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

    /// A pull reads some of the exposed blocks, by block number.
    Complaint read(StepRef from, const Sequence& exposed, StepRef to, const Sequence& taken) {
        const Program& reader = plan_.programs[to.rank];
        const Step& step = reader.steps[to.step];
        const std::int64_t first = exposed.empty() ? 0 : exposed.front().second;
        for (std::size_t i = 0; i < exposed.size(); ++i)
            if (exposed[i].second != first + static_cast<std::int64_t>(i))
                return cat(at(plan_.programs[from.rank], from.step), ": exposes blocks that are not consecutive");
        const Interval all{first, static_cast<std::int64_t>(exposed.size())};
        if (step.exposed.count != all.count || (all.count > 0 && step.exposed.first != all.first))
            return cat(at(reader, to.step), ": assumes that ", step.exposed.count, " blocks from ", step.exposed.first,
                       " on are exposed where ", at(plan_.programs[from.rank], from.step), " exposes ", all.count,
                       " from ", all.first, " on");
        const auto own = sequence(reader.sources_of(step));
        if (step.kind == StepKind::pull_reduce && own.size() != taken.size())
            return cat(at(reader, to.step), ": combines ", own.size(), " own blocks into ", taken.size());
        const std::vector<Contents>& contents = exposed_contents_.at({from.rank, from.step});
        const std::int64_t width = parts_ / step.slice.of;
        for (std::size_t i = 0; i < taken.size(); ++i) {
            const std::int64_t block = taken[i].second;
            if (block < all.first || block >= all.end())
                return cat(at(reader, to.step), ": takes block ", block, ", which ",
                           at(plan_.programs[from.rank], from.step), " doesn't expose");
            for (std::int64_t k = 0; k < width; ++k) {
                const std::int64_t part = width * step.slice.index + k;
                Contents value = contents[static_cast<std::size_t>((block - all.first) * width + k)];
                if (step.kind == StepKind::pull_reduce) {
                    const Contents mine = memory_[to.rank].cell(own[i].first, own[i].second, part);
                    if (mine == undefined) return undefined_at(to, own[i]);
                    std::string why;
                    const auto both =
                        step.exposed_first ? combined(step, value, mine, why) : combined(step, mine, value, why);
                    if (!both) return cat(at(reader, to.step), ": ", why);
                    value = *both;
                }
                memory_[to.rank].cell(taken[i].first, block, part) = value;
            }
        }
        return std::nullopt;
    }

    /// Snapshot of an exposure's contents as it starts, for its readers. Where nothing is copied, the race check proves
    /// that they don't change.
    Complaint snapshot_exposed(StepRef ref) {
        const Program& program = plan_.programs[ref.rank];
        const Step& step = program.steps[ref.step];
        std::vector<Contents>& contents = exposed_contents_[{ref.rank, ref.step}];
        contents.clear();
        const std::int64_t width = parts_ / step.slice.of;
        for (const Place& place : sequence(program.regions_of(step)))
            for (std::int64_t k = 0; k < width; ++k) {
                contents.push_back(memory_[ref.rank].cell(place.first, place.second, width * step.slice.index + k));
                if (contents.back() == undefined) return undefined_at(ref, place);
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
        return combine(ref, {read.begin(), half}, {half, read.end()}, written);
    }

    std::optional<Contents> combined(const Step& step, Contents left, Contents right, std::string& why) {
        return terms_ ? terms_->combine(step.operation, left, right, why) : contributions_.combine(left, right, why);
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

    Complaint combine(StepRef ref, const Sequence& left, const Sequence& right, const Sequence& written) {
        const Step& step = plan_.programs[ref.rank].steps[ref.step];
        const std::int64_t begin = parts_ / step.slice.of * step.slice.index;
        const std::int64_t end = begin + parts_ / step.slice.of;
        Memory& memory = memory_[ref.rank];
        for (std::size_t i = 0; i < written.size(); ++i)
            for (std::int64_t part = begin; part < end; ++part) {
                const Contents a = memory.cell(left[i].first, left[i].second, part);
                const Contents b = memory.cell(right[i].first, right[i].second, part);
                if (a == undefined) return undefined_at(ref, left[i]);
                if (b == undefined) return undefined_at(ref, right[i]);
                std::string why;
                const auto value = combined(step, a, b, why);
                if (!value) return cat(at(plan_.programs[ref.rank], ref.step), ": ", why);
                memory.cell(written[i].first, written[i].second, part) = *value;
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

    /// Every block of the caller's, changed or not, must have the final contents that the contract requires.
    Complaint check_contract() {
        Complaint wrong;
        std::map<std::pair<Contents, std::int64_t>, Contents> made;  ///< by value and part: its expression tree
        plan_.contract->evaluate(*terms_, [&](Rank rank, Buffer buffer, std::int64_t block, Contents want) {
            const std::string where =
                cat("rank ", rank, ": ", plan_.contract->buffer_name(caller_index(buffer)), " block ", block);
            for (std::int64_t part = 0; part < parts_ && !wrong; ++part) {
                const Contents value = memory_[static_cast<std::size_t>(rank.value)].cell(buffer, block, part);
                if (value == undefined)
                    wrong = where + " is never written";
                else if (!terms_->equal(value, want))
                    wrong = cat(where, " ends with ", terms_->text(value), " instead of ", terms_->text(want));
                else if (const auto [first, fresh] = made.try_emplace({want, part}, value);
                         !fresh && first->second != value)
                    wrong = cat(where, " is combined in another association than on another rank");
            }
        });
        return wrong;
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
                       ", too many contributions");
        if (plan_.request.ordered && contributions_.order_of(value).size() != 1)
            return cat("rank ", r, ": block ", b,
                       " of the result isn't combined in rank order: ", contributions_.text(value));
        if (plan_.request.collective == Collective::allreduce && value != memory_[0].cell(Buffer::recv, b, part))
            return cat("rank ", r, ": block ", b, " of the result is combined in another association than on rank 0");
        return std::nullopt;
    }

    const Plan& plan_;
    const Job& job_;
    std::vector<Rights> rights_;
    std::vector<Memory> memory_;
    Contributions contributions_;
    std::optional<Terms> terms_;                           ///< used instead of contributions_ with a contract
    std::vector<std::vector<std::vector<bool>>> entered_;  ///< barrier: by rank and step: ranks known to have entered
    std::map<std::pair<std::uint32_t, StepId>, std::vector<Contents>> exposed_contents_;
    std::int64_t parts_ = 1;
};

}  // namespace

std::optional<std::string> verify(const Plan& plan, const Job& job) { return Verifier(plan, job).run(); }

}  // namespace palmette::plan
