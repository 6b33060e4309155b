// A recording's file mapped for reading, and the section of one process in it. Nothing in a file is trusted.
//
// Long because every table of a section is checked here.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <memory>
#include <string_view>
#include <tuple>
#include <utility>

#include "palmette/base/error.hpp"
#include "palmette/base/text.hpp"
#include "palmette/trace/events.hpp"
#include "palmette/trace/recording.hpp"

namespace palmette::trace {

using base::fail;

/// A file mapped for reading. Others may still write to it.
class Mapping {
  public:
    explicit Mapping(const std::string& path) {
        const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
        if (file < 0) fail(path, ": ", std::strerror(errno));
        struct stat status{};
        if (fstat(file, &status) != 0 || !S_ISREG(status.st_mode) ||
            status.st_size < static_cast<off_t>(sizeof(FileHeader))) {
            ::close(file);
            fail(path, ": this is no recording of `palmette run --profile` or `--trace`");
        }
        bytes_ = static_cast<std::uint64_t>(status.st_size);
        memory_ = mmap(nullptr, bytes_, PROT_READ, MAP_SHARED, file, 0);
        const int error = errno;
        ::close(file);
        if (memory_ == MAP_FAILED) fail(path, ": ", std::strerror(error));
    }
    Mapping(const Mapping&) = delete;
    Mapping& operator=(const Mapping&) = delete;
    ~Mapping() { munmap(memory_, bytes_); }

    std::uint64_t bytes() const { return bytes_; }
    const char* at(std::uint64_t offset) const { return static_cast<const char*>(memory_) + offset; }

  private:
    void* memory_ = nullptr;
    std::uint64_t bytes_ = 0;
};

template <std::size_t size>
std::string text_of(const std::array<char, size>& text) {
    return base::printable({text.data(), strnlen(text.data(), size)}, size);
}

/// What the clock of a node's calls shows in the node's time: taken from one process for all, since each one's own
/// readings of both clocks differ by microseconds.
struct NodeClock {
    bool known = false, has_offset = false;
    std::uint32_t ticks_are_tsc = 0;
    std::uint64_t ticks = 0;
    std::int64_t monotonic_ns = 0;
    std::int64_t offset_ns = 0;  ///< node time less CLOCK_MONOTONIC, from the node's first process
    double tick_s = 1e-9;

    bool is_of(const SectionHeader& section) const { return known && section.ticks_are_tsc == ticks_are_tsc; }
    std::int64_t real_at(std::uint64_t at) const {
        const auto since = static_cast<double>(static_cast<std::int64_t>(at - ticks));
        return monotonic_ns + offset_ns + static_cast<std::int64_t>(since * tick_s * 1e9);
    }
    /// Takes the process that ran longest.
    void learn(const SectionHeader& section) {
        if (!has_offset) offset_ns = section.node_offset_ns.load();
        has_offset = true;
        const std::uint64_t first = section.first.ticks.load();
        std::uint64_t last = 0;
        std::int64_t monotonic_last = 0;
        // The process may be about to store both.
        for (int i = 0; i < 4; ++i) {
            monotonic_last = section.last.monotonic_ns.load(std::memory_order_acquire);
            last = section.last.ticks.load(std::memory_order_acquire);
            if (section.last.monotonic_ns.load(std::memory_order_acquire) == monotonic_last) break;
        }
        const std::int64_t monotonic_first = section.first.monotonic_ns.load();
        if (last <= first || monotonic_last <= monotonic_first || last - first <= longest_) return;
        // Counters run at 0.1 to 10 GHz; a section that says otherwise is damaged, and isn't taken for the others'.
        const double rate = static_cast<double>(last - first) / static_cast<double>(monotonic_last - monotonic_first);
        if (section.ticks_are_tsc != 0 ? rate < 0.1 || rate > 10 : rate < 0.5 || rate > 2) return;
        longest_ = last - first;
        known = true;
        ticks_are_tsc = section.ticks_are_tsc;
        ticks = first;
        monotonic_ns = monotonic_first;
        tick_s = 1e-9;
        if (ticks_are_tsc != 0)
            tick_s = static_cast<double>(monotonic_last - monotonic_first) * 1e-9 / static_cast<double>(last - first);
    }

  private:
    std::uint64_t longest_ = 0;
};

class SectionReader {
  public:
    SectionReader(const char* base, std::uint64_t bytes, std::string where, const NodeClock& clock = {})
        : base_(base),
          bytes_(bytes),
          where_(std::move(where)),
          header_(*reinterpret_cast<const SectionHeader*>(base)),
          clock_(clock) {
        functions_ = {entries<FunctionName>(header_.functions), used(header_.functions)};
    }

    ProcessInfo read(bool with_tables) {
        ProcessInfo out;
        out.pid = header_.pid;
        out.rank = header_.rank.load(std::memory_order_acquire);
        out.size = header_.size.load(std::memory_order_relaxed);
        out.state = header_.state.load(std::memory_order_acquire);
        if (out.state > State::aborted) fail(where_, ": a process in a state that there isn't; the file is damaged");
        out.executable = text_of(header_.executable);
        out.records_calls = header_.records_calls != 0;
        read_clock(out);
        out.unaggregated = header_.unaggregated_calls.load();
        out.merged = header_.merged_calls.load();
        out.unnumbered = header_.unnumbered_communicators.load();
        out.unpathed = header_.unpathed_calls.load();
        out.threadless = header_.threadless_calls.load();
        out.unfollowed = header_.unfollowed_requests.load();
        out.unplanned = header_.unplanned_calls.load();
        out.call_cost_s = header_.call_cost_milliticks.load() * 1e-3 * out.tick_s;
        out.clock_cost_s = header_.clock_cost_milliticks.load() * 1e-3 * out.tick_s;
        for (const SyncPoint* const point : {&header_.synced_first, &header_.synced_last})
            if (point->real_ns.load(std::memory_order_acquire) != 0)
                out.synced.push_back({point->real_ns.load(), point->offset_ns.load(), point->error_ns.load()});
        out.nested = header_.nested_calls.load();
        out.left = header_.left_calls.load();
        out.counter_distrusted = header_.counter_distrusted.load() != 0;
        out.pid_namespace = header_.pid_namespace;
        read_life(out);
        out.unwound = header_.unwound_calls.load();
        out.unwinding_s = static_cast<double>(header_.unwinding_ticks.load()) * out.tick_s;
        const auto* const communicators = entries<CommunicatorEntry>(header_.communicators);
        for (std::uint32_t i = 0; i < used(header_.communicators); ++i) {
            const CommunicatorEntry& one = communicators[i];
            out.communicators.push_back(
                {one.id, one.rank, one.size, one.collectives.load(std::memory_order_relaxed), one.since_ticks.load()});
            if (out.communicators.back().since_ticks != 0) ++out.reused;
        }
        read_threads(out);
        read_requests(out);
        if (with_tables) {
            read_aggregates(out);
            read_paths(out);
            read_plans(out);
            read_peers(out);
        }
        return out;
    }

    const SectionHeader& header() const { return header_; }
    std::string function_name(std::uint32_t number) const { return function(number); }
    std::uint32_t function_count() const { return functions_.second; }

    /// A thread's part of the ring: its records in the order in which they were written are at(i), i < size.
    struct Ring {
        const Record* first = nullptr;
        std::uint64_t capacity = 0, begin = 0, end = 0;
        std::uint64_t mask = 0;  ///< capacity - 1 where that is a power of two, as it mostly is; else 0
        std::uint64_t size() const { return end - begin; }
        const Record& at(std::uint64_t i) const {
            // A division takes as long as all else that is done with a record.
            return first[mask != 0 ? (begin + i) & mask : (begin + i) % capacity];
        }
    };
    /// Parts of the ring, by thread.
    std::vector<Ring> rings() const {
        std::vector<Ring> out;
        const auto* const threads = entries<ThreadEntry>(header_.threads);
        const auto* const ring = entries<Record>(header_.ring);
        for (std::uint32_t i = 0; i < used(header_.threads); ++i) {
            Ring& one = out.emplace_back();
            const std::uint64_t capacity = threads[i].ring_capacity;
            const std::uint64_t first = threads[i].ring_first;
            if (capacity == 0 || first > header_.ring.capacity || capacity > header_.ring.capacity - first) continue;
            one.first = ring + first;
            one.capacity = capacity;
            one.mask = std::has_single_bit(capacity) ? capacity - 1 : 0;
            one.end = threads[i].recorded.load(std::memory_order_acquire);
            one.begin = one.end > capacity ? one.end - capacity : 0;
        }
        return out;
    }

    std::vector<CallInfo> calls() const {
        ProcessInfo process;
        process.rank = header_.rank.load();
        read_clock(process);
        std::vector<CallInfo> out;
        std::uint32_t thread = 0;
        for (const Ring& ring : rings()) {
            ++thread;
            for (std::uint64_t i = 0; i < ring.size(); ++i) out.push_back(call(process, ring.at(i), thread));
        }
        std::stable_sort(out.begin(), out.end(),
                         [](const CallInfo& a, const CallInfo& b) { return a.begin_real_ns < b.begin_real_ns; });
        return out;
    }

    const std::string& where() const { return where_; }
    template <class Entry>
    const Entry* entries(const Table& table) const {
        const std::uint64_t bytes = static_cast<std::uint64_t>(table.capacity) * sizeof(Entry);
        if (table.offset % alignof(Entry) != 0 || table.offset < sizeof(SectionHeader) || table.offset > bytes_ ||
            bytes > bytes_ - table.offset)
            fail(where_, ": a table lies outside of its section; the file is damaged");
        return reinterpret_cast<const Entry*>(base_ + table.offset);
    }
    static std::uint32_t used(const Table& table) {
        return std::min(table.count.load(std::memory_order_acquire), table.capacity);
    }
    static std::string build_id_of(const ModuleEntry& module) {
        constexpr const char* digits = "0123456789abcdef";
        std::string out;
        for (std::uint32_t b = 0; b < std::min<std::uint32_t>(module.build_id_bytes, 20); ++b) {
            out += digits[module.build_id[b] >> 4U];
            out += digits[module.build_id[b] & 15U];
        }
        return out;
    }

    void read_clock(ProcessInfo& out) const {
        const std::uint64_t first = header_.first.ticks.load();
        const std::uint64_t last = header_.last.ticks.load();
        out.node_offset_ns = clock_.has_offset ? clock_.offset_ns : header_.node_offset_ns.load();
        out.begin_real_ns = header_.first.monotonic_ns.load() + out.node_offset_ns;
        out.last_real_ns = header_.last.monotonic_ns.load(std::memory_order_acquire) + out.node_offset_ns;
        out.tick_s = 1e-9;
        if (header_.ticks_are_tsc != 0 && last > first && out.last_real_ns > out.begin_real_ns)
            out.tick_s =
                static_cast<double>(out.last_real_ns - out.begin_real_ns) * 1e-9 / static_cast<double>(last - first);
        if (!clock_.is_of(header_)) return;
        out.tick_s = clock_.tick_s;
        out.begin_real_ns = clock_.real_at(first);
        out.last_real_ns = clock_.real_at(last);
    }

    std::int64_t real_ns(const ProcessInfo& out, std::uint64_t ticks) const {
        const auto since = static_cast<std::int64_t>(ticks - header_.first.ticks.load());
        return out.begin_real_ns + static_cast<std::int64_t>(static_cast<double>(since) * out.tick_s * 1e9);
    }

  private:
    CallInfo call(const ProcessInfo& process, const Record& from, std::uint32_t thread) const {
        CallInfo call;
        call.begin_real_ns = real_ns(process, from.begin_ticks);
        call.seconds = static_cast<double>(unpacked_duration(from.duration)) * process.tick_s;
        call.function = function(from.function);
        call.is_request = from.is_request != 0;
        call.path = from.path;
        call.plan = from.plan;
        call.communicator = communicator_of(from);
        call.bytes = from.bytes_and_peer >> 24U;
        const auto who = static_cast<std::uint32_t>(from.bytes_and_peer & 0xFFFFFFU);
        call.peer = who == no_peer ? -1 : who == any_peer ? -2 : static_cast<std::int32_t>(who);
        if (is_collective(kind_of(call.function)))
            call.instance = static_cast<std::uint32_t>(from.tag);
        else
            call.tag = from.tag;
        call.thread = thread;
        return call;
    }

    /// 0 where the entry has become another communicator's since.
    std::uint16_t communicator_of(const Record& record) const {
        if (record.communicator >= used(header_.communicators)) return 0;
        const auto& entry = entries<CommunicatorEntry>(header_.communicators)[record.communicator];
        return record.begin_ticks < entry.since_ticks.load(std::memory_order_relaxed) ? 0 : record.communicator;
    }

    std::string function(std::uint32_t number) const {
        return number < functions_.second ? text_of(functions_.first[number].name) : "unknown";
    }

    void read_life(ProcessInfo& out) const {
        const Life& life = header_.life;
        std::uint32_t word = 0;
        if (life.is_known.load(std::memory_order_acquire) == 0 || life.word_at > life.mutex.size() - sizeof word)
            return;
        std::memcpy(&word, life.mutex.data() + life.word_at, sizeof word);
        out.life = (word & Life::ended) != 0 ? LifeSign::ended : word != 0 ? LifeSign::lives : LifeSign::unknown;
    }

    void read_requests(ProcessInfo& out) const {
        const auto* const handles = entries<Shared<std::uint64_t>>(header_.request_handles);
        const auto* const requests = entries<RequestEntry>(header_.requests);
        const std::uint32_t count = std::min(header_.request_handles.capacity, header_.requests.capacity);
        for (std::uint32_t i = 0; i < count; ++i) {
            const std::uint32_t set = i / 8;
            if (i % 8 == 0 && set < 64 * header_.request_sets.size() &&
                (header_.request_sets[set / 64].load(std::memory_order_relaxed) >> set % 64 & 1U) == 0) {
                i += 7;
                continue;
            }
            const std::uint64_t handle = handles[i].load(std::memory_order_acquire);
            if (handle == 0 || handle == ~std::uint64_t{0}) continue;
            const RequestEntry& from = requests[i];
            const std::uint64_t ticks = from.ticks.load(std::memory_order_relaxed);
            if (ticks == 0) continue;
            RequestInfo request;
            request.function = function(from.function);
            request.path = from.path;
            request.communicator = from.communicator;
            request.begin_real_ns = real_ns(out, ticks);
            request.bytes = from.bytes;
            request.instance = from.instance;
            request.peer = from.peer;
            request.tag = from.tag;
            request.waited_by = from.waited_by.load(std::memory_order_relaxed);
            request.maker = from.maker;
            // It may have completed meanwhile, and another one begun.
            std::atomic_thread_fence(std::memory_order_acquire);
            if (handles[i].load(std::memory_order_relaxed) == handle) out.outstanding.push_back(std::move(request));
        }
    }

    void read_plans(ProcessInfo& out) const {
        const auto* const plans = entries<PlanEntry>(header_.plans);
        const auto* const sends = entries<PlanSend>(header_.sends);
        const std::uint32_t send_count = used(header_.sends);
        std::uint64_t sends_left = send_count;  // no plan shares another one's
        for (std::uint32_t i = 0; i < used(header_.plans); ++i) {
            PlanInfo& plan = out.plans.emplace_back();
            if (i == 0) continue;
            const PlanEntry& from = plans[i];
            plan.function = text_of(from.function);
            plan.algorithm = text_of(from.algorithm);
            plan.communicator = from.communicator;
            plan.root = from.root;
            plan.block_bytes = from.block_bytes;
            plan.bound_s = from.bound_ns < 0 ? -1 : static_cast<double>(from.bound_ns) * 1e-9;
            plan.calls = from.calls.load(std::memory_order_relaxed);
            plan.seconds = static_cast<double>(from.ticks.load(std::memory_order_relaxed)) * out.tick_s;
            if (from.first_send > send_count || from.send_count > send_count - from.first_send) continue;
            if (from.send_count > sends_left) continue;
            sends_left -= from.send_count;
            for (std::uint32_t s = 0; s < from.send_count; ++s) {
                const PlanSend& send = sends[from.first_send + s];
                const std::uint64_t times = from.block_bytes >= 0 ? plan.calls : 1;
                plan.sends.push_back({send.peer, send.messages * times, send.bytes * times});
            }
        }
    }

    void read_peers(ProcessInfo& out) const {
        const auto* const peers = entries<PeerEntry>(header_.peers);
        const auto sum = [](const PeerEntry& peer, SentBy by) {
            const PeerEntry::Sum& one = peer.sent[static_cast<std::size_t>(by)];
            return std::pair(one.messages.load(std::memory_order_relaxed), one.bytes.load(std::memory_order_relaxed));
        };
        for (std::uint32_t i = 0; i < used(header_.peers); ++i) {
            PeerInfo peer;
            peer.rank = peers[i].rank;
            std::tie(peer.messages, peer.message_bytes) = sum(peers[i], SentBy::messages);
            std::tie(peer.neighbour_blocks, peer.neighbour_bytes) = sum(peers[i], SentBy::neighbours);
            std::tie(peer.exchange_blocks, peer.exchange_bytes) = sum(peers[i], SentBy::exchanges);
            if (peer.messages + peer.neighbour_blocks + peer.exchange_blocks > 0) out.peers.push_back(peer);
        }
        out.one_sided = header_.one_sided_calls.load(std::memory_order_relaxed);
        out.uncounted = header_.uncounted_requests.load(std::memory_order_relaxed);
    }

    void read_threads(ProcessInfo& out) const {
        const auto* const threads = entries<ThreadEntry>(header_.threads);
        for (std::uint32_t i = 0; i < used(header_.threads); ++i) {
            const ThreadEntry& thread = threads[i];
            const std::uint64_t recorded = thread.recorded.load(std::memory_order_acquire);
            const std::uint64_t requests = std::min(recorded, thread.requests.load(std::memory_order_acquire));
            out.calls += recorded - requests;
            out.requests += requests;
            if (out.records_calls && recorded > thread.ring_capacity) out.dropped += recorded - thread.ring_capacity;
            const std::uint64_t ticks = thread.open.ticks.load(std::memory_order_acquire);
            if (ticks == 0) continue;
            OpenCallInfo call;
            call.thread_id = thread.thread_id;
            call.thread = i + 1;
            call.function = function(thread.open.function.load(std::memory_order_relaxed));
            call.path = thread.open.path.load(std::memory_order_relaxed);
            call.communicator = thread.open.communicator.load(std::memory_order_relaxed);
            call.bytes = thread.open.bytes.load(std::memory_order_relaxed);
            call.peer = thread.open.peer.load(std::memory_order_relaxed);
            call.tag = thread.open.tag.load(std::memory_order_relaxed);
            call.instance = thread.open.instance.load(std::memory_order_relaxed);
            call.receives_from = thread.open.receives_from.load(std::memory_order_relaxed);
            call.begin_real_ns = real_ns(out, ticks);
            out.last_real_ns = std::max(out.last_real_ns, call.begin_real_ns);
            // It may have ended meanwhile, and another one begun.
            std::atomic_thread_fence(std::memory_order_acquire);
            if (thread.open.ticks.load(std::memory_order_relaxed) == ticks) out.open.push_back(std::move(call));
        }
    }

    void read_aggregates(ProcessInfo& out) const {
        const auto* const aggregates = entries<Aggregate>(header_.aggregates);
        for (std::uint32_t i = 0; i < used(header_.aggregates); ++i) {
            const Aggregate& from = aggregates[i];
            AggregateInfo sum;
            sum.calls = from.calls.load(std::memory_order_relaxed);
            if (sum.calls == 0) continue;
            const std::uint64_t key = from.key.load(std::memory_order_relaxed) - 1;
            if (i > 0) {
                sum.function = function(static_cast<std::uint32_t>(key & function_mask));
                sum.communicator = static_cast<std::uint16_t>(key >> key_communicator & communicator_mask);
                sum.is_request = (key >> key_request & 1U) != 0;
                sum.path = static_cast<std::uint32_t>(key >> key_path & path_mask);
            } else {
                sum.function = "others";
            }
            sum.bytes = from.bytes.load(std::memory_order_relaxed);
            sum.seconds = static_cast<double>(from.ticks.load(std::memory_order_relaxed)) * out.tick_s;
            sum.longest_s = static_cast<double>(from.longest_ticks.load(std::memory_order_relaxed)) * out.tick_s;
            for (std::size_t b = 0; b < histogram_bins; ++b)
                sum.histogram[b] = from.histogram[b].load(std::memory_order_relaxed);
            out.aggregates.push_back(std::move(sum));
        }
    }

    void read_paths(ProcessInfo& out) const {
        const auto* const paths = entries<PathEntry>(header_.paths);
        const auto* const frames = entries<Frame>(header_.frames);
        const auto* const modules = entries<ModuleEntry>(header_.modules);
        const std::uint32_t frame_count = used(header_.frames);
        const std::uint32_t module_count = used(header_.modules);
        for (std::uint32_t i = 0; i < used(header_.paths); ++i) {
            std::vector<FrameInfo>& path = out.paths.emplace_back();
            for (std::uint32_t f = 0; f < paths[i].frame_count; ++f) {
                const std::uint64_t at = static_cast<std::uint64_t>(paths[i].first_frame) + f;
                if (at >= frame_count) break;
                FrameInfo frame;
                frame.offset = frames[at].offset;
                if (frames[at].module != 0 && frames[at].module < module_count) {
                    const ModuleEntry& module = modules[frames[at].module];
                    frame.module = text_of(module.path);
                    frame.build_id = build_id_of(module);
                }
                path.push_back(std::move(frame));
            }
        }
    }

    const char* base_;
    std::uint64_t bytes_;
    std::string where_;
    const SectionHeader& header_;
    const NodeClock clock_;
    std::pair<const FunctionName*, std::uint32_t> functions_;
};

/// A name among a section's texts; empty where there is none.
inline std::string text_at(const SectionReader& section, const Table& texts, std::uint64_t at) {
    const std::uint32_t end = SectionReader::used(texts);
    if (at >= end) return "";
    const char* const begin = section.entries<char>(texts) + at;
    constexpr std::size_t longest = 4096;
    return base::printable({begin, strnlen(begin, end - at)}, longest);
}

/// Calls `use` with each section that its process has begun to write.
template <class Use>
void for_each_section(const Mapping& file, const std::string& path, Use use) {
    const auto& header = *reinterpret_cast<const FileHeader*>(file.at(0));
    if (header.magic != file_magic) fail(path, ": this is no recording of `palmette run --profile` or `--trace`");
    if (header.version != format_version)
        fail(path, ": version ", header.version, " of the format; this palmette reads version ", format_version);
    if (header.header_bytes % page_bytes != 0) fail(path, ": its sections lie at no page; the file is damaged");
    const std::uint64_t end = std::min(header.end.load(std::memory_order_acquire), file.bytes());
    const auto each = [&](auto visit) {
        for (std::uint64_t at = header.header_bytes; at + sizeof(SectionHeader) <= end;) {
            const auto& section = *reinterpret_cast<const SectionHeader*>(file.at(at));
            if (section.bytes < sizeof(SectionHeader) || section.bytes > end - at || section.bytes % page_bytes != 0)
                fail(path, ": the section at ", at, " is longer than the file; the file is damaged");
            // Without it, a process has claimed its section and not begun to write it.
            const bool begun = section.magic == file_magic;
            std::atomic_thread_fence(std::memory_order_acquire);
            if (begun) visit(at, section);
            at += section.bytes;
        }
    };
    NodeClock clock;
    each([&](std::uint64_t, const SectionHeader& section) { clock.learn(section); });
    each([&](std::uint64_t at, const SectionHeader& section) {
        use(SectionReader(file.at(at), section.bytes, path, clock));
    });
}

}  // namespace palmette::trace
