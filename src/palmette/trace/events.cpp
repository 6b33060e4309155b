#include "palmette/trace/events.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <string_view>

#include "palmette/trace/section_reader.hpp"
#include "palmette/trace/section_samples.hpp"

namespace palmette::trace {
namespace {

/// Indices of texts or ids that all processes share.
template <class Key>
class Numbers {
  public:
    /// The key's number, and whether it is new.
    std::pair<std::uint32_t, bool> of(const Key& key) {
        const auto [found, made] = numbers_.try_emplace(key, static_cast<std::uint32_t>(numbers_.size()));
        return {found->second, made};
    }

  private:
    std::map<Key, std::uint32_t> numbers_;
};

std::string text_of_path(const std::vector<FrameInfo>& frames) {
    std::string text;
    for (const FrameInfo& frame : frames) {
        if (!text.empty()) text += ';';
        text += frame.module + "@" + frame.build_id + "+" + std::to_string(frame.offset);
    }
    return text;
}

/// A node's time by the common clock.
std::int64_t common(const TraceFile& file, std::int64_t real_ns) {
    std::int64_t offset = file.first_offset_ns;
    if (file.last_real_ns > file.first_real_ns)
        offset += static_cast<std::int64_t>(static_cast<double>(file.last_offset_ns - file.first_offset_ns) *
                                            (static_cast<double>(real_ns - file.first_real_ns) /
                                             static_cast<double>(file.last_real_ns - file.first_real_ns)));
    return real_ns + offset;
}

/// What the numbers in one process's records mean for the whole job.
struct Meanings {
    std::vector<std::uint32_t> functions, paths, communicators, plans;
    std::vector<std::uint64_t> since_ticks;  ///< by communicator: what began before was on another one
    std::vector<char> numbered;              ///< by function: its tag is an instance
    std::uint64_t first_ticks = 0;
    std::int64_t first_ns = 0;
    double tick_ns = 1;
    TraceFile file;
};

class RingReader : public EventReader {
  public:
    RingReader(std::shared_ptr<const Mapping> mapping, SectionReader::Ring ring,
               std::shared_ptr<const Meanings> meanings)
        : mapping_(std::move(mapping)), ring_(ring), meanings_(std::move(meanings)) {}

    std::size_t size() const override { return ring_.size(); }
    void prefetch(std::size_t index) const override {
        const auto* const record = reinterpret_cast<const char*>(&ring_.at(index));
        __builtin_prefetch(record);
        __builtin_prefetch(record + sizeof(Record) - 1);
    }
    Event at(std::size_t index) const override {
        const Record& record = ring_.at(index);
        const Meanings& means = *meanings_;
        Event event;
        const auto since = static_cast<double>(static_cast<std::int64_t>(record.begin_ticks - means.first_ticks));
        event.begin_ns = common(means.file, means.first_ns + static_cast<std::int64_t>(since * means.tick_ns));
        event.end_ns = event.begin_ns + static_cast<std::int64_t>(
                                            static_cast<double>(unpacked_duration(record.duration)) * means.tick_ns);
        const auto number = [](const std::vector<std::uint32_t>& list, std::uint32_t at) {
            return at < list.size() ? list[at] : 0;
        };
        const std::uint32_t function = record.function < means.functions.size() ? record.function : 0;
        event.function = static_cast<std::uint16_t>(number(means.functions, function));
        event.is_request = record.is_request != 0;
        event.path = number(means.paths, record.path);
        event.communicator = number(means.communicators, record.communicator);
        if (event.communicator != 0 && record.begin_ticks < means.since_ticks[record.communicator])
            event.communicator = 0;
        event.plan = number(means.plans, record.plan);
        event.bytes = record.bytes_and_peer >> 24U;
        const auto who = static_cast<std::uint32_t>(record.bytes_and_peer & 0xFFFFFFU);
        event.peer = who == no_peer ? -1 : who == any_peer ? -2 : static_cast<std::int32_t>(who);
        if (!means.numbered.empty() && means.numbered[function])
            event.instance = static_cast<std::uint32_t>(record.tag);
        else
            event.tag = record.tag;
        return event;
    }

  private:
    std::shared_ptr<const Mapping> mapping_;
    SectionReader::Ring ring_;
    std::shared_ptr<const Meanings> meanings_;
};

class Reader {
  public:
    explicit Reader(bool with_samples) : with_samples_(with_samples) {
        out_.paths.emplace_back();
        paths_.of("");
        out_.communicators.emplace_back();
        communicators_.of(0);
        out_.plans.emplace_back();
    }

    void read(const TraceFile& file) {
        const auto mapping = std::make_shared<const Mapping>(file.path);
        for_each_section(*mapping, file.path, [&](SectionReader section) { read(section, file, mapping); });
    }

    Trace take() { return std::move(out_); }

  private:
    void read(SectionReader& section, const TraceFile& file, const std::shared_ptr<const Mapping>& mapping) {
        ProcessInfo info = section.read(true);
        read_sampling(section, info);
        // What has loaded the library and never called MPI_Init, or no trace.
        if (info.rank < 0) return;
        const auto number = static_cast<std::int32_t>(out_.processes.size());
        TracedProcess& process = out_.processes.emplace_back();
        process.rank = info.rank;
        process.dropped = info.dropped;
        process.begin_ns = common(file, info.begin_real_ns);
        process.end_ns = common(file, info.last_real_ns);
        process.clock_error_ns = file.error_ns;
        std::vector<std::uint32_t> functions;
        for (std::uint32_t i = 0; i < section.function_count(); ++i) {
            const auto [index, made] = functions_.of(section.function_name(i));
            if (made) {
                out_.functions.push_back(section.function_name(i));
                out_.kinds.push_back(kind_of(out_.functions.back()));
            }
            functions.push_back(index);
        }
        std::vector<std::uint32_t> paths;
        for (const auto& frames : info.paths) {
            std::string text = text_of_path(frames);
            const auto [index, made] = paths_.of(text);
            if (made) out_.paths.push_back(std::move(text));
            paths.push_back(index);
        }
        auto numbers = std::make_shared<Meanings>();
        std::vector<std::uint32_t> communicators;
        for (const CommunicatorInfo& one : info.communicators) {
            const auto [index, made] = communicators_.of(one.id);
            if (made) {
                out_.communicators.emplace_back();
                out_.communicators.back().id = one.id;
                out_.communicators.back().size = one.size;
            }
            communicators.push_back(index);
            numbers->since_ticks.push_back(one.since_ticks);
            // Alone there is nobody to wait for.
            if (index == 0 || one.size < 2 || one.rank < 0 || one.rank >= one.size ||
                one.rank >= std::max(info.size, most_ranks))
                continue;
            auto& members = out_.communicators[index].process_of;
            if (members.size() <= static_cast<std::size_t>(one.rank))
                members.resize(static_cast<std::size_t>(one.rank) + 1, -1);
            members[static_cast<std::size_t>(one.rank)] = number;
            process.rank_in[index] = one.rank;
        }
        std::vector<std::uint32_t> plans{0};
        for (std::size_t i = 1; i < info.plans.size(); ++i) {
            const PlanInfo& plan = info.plans[i];
            plans.push_back(static_cast<std::uint32_t>(out_.plans.size()));
            const std::uint32_t on = plan.communicator < communicators.size() ? communicators[plan.communicator] : 0;
            TracedPlan& traced =
                out_.plans.emplace_back(TracedPlan{plan.function, plan.algorithm, plan.bound_s, on, {}});
            const double calls = static_cast<double>(std::max<std::uint64_t>(1, plan.calls));
            for (const SendInfo& send : plan.sends)
                traced.sends.push_back(
                    {send.peer, static_cast<double>(send.messages) / calls, static_cast<double>(send.bytes) / calls});
        }
        numbers->functions = std::move(functions);
        numbers->paths = std::move(paths);
        numbers->communicators = std::move(communicators);
        numbers->plans = std::move(plans);
        for (const std::uint32_t function : numbers->functions)
            numbers->numbered.push_back(is_collective(out_.kinds[function]) ? 1 : 0);
        numbers->first_ticks = section.header().first.ticks.load();
        numbers->first_ns = info.begin_real_ns;
        numbers->tick_ns = info.tick_s * 1e9;
        numbers->file = file;
        const std::shared_ptr<const Meanings> means = numbers;
        for (const SectionReader::Ring& ring : section.rings()) {
            TracedThread& thread = process.threads.emplace_back();
            thread.dropped = ring.begin;
            if (ring.size() > 0) thread.reader = std::make_shared<RingReader>(mapping, ring, means);
        }
        if (with_samples_) read_samples(section, info, file, process, number);
        for (const RequestInfo& request : info.outstanding) {
            if (request.maker == 0 || request.maker > process.threads.size()) continue;
            Event& event = process.threads[request.maker - 1].outstanding.emplace_back();
            event.begin_ns = common(file, request.begin_real_ns);
            event.end_ns = std::max(event.begin_ns, process.end_ns);
            event.function = static_cast<std::uint16_t>(functions_.of(request.function).first);
            event.is_request = true;
            event.path = request.path < means->paths.size() ? means->paths[request.path] : 0;
            if (request.communicator < means->communicators.size())
                event.communicator = means->communicators[request.communicator];
            event.bytes = request.bytes;
            event.peer = request.peer;
            event.tag = request.tag;
            event.instance = request.instance;
        }
    }

    void read_samples(const SectionReader& section, const ProcessInfo& info, const TraceFile& file,
                      TracedProcess& process, std::int32_t number) {
        if (info.sampling.samples == 0) return;
        const std::vector<std::uint32_t> nodes = out_.contexts.add(section, number);
        const SampleColumns samples = samples_in(section);
        for (std::size_t i = 0; i < samples.real_ns.size(); ++i) {
            const std::uint32_t thread = samples.thread[i];
            if (thread == 0 || thread > info.sampling.threads.size() || samples.context[i] >= nodes.size()) continue;
            const std::uint32_t calls_as = info.sampling.threads[thread - 1].calls_as;
            auto& to = calls_as > 0 && calls_as <= process.threads.size() ? process.threads[calls_as - 1].samples
                                                                          : process.beside;
            to.push_back(
                {common(file, samples.real_ns[i]), nodes[samples.context[i]], static_cast<float>(samples.cpu_s[i])});
        }
        for (const AccountedInfo& one : accounts_in(section))
            if (one.thread > 0 && one.thread <= process.threads.size())
                process.threads[one.thread - 1].off.push_back(
                    {common(file, one.end_real_ns), {one.put_aside_s, one.io_s, one.asleep_s}});
        for (TracedThread& thread : process.threads) thread.samples.shrink_to_fit();
        process.beside.shrink_to_fit();
    }

    /// In a communicator of a small job: one of several jobs together. A damaged file may claim any number.
    static constexpr std::int32_t most_ranks = 1 << 16;
    const bool with_samples_;
    Trace out_;
    Numbers<std::string> functions_, paths_;
    Numbers<std::uint64_t> communicators_;
};

}  // namespace

Trace read_trace(const std::vector<TraceFile>& files, bool with_samples) {
    Reader reader(with_samples);
    for (const TraceFile& file : files) reader.read(file);
    return reader.take();
}

}  // namespace palmette::trace
