#include "palmette/trace/recording.hpp"

#include <gmock/gmock.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <random>
#include <vector>

#include "palmette/base/error.hpp"
#include "palmette/trace/events.hpp"
#include "support/errors.hpp"

namespace palmette::trace {
namespace {

using test::error_of;
using testing::HasSubstr;

/// A file with one process: one communicator, one sum, one path of one frame, one open call, one request, one plan, and
/// a ring of four calls of which it has made six.
class RecordedFile {
  public:
    RecordedFile() : bytes_(page_bytes * 32, 0) {
        auto& file = *new (bytes_.data()) FileHeader{};
        file.magic = file_magic;
        file.version = format_version;
        file.header_bytes = page_bytes;
        file.end.store(bytes_.size());
        std::strcpy(file.host.data(), "node7");
        auto& section = *new (bytes_.data() + page_bytes) SectionHeader{};
        section.magic = file_magic;
        section.bytes = bytes_.size() - page_bytes;
        section.pid = 4711;
        section.rank.store(3);
        section.size.store(8);
        section.state.store(State::running);
        section.first.ticks.store(1000);
        section.first.monotonic_ns.store(2'000'000'000);
        section.node_offset_ns.store(3'000'000'000);
        section.last.ticks.store(3000);
        section.last.monotonic_ns.store(2'000'001'000);
        section.ticks_are_tsc = 1;  // half a nanosecond each
        std::uint64_t page = 1;
        const auto place = [&](Table& table, std::uint32_t capacity, std::uint32_t count) {
            table.offset = page_bytes * page++;
            table.capacity = capacity;
            table.count.store(count);
            return bytes_.data() + page_bytes + table.offset;
        };
        auto* names = reinterpret_cast<FunctionName*>(place(section.functions, 4, 2));
        std::strcpy(names[0].name.data(), "MPI_Bcast");
        std::strcpy(names[1].name.data(), "MPI_Recv");
        auto* communicators = reinterpret_cast<CommunicatorEntry*>(place(section.communicators, 8, 2));
        communicators[1].id = 1;
        communicators[1].rank = 3;
        communicators[1].size = 8;
        auto* sums = reinterpret_cast<Aggregate*>(place(section.aggregates, 8, 6));
        sums[5].key.store((std::uint64_t{1} << 32 | 1U << 16 | 4U << 10 | 0U) + 1);
        sums[5].calls.store(10);
        sums[5].bytes.store(80);
        sums[5].ticks.store(2000);
        auto* paths = reinterpret_cast<PathEntry*>(place(section.paths, 8, 2));
        paths[1] = {0, 1};
        auto* frames = reinterpret_cast<Frame*>(place(section.frames, 8, 1));
        frames[0] = {1, 0, 0x1234};
        auto* modules = reinterpret_cast<ModuleEntry*>(place(section.modules, 2, 2));
        std::strcpy(modules[1].path.data(), "/bin/app");
        modules[1].build_id_bytes = 2;
        modules[1].build_id = {0xab, 0x0c};
        auto* contexts = reinterpret_cast<ContextNode*>(place(section.sampling.contexts, 8, 4));
        contexts[1].module = 1;
        contexts[1].offset = 0x1234;
        contexts[2].parent = 1;
        contexts[2].kind = ContextKind::python;
        contexts[2].module = 1;
        contexts[2].offset = std::uint64_t{7} << 32U | 41;
        contexts[2].samples.store(2);
        contexts[2].cpu_ns.store(20'000'000);
        contexts[3].parent = 2;
        contexts[3].kind = ContextKind::lost;
        auto* samples = reinterpret_cast<Sample*>(place(section.sampling.ring, 4, 0));
        samples[0].ticks.store(3000);
        samples[1].ticks.store(2000);
        for (int i = 0; i < 2; ++i) {
            samples[i].context.store(2);
            samples[i].thread.store(1);
            samples[i].cpu_ns.store(10'000'000);
        }
        section.sampling.samples.store(3);  // of which one isn't whole
        section.sampling.by.store(SampledBy::thread_cpu_timer);
        section.sampling.period_ns.store(10'000'000);
        auto* sampled = reinterpret_cast<SampledThread*>(place(section.sampling.threads, 4, 1));
        sampled[0].samples.store(2);
        sampled[0].thread_id.store(77);
        auto* loaded = reinterpret_cast<ModuleEntry*>(place(section.sampling.modules, 2, 2));
        std::strcpy(loaded[1].path.data(), "/bin/app");
        constexpr char texts[] = "\0a.py\0\0f\tf";
        std::memcpy(place(section.sampling.texts, 64, sizeof texts), texts, sizeof texts);
        auto* accounts = reinterpret_cast<AccountedGap*>(place(section.sampling.accounts, 4, 0));
        accounts[0].ticks.store(2800);
        accounts[0].begin_ticks.store(1800);
        accounts[0].since_ticks.store(1600);
        accounts[0].ran_ns.store(150);
        accounts[0].waited_ns.store(200);
        accounts[0].thread.store(1);
        accounts[0].io.store(3);
        section.sampling.accounted_gaps.store(2);  // of which one isn't whole
        // Two threads, in which "a" has begun 3 and 4 times, in one of them with "b" in it.
        auto* regions = reinterpret_cast<RegionNode*>(place(section.regions.nodes, 8, 7));
        const auto region = [&](int at, std::uint32_t parent, RegionKind kind, std::uint64_t name,
                                std::uint64_t calls) {
            regions[at].parent = parent;
            regions[at].kind = kind;
            regions[at].offset = name;
            regions[at].calls.store(calls);
            regions[at].ticks.store(1000 * calls);
        };
        region(1, 0, RegionKind::thread, 1, 0);
        region(2, 1, RegionKind::named, 1, 3);
        region(3, 0, RegionKind::thread, 2, 0);
        region(4, 3, RegionKind::named, 1, 4);
        region(5, 4, RegionKind::named, 3, 1);
        regions[5].open_since.store(2000);
        region(6, 3, RegionKind::function, 0x1234, 1);
        regions[6].module = 1;
        auto* of_regions = reinterpret_cast<ModuleEntry*>(place(section.regions.modules, 2, 2));
        std::strcpy(of_regions[1].path.data(), "/bin/app");
        constexpr char region_names[] = "\0a\0b";
        std::memcpy(place(section.regions.texts, 64, sizeof region_names), region_names, sizeof region_names);
        auto* adapters = reinterpret_cast<AdapterEntry*>(place(section.adapters.adapters, 4, 2));
        std::strcpy(adapters[0].name.data(), "eth0");
        std::strcpy(adapters[1].name.data(), "mlx5_0:1");
        adapters[1].is_infiniband = 1;
        auto* readings = reinterpret_cast<AdapterReading*>(place(section.adapters.readings, 8, 4));
        for (std::uint64_t i = 0; i < 4; ++i) {
            readings[i].ticks.store(i < 2 ? 1000 : 3000);
            readings[i].sent_bytes.store(100 * i);
        }
        auto* threads = reinterpret_cast<ThreadEntry*>(place(section.threads, 4, 1));
        threads[0].recorded.store(6);
        threads[0].requests.store(1);
        threads[0].ring_capacity = 4;
        threads[0].thread_id = 77;
        threads[0].open.ticks.store(2000);
        threads[0].open.function.store(1);
        threads[0].open.communicator.store(1);
        threads[0].open.peer.store(2);
        section.records_calls = 1;
        auto* ring = reinterpret_cast<Record*>(place(section.ring, 4, 0));
        for (std::uint64_t i = 2; i < 6; ++i) {
            Record& record = ring[i % 4];
            record.begin_ticks = 1000 + 100 * i;
            record.duration = packed_duration(20);
            record.function = i == 4 ? 1 : 0;
            record.is_request = i == 4 ? 1 : 0;
            record.communicator = 1;
            record.plan = i == 5 ? 1 : 0;
            record.tag = static_cast<std::int32_t>(i);
            record.bytes_and_peer = 8U << 24U | (i == 4 ? any_peer : 2U);
        }
        auto* handles = reinterpret_cast<Shared<std::uint64_t>*>(place(section.request_handles, 8, 0));
        handles[3].store(77);
        section.request_sets[0].store(1);
        auto* requests = reinterpret_cast<RequestEntry*>(place(section.requests, 8, 0));
        requests[3].ticks.store(2000);
        requests[3].function = 1;
        requests[3].communicator = 1;
        requests[3].peer = 6;
        requests[3].waited_by.store(1);
        auto* plans = reinterpret_cast<PlanEntry*>(place(section.plans, 4, 2));
        std::strcpy(plans[1].function.data(), "bcast");
        std::strcpy(plans[1].algorithm.data(), "by_topology");
        plans[1].bound_ns = 500;
        plans[1].calls.store(3);
        plans[1].send_count = 1;
        auto* sends = reinterpret_cast<PlanSend*>(place(section.sends, 4, 1));
        sends[0] = {5, 0, 2, 80};
        auto* peers = reinterpret_cast<PeerEntry*>(place(section.peers, 4, 4));
        peers[0].rank = -1;
        peers[1].rank = -2;
        peers[2].rank = 6;
        peers[2].sent[0].messages.store(2);
        peers[2].sent[0].bytes.store(900);
        peers[2].sent[2].messages.store(1);
        peers[2].sent[2].bytes.store(70);
        peers[3].rank = 7;  // whom nothing was sent to yet
        section.one_sided_calls.store(5);
    }

    std::vector<char>& bytes() { return bytes_; }

    std::string write() const {
        std::string path = testing::TempDir() + "/recording-" + std::to_string(getpid()) + ".palmette";
        std::ofstream(path, std::ios::binary).write(bytes_.data(), static_cast<std::streamsize>(bytes_.size()));
        return path;
    }

  private:
    std::vector<char> bytes_;
};

TEST(Recording, has_one_clock_for_all_processes_of_a_node) {
    // Both processes read the same counter; each one's own readings of the other clock are a few microseconds off, and
    // the time of day was set by an hour between their starts.
    std::vector<char> both = RecordedFile().bytes();
    const std::vector<char> one = both;
    both.insert(both.end(), one.begin() + page_bytes, one.end());
    auto& file = *reinterpret_cast<FileHeader*>(both.data());
    file.end.store(both.size());
    auto& other = *reinterpret_cast<SectionHeader*>(both.data() + one.size());
    other.first.monotonic_ns.store(2'000'007'000);
    other.node_offset_ns.store(3'603'000'000'000);
    other.last.ticks.store(2900);
    other.last.monotonic_ns.store(2'000'003'000);
    RecordedFile written;
    written.bytes() = both;
    const std::string path = written.write();
    const Recording found = Recording::read(path, true);
    ASSERT_EQ(found.processes.size(), 2U);
    EXPECT_EQ(found.processes[1].begin_real_ns, found.processes[0].begin_real_ns);
    EXPECT_EQ(found.processes[1].open[0].begin_real_ns, 5'000'000'500);
    EXPECT_DOUBLE_EQ(found.processes[1].tick_s, 0.5e-9);
    const auto first = Recording::calls_of(path, 0);
    const auto second = Recording::calls_of(path, 1);
    ASSERT_EQ(first.size(), second.size());
    for (std::size_t i = 0; i < first.size(); ++i) EXPECT_EQ(first[i].begin_real_ns, second[i].begin_real_ns);
    // A damaged one isn't taken for the others'.
    reinterpret_cast<SectionHeader*>(written.bytes().data() + one.size())->last.ticks.store(std::uint64_t{1} << 63U);
    EXPECT_EQ(Recording::read(written.write(), true).processes[0].begin_real_ns, 5'000'000'000);
    EXPECT_DOUBLE_EQ(Recording::read(written.write(), true).processes[0].tick_s, 0.5e-9);
}

TEST(Recording, is_read_while_its_process_runs) {
    const Recording found = Recording::read(RecordedFile().write(), true);
    EXPECT_EQ(found.host, "node7");
    ASSERT_EQ(found.processes.size(), 1U);
    const ProcessInfo& process = found.processes[0];
    EXPECT_EQ(process.pid, 4711);
    EXPECT_EQ(process.rank, 3);
    EXPECT_DOUBLE_EQ(process.tick_s, 0.5e-9);
    ASSERT_EQ(process.aggregates.size(), 1U);
    EXPECT_EQ(process.aggregates[0].function, "MPI_Bcast");
    EXPECT_EQ(process.aggregates[0].calls, 10U);
    EXPECT_EQ(process.aggregates[0].bytes, 80U);
    EXPECT_DOUBLE_EQ(process.aggregates[0].seconds, 1e-6);
    ASSERT_EQ(process.paths.size(), 2U);
    ASSERT_EQ(process.paths[1].size(), 1U);
    EXPECT_EQ(process.paths[1][0].module, "/bin/app");
    EXPECT_EQ(process.paths[1][0].build_id, "ab0c");
    EXPECT_EQ(process.paths[1][0].offset, 0x1234U);
    ASSERT_EQ(process.open.size(), 1U);
    EXPECT_EQ(process.open[0].function, "MPI_Recv");
    EXPECT_EQ(process.open[0].peer, 2);
    EXPECT_EQ(process.open[0].begin_real_ns, 5'000'000'500);
    EXPECT_EQ(process.calls, 5U);
    EXPECT_EQ(process.requests, 1U);
    EXPECT_EQ(process.dropped, 2U);
    ASSERT_EQ(process.outstanding.size(), 1U);
    EXPECT_EQ(process.outstanding[0].function, "MPI_Recv");
    EXPECT_EQ(process.outstanding[0].peer, 6);
    EXPECT_EQ(process.outstanding[0].waited_by, process.open[0].thread);
    ASSERT_EQ(process.plans.size(), 2U);
    EXPECT_EQ(process.plans[1].algorithm, "by_topology");
    EXPECT_DOUBLE_EQ(process.plans[1].bound_s, 5e-7);
    ASSERT_EQ(process.plans[1].sends.size(), 1U);
    EXPECT_EQ(process.plans[1].sends[0].peer, 5);
    EXPECT_EQ(process.plans[1].sends[0].bytes, 240U) << "of three calls";
}

TEST(Recording, holds_the_last_calls_one_by_one) {
    const auto calls = Recording::calls_of(RecordedFile().write(), 0);
    ASSERT_EQ(calls.size(), 4U);
    EXPECT_EQ(calls[0].begin_real_ns, 5'000'000'100);
    EXPECT_DOUBLE_EQ(calls[0].seconds, 1e-8);
    EXPECT_EQ(calls[0].function, "MPI_Bcast");
    EXPECT_EQ(calls[0].instance, 2U);
    EXPECT_EQ(calls[0].peer, 2) << "its root";
    EXPECT_EQ(calls[0].bytes, 8U);
    EXPECT_TRUE(calls[2].is_request);
    EXPECT_EQ(calls[2].peer, -2);
    EXPECT_EQ(calls[2].tag, 4);
    EXPECT_EQ(calls[3].plan, 1U);
    EXPECT_TRUE(Recording::calls_of(RecordedFile().write(), 1).empty());
}

TEST(Recording, holds_samples_and_the_tree_of_their_stacks) {
    RecordedFile recorded;
    const std::string path = recorded.write();
    const Recording found = Recording::read(path, true);
    const ProcessInfo& process = found.processes[0];
    EXPECT_EQ(process.sampling.by, SampledBy::thread_cpu_timer);
    EXPECT_DOUBLE_EQ(process.sampling.period_s, 0.01);
    EXPECT_EQ(process.sampling.samples, 3U);
    ASSERT_EQ(process.sampling.threads.size(), 1U);
    EXPECT_EQ(process.sampling.threads[0].calls_as, 1U) << "the thread of that id";
    const auto contexts = Recording::contexts_of(path, 0);
    ASSERT_EQ(contexts.size(), 4U);
    EXPECT_EQ(contexts[1].module, "/bin/app");
    EXPECT_EQ(contexts[1].offset, 0x1234U);
    EXPECT_EQ(contexts[2].parent, 1U);
    EXPECT_EQ(contexts[2].kind, ContextKind::python);
    EXPECT_EQ(contexts[2].module, "a.py");
    EXPECT_EQ(contexts[2].function, "f\\x09f");
    EXPECT_EQ(contexts[2].line, 41U);
    EXPECT_EQ(contexts[2].samples, 2U);
    EXPECT_DOUBLE_EQ(contexts[2].cpu_s, 0.02);
    EXPECT_EQ(contexts[3].kind, ContextKind::lost);
    const SampleColumns samples = Recording::samples_of(path, 0);
    EXPECT_EQ(samples.real_ns, (std::vector<std::int64_t>{5'000'000'500, 5'000'001'000})) << "whole ones, by time";
    EXPECT_EQ(samples.context, (std::vector<std::uint32_t>{2, 2}));
    EXPECT_EQ(samples.thread, (std::vector<std::uint32_t>{1, 1}));
    EXPECT_DOUBLE_EQ(samples.cpu_s[0], 0.01);
    EXPECT_TRUE(Recording::samples_of(path, 1).real_ns.empty());

    auto* const section = recorded.bytes().data() + page_bytes;
    const auto& header = *reinterpret_cast<SectionHeader*>(section);
    reinterpret_cast<ContextNode*>(section + header.sampling.contexts.offset)[3].parent = 3;
    EXPECT_THAT(error_of([&] { Recording::contexts_of(recorded.write(), 0); }), HasSubstr("damaged"));
}

TEST(Recording, tells_why_a_thread_was_off_the_processor_between_two_calls) {
    TraceFile file;
    RecordedFile recorded;
    file.path = recorded.write();
    EXPECT_TRUE(read_trace({file}).processes[0].threads[0].off.empty()) << "without samples";
    const auto off_of = [&] {
        file.path = recorded.write();
        return read_trace({file}, true).processes[0].threads[0].off;
    };
    auto* const section = recorded.bytes().data() + page_bytes;
    const auto& header = *reinterpret_cast<SectionHeader*>(section);
    auto& account = *reinterpret_cast<AccountedGap*>(section + header.sampling.accounts.offset);
    auto off = off_of();
    ASSERT_EQ(off.size(), 1U) << "whole ones";
    EXPECT_EQ(off[0].at_ns, 5'000'000'900);
    // 500 ns after 100 in which it ran.
    EXPECT_NEAR(off[0].off.put_aside_s, 200e-9, 1e-15);
    EXPECT_NEAR(off[0].off.io_s, 250e-9, 1e-15);
    EXPECT_EQ(off[0].off.asleep_s, 0);
    account.io.store(0);
    off = off_of();
    EXPECT_NEAR(off[0].off.asleep_s, 250e-9, 1e-15);
    EXPECT_EQ(off[0].off.io_s, 0);
    account.waited_ns.store(10'000);
    account.ran_ns.store(700);
    off = off_of();
    EXPECT_EQ(off[0].off.put_aside_s, 0) << "it can't be more than the stretch has";
    EXPECT_EQ(off[0].off.asleep_s, 0);
    account.thread.store(9);
    EXPECT_TRUE(off_of().empty()) << "there is no such thread";
}

TEST(Recording, puts_the_regions_of_all_threads_together) {
    RecordedFile recorded;
    const ProcessInfo process = Recording::read(recorded.write(), true).processes[0];
    ASSERT_EQ(process.regions.size(), 4U);
    EXPECT_EQ(process.regions[1].name, "a");
    EXPECT_EQ(process.regions[1].calls, 7U);
    EXPECT_EQ(process.regions[1].parent, 0U);
    EXPECT_DOUBLE_EQ(process.regions[1].seconds, 7 * 0.5e-6);
    EXPECT_EQ(process.regions[2].name, "b");
    EXPECT_EQ(process.regions[2].parent, 1U);
    EXPECT_EQ(process.regions[2].open, 1U);
    EXPECT_DOUBLE_EQ(process.regions[2].seconds, 2 * 0.5e-6) << "up to the process's last moment";
    EXPECT_EQ(process.regions[3].kind, RegionKind::function);
    EXPECT_EQ(process.regions[3].module, "/bin/app");
    EXPECT_EQ(process.regions[3].offset, 0x1234U);

    auto* const section = recorded.bytes().data() + page_bytes;
    const auto& header = *reinterpret_cast<SectionHeader*>(section);
    reinterpret_cast<RegionNode*>(section + header.regions.nodes.offset)[4].parent = 4;
    EXPECT_THAT(error_of([&] { Recording::read(recorded.write(), true); }), HasSubstr("damaged"));
}

TEST(Recording, has_the_counters_of_its_nodes_adapters) {
    const ProcessInfo process = Recording::read(RecordedFile().write(), true).processes[0];
    ASSERT_EQ(process.adapters.size(), 2U);
    EXPECT_EQ(process.adapters[0].name, "eth0");
    EXPECT_EQ(process.adapters[0].sent_bytes, (std::vector<std::uint64_t>{0, 200}));
    EXPECT_TRUE(process.adapters[1].is_infiniband);
    EXPECT_EQ(process.adapters[1].sent_bytes, (std::vector<std::uint64_t>{100, 300}));
    EXPECT_EQ(process.adapters[1].real_ns, (std::vector<std::int64_t>{5'000'000'000, 5'000'001'000}));
}

TEST(Recording, leaves_calls_of_a_freed_communicator_to_none_when_its_place_has_become_anothers) {
    RecordedFile recorded;
    auto* const section = recorded.bytes().data() + page_bytes;
    const auto& header = *reinterpret_cast<SectionHeader*>(section);
    auto* const communicators = reinterpret_cast<CommunicatorEntry*>(section + header.communicators.offset);
    communicators[1].since_ticks.store(1400);  // of the calls at 1200, 1300, 1400 and 1500
    const std::string path = recorded.write();
    const Recording found = Recording::read(path, true);
    EXPECT_EQ(found.processes[0].reused, 1U);
    std::vector<int> on;
    for (const CallInfo& call : Recording::calls_of(path, 0)) on.push_back(call.communicator);
    EXPECT_EQ(on, (std::vector<int>{0, 0, 1, 1}));
    TraceFile file;
    file.path = path;
    const Trace trace = read_trace({file});
    std::vector<std::uint32_t> also;
    trace.processes[0].threads[0].for_each([&](const Event& event) { also.push_back(event.communicator); });
    EXPECT_EQ(also, (std::vector<std::uint32_t>{0, 0, 1, 1}));
}

TEST(Recording, says_what_was_sent_to_whom) {
    const ProcessInfo process = Recording::read(RecordedFile().write(), true).processes[0];
    ASSERT_EQ(process.peers.size(), 1U);
    EXPECT_EQ(process.peers[0].rank, 6);
    EXPECT_EQ(process.peers[0].messages, 2U);
    EXPECT_EQ(process.peers[0].message_bytes, 900U);
    EXPECT_EQ(process.peers[0].neighbour_blocks, 0U);
    EXPECT_EQ(process.peers[0].exchange_bytes, 70U);
    EXPECT_EQ(process.one_sided, 5U);
}

TEST(Recording, knows_collectives_by_their_names) {
    for (const char* name : {"MPI_Bcast", "MPI_Ibcast", "MPI_Alltoallw_init_c", "MPI_Iscan", "MPI_Neighbor_allgatherv",
                             "MPI_Ineighbor_alltoallw", "MPI_Reduce_scatter_block", "MPI_Ireduce_scatter_c"})
        EXPECT_TRUE(is_collective(kind_of(name))) << name;
    for (const char* name : {"MPI_Send", "MPI_Isend", "MPI_Comm_split", "MPI_Reduce_local", "MPI_File_iread_all"})
        EXPECT_FALSE(is_collective(kind_of(name))) << name;
}

TEST(Recording, passes_over_a_process_that_died_before_it_wrote) {
    RecordedFile recorded;
    std::memset(recorded.bytes().data() + page_bytes, 0, sizeof(SectionHeader::magic));
    EXPECT_TRUE(Recording::read(recorded.write(), true).processes.empty());
}

TEST(Recording, says_what_is_no_recording) {
    const std::string missing = testing::TempDir() + "/nowhere.palmette";
    EXPECT_THAT(error_of([&] { Recording::read(missing, true); }), HasSubstr("No such file"));
    RecordedFile recorded;
    recorded.bytes()[0] = 'X';
    EXPECT_THAT(error_of([&] { Recording::read(recorded.write(), true); }), HasSubstr("is no recording"));
    RecordedFile newer;
    reinterpret_cast<FileHeader*>(newer.bytes().data())->version = 99;
    EXPECT_THAT(error_of([&] { Recording::read(newer.write(), true); }), HasSubstr("version 99"));
}

TEST(Recording, of_damaged_files_is_refused_or_read_and_never_leaves_the_file) {
    std::mt19937 random(41);
    int refused = 0;
    for (int i = 0; i < 1000; ++i) {
        RecordedFile recorded;
        for (int changes = 0; changes < 4; ++changes) {
            const std::size_t at = random() % (2 * page_bytes);
            recorded.bytes()[at] = static_cast<char>(random());
        }
        if (i % 10 == 0) recorded.bytes().resize(random() % recorded.bytes().size());
        const std::string path = recorded.write();
        try {
            (void)Recording::read(path, true);
            (void)Recording::calls_of(path, 0);
        } catch (const base::Error&) {
            ++refused;
        }
    }
    EXPECT_GT(refused, 60);
    EXPECT_LT(refused, 950);
}

}  // namespace
}  // namespace palmette::trace
