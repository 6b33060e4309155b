#include "palmette/plan/verify.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>

#include "palmette/base/text.hpp"
#include "palmette/plan/matching.hpp"

namespace palmette::plan {
namespace {

using base::cat;
using Complaint = std::optional<std::string>;

constexpr std::int64_t undefined = -1;
constexpr std::int64_t most_parts = 1 << 16;

std::string at(const Program& program, StepId step) {
    return cat("rank ", program.rank, ", step ", step, " (", name_of(program.steps[step].kind), ", ",
               program.stages.empty() ? "" : program.stages[program.steps[step].stage], ")");
}

/// Which blocks of which buffer a rank has, and which it may write.
class Rights {
  public:
    Rights(const Plan& plan, const Job& job, const Program& program) : scratch_(program.scratch) {
        const Rank rank = program.rank;
        const bool root = rank == plan.request.root;
        const Blocks own(block_of(job, program.order, rank), 1);
        const Blocks all(0, job.size());
        switch (plan.request.collective) {
            case Collective::gather:
                send_ = own, recv_ = root ? all : Blocks();
                break;
            case Collective::scatter:
                send_ = root ? all : Blocks(), recv_ = own;
                break;
            case Collective::allgather:
                send_ = own, recv_ = all;
                break;
        }
    }
    const Blocks& of(Buffer buffer) const {
        return buffer == Buffer::send ? send_ : buffer == Buffer::recv ? recv_ : scratch_;
    }

    bool covers(const Region& region) const {
        for (const Interval& interval : of(region.buffer).intervals())
            if (region.blocks.first >= interval.first && region.blocks.end() <= interval.end()) return true;
        return false;
    }

  private:
    Blocks send_, recv_, scratch_;
};

/// The memory of one rank: for every part of every block that it has, whose contribution it holds.
class Memory {
  public:
    Memory(const Rights& rights, std::int64_t parts) : parts_(parts) {
        for (const Buffer buffer : {Buffer::send, Buffer::recv, Buffer::scratch}) {
            auto& areas = areas_[static_cast<std::size_t>(buffer)];
            for (const Interval& interval : rights.of(buffer).intervals())
                areas.push_back(
                    {interval, std::vector<std::int64_t>(static_cast<std::size_t>(interval.count * parts), undefined)});
        }
    }
    std::int64_t& cell(Buffer buffer, std::int64_t block, std::int64_t part) {
        for (Area& area : areas_[static_cast<std::size_t>(buffer)])
            if (block >= area.blocks.first && block < area.blocks.end())
                return area.cells[static_cast<std::size_t>((block - area.blocks.first) * parts_ + part)];
        return nowhere_;
    }

  private:
    struct Area {
        Interval blocks;
        std::vector<std::int64_t> cells;
    };
    std::array<std::vector<Area>, 3> areas_;
    std::int64_t parts_;
    std::int64_t nowhere_ = undefined;
};

/// The blocks of a list of regions, in the order in which a message carries them.
std::vector<std::pair<Buffer, std::int64_t>> sequence(Span<Region> regions) {
    std::vector<std::pair<Buffer, std::int64_t>> out;
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
        if (Complaint complaint = play()) return complaint;
        for (std::size_t r = 0; r < plan_.programs.size(); ++r)
            if (Complaint complaint = check_races(plan_.programs[r])) return complaint;
        return check_result();
    }

  private:
    /// What must hold before steps can be looked at.
    Complaint check_frame() {
        if (static_cast<std::int32_t>(plan_.programs.size()) != job_.size())
            return cat("the plan has ", plan_.programs.size(), " programs for a job of ", job_.size(), " ranks");
        const Rank root = plan_.request.root;
        if (plan_.request.collective != Collective::allgather && (root.value < 0 || root.value >= job_.size()))
            return cat("root ", root, " is outside of a job of ", job_.size(), " ranks");
        for (std::size_t r = 0; r < plan_.programs.size(); ++r) {
            const Program& program = plan_.programs[r];
            if (program.rank.value != static_cast<std::int32_t>(r))
                return cat("program ", r, " is made for rank ", program.rank);
            if (program.order != plan_.programs.front().order)
                return cat("rank ", program.rank, " counts its blocks in another order than rank 0");
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
        const std::int64_t own = block_of(job_, program.order, program.rank);
        const bool has_both =
            rights_[index].covers({Buffer::send, {own, 1}}) && rights_[index].covers({Buffer::recv, {own, 1}});
        for (StepId s = 0; s < program.steps.size(); ++s) {
            const Step& step = program.steps[s];
            for (const Region& region : program.regions_of(step))
                if (!rights_[index].covers(region))
                    return cat(at(program, s), ": touches ", name_of(region.buffer), " blocks ", region.blocks.first,
                               " to ", region.blocks.end() - 1, ", which this rank doesn't have");
            const Span<Region> written = step.kind == StepKind::send   ? Span<Region>{nullptr, 0}
                                         : step.kind == StepKind::recv ? program.regions_of(step)
                                                                       : program.targets_of(step);
            for (const Region& region : written) {
                if (region.buffer == Buffer::send)
                    return cat(at(program, s), ": writes the caller's input, block ", region.blocks.first);
                const bool own_result = has_both && region.buffer == Buffer::recv && region.blocks.first <= own &&
                                        own < region.blocks.end();
                if (own_result && !copies_input(program, step))
                    return cat(at(program, s), ": writes the rank's own block ", own,
                               " of the result, which is its input with MPI_IN_PLACE");
            }
        }
        return std::nullopt;
    }

    static bool copies_input(const Program& program, const Step& step) {
        if (step.kind != StepKind::copy) return false;
        const Span<Region> sources = program.sources_of(step);
        return std::all_of(sources.begin(), sources.end(), [](const Region& r) { return r.buffer == Buffer::send; });
    }

    Complaint play() {
        for (std::size_t r = 0; r < plan_.programs.size(); ++r) {
            memory_.emplace_back(rights_[r], parts_);
            for (const Interval& interval : rights_[r].of(Buffer::send).intervals())
                for (std::int64_t b = interval.first; b < interval.end(); ++b)
                    for (std::int64_t part = 0; part < parts_; ++part) memory_[r].cell(Buffer::send, b, part) = b;
        }
        Complaint wrong;
        const Complaint stuck = for_each_in_order(plan_, [&](StepRef ref, const StepRef* partner) {
            if (!wrong) wrong = partner ? deliver(ref, *partner) : copy(ref);
        });
        return stuck ? stuck : wrong;
    }

    Complaint deliver(StepRef from, StepRef to) {
        const Program& sender = plan_.programs[from.rank];
        const Program& receiver = plan_.programs[to.rank];
        const Step& send = sender.steps[from.step];
        const Step& recv = receiver.steps[to.step];
        const auto sent = sequence(sender.regions_of(send));
        const auto taken = sequence(receiver.regions_of(recv));
        if (!(send.slice == recv.slice))
            return cat(at(receiver, to.step), ": takes part ", recv.slice.index + 1, '/', recv.slice.of, " where ",
                       at(sender, from.step), " sends part ", send.slice.index + 1, '/', send.slice.of);
        if (sent.size() != taken.size())
            return cat(at(receiver, to.step), ": takes ", taken.size(), " blocks where ", at(sender, from.step),
                       " sends ", sent.size());
        for (std::size_t i = 0; i < sent.size(); ++i)
            if (sent[i].second != taken[i].second)
                return cat(at(receiver, to.step), ": takes block ", taken[i].second, " where ", at(sender, from.step),
                           " sends block ", sent[i].second);
        return transfer(from, sent, to, taken, send.slice);
    }

    Complaint copy(StepRef ref) {
        const Program& program = plan_.programs[ref.rank];
        const Step& step = program.steps[ref.step];
        const auto read = sequence(program.sources_of(step));
        const auto written = sequence(program.targets_of(step));
        if (read.size() != written.size())
            return cat(at(program, ref.step), ": copies ", read.size(), " blocks to ", written.size());
        return transfer(ref, read, ref, written, step.slice);
    }

    Complaint transfer(StepRef from, const std::vector<std::pair<Buffer, std::int64_t>>& read, StepRef to,
                       const std::vector<std::pair<Buffer, std::int64_t>>& written, Slice slice) {
        const std::int64_t begin = parts_ / slice.of * slice.index;
        const std::int64_t end = begin + parts_ / slice.of;
        for (std::size_t i = 0; i < read.size(); ++i)
            for (std::int64_t part = begin; part < end; ++part) {
                const std::int64_t value = memory_[from.rank].cell(read[i].first, read[i].second, part);
                if (value == undefined)
                    return cat(at(plan_.programs[from.rank], from.step), ": reads ", name_of(read[i].first), " block ",
                               read[i].second, " before anything is there");
                memory_[to.rank].cell(written[i].first, written[i].second, part) = value;
            }
        return std::nullopt;
    }

    struct Access {
        StepId step;
        bool writes;
    };

    Complaint check_races(const Program& program) const {
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
            return (before[later * words + earlier / 64] >> earlier % 64 & 1) != 0;
        };
        std::map<std::tuple<Buffer, std::int64_t, std::int64_t>, std::vector<Access>> accesses;
        for (StepId s = 0; s < n; ++s) {
            const Step& step = program.steps[s];
            const std::int64_t begin = parts_ / step.slice.of * step.slice.index;
            const std::int64_t end = begin + parts_ / step.slice.of;
            const std::uint32_t reads = step.kind == StepKind::send   ? step.region_count
                                        : step.kind == StepKind::recv ? 0
                                                                      : step.region_count - step.target_count;
            std::uint32_t i = 0;
            for (const Region& region : program.regions_of(step)) {
                const bool writes = i++ >= reads;
                for (std::int64_t b = region.blocks.first; b < region.blocks.end(); ++b)
                    for (std::int64_t part = begin; part < end; ++part) {
                        auto& list = accesses[{region.buffer, b, part}];
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

    Complaint check_result() {
        for (std::size_t r = 0; r < plan_.programs.size(); ++r)
            for (const Interval& interval : rights_[r].of(Buffer::recv).intervals())
                for (std::int64_t b = interval.first; b < interval.end(); ++b)
                    for (std::int64_t part = 0; part < parts_; ++part) {
                        const std::int64_t value = memory_[r].cell(Buffer::recv, b, part);
                        if (value == undefined)
                            return cat("rank ", r, ": block ", b, " of the result is never written");
                        if (value != b) return cat("rank ", r, ": block ", b, " of the result holds block ", value);
                    }
        return std::nullopt;
    }

    const Plan& plan_;
    const Job& job_;
    std::vector<Rights> rights_;
    std::vector<Memory> memory_;
    std::int64_t parts_ = 1;
};

}  // namespace

std::optional<std::string> verify(const Plan& plan, const Job& job) { return Verifier(plan, job).run(); }

}  // namespace palmette::plan
