// Writes a recording as `palmette run --trace` leaves it: RANKS processes in one file, CALLS calls each, of which most
// are collectives with one late rank, some messages between neighbours.
//
//     findings_speed FOLDER RANKS CALLS [SUMS [THREADS SAMPLES CONTEXTS]]
//
// With SUMS each process has as many of them, half as many call paths of eight frames each, a recording of `--profile`
// has 0 calls. With THREADS each process has as many that SAMPLES were taken of each, at equal distances over the
// minute, in a tree of CONTEXTS: 5 % of them differ between processes, half of them are Python's.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>

#include "palmette/trace/format.hpp"

using namespace palmette::trace;

int main(int argc, char** argv) {
    if (argc < 4) return 2;
    const std::string file_name = std::string(argv[1]) + "/node.palmette";
    const int ranks = std::atoi(argv[2]);
    const std::uint64_t calls = std::strtoull(argv[3], nullptr, 10);
    const auto sums = static_cast<std::uint32_t>(argc > 4 ? std::atoi(argv[4]) : 0);
    const auto sampled_threads = static_cast<std::uint32_t>(argc > 5 ? std::atoi(argv[5]) : 0);
    const auto samples = static_cast<std::uint32_t>(argc > 6 ? std::atoi(argv[6]) : 0) * sampled_threads;
    const auto contexts = static_cast<std::uint32_t>(argc > 7 ? std::atoi(argv[7]) : 0);
    const std::uint32_t paths = sums / 2 + 1;
    constexpr std::uint32_t depth = 8;
    std::uint64_t capacity = 1;
    while (capacity < calls) capacity *= 2;
    const auto pages = [](std::uint64_t bytes) { return (bytes + page_bytes - 1) / page_bytes; };
    const std::uint64_t tables = (16 + pages(sums * sizeof(Aggregate)) + pages(paths * sizeof(PathEntry)) +
                                  pages(paths * depth * sizeof(Frame))) *
                                 page_bytes;
    constexpr std::uint64_t name_bytes = 8;
    const std::uint64_t ring_pages = pages(capacity * sizeof(Record));
    const std::uint64_t section_bytes =
        tables + page_bytes * (ring_pages + pages(contexts * sizeof(ContextNode)) + pages(samples * sizeof(Sample)) +
                               pages(sampled_threads * sizeof(SampledThread)) + pages(2 * sizeof(ModuleEntry)) +
                               pages((contexts + 2) * name_bytes));
    const std::uint64_t bytes = page_bytes + section_bytes * static_cast<std::uint64_t>(ranks);
    const int file = open(file_name.c_str(), O_RDWR | O_CREAT | O_TRUNC, 0644);
    if (file < 0 || ftruncate(file, static_cast<off_t>(bytes)) != 0) return 1;
    auto* const memory = static_cast<char*>(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0));
    if (memory == MAP_FAILED) return 1;
    auto& head = *new (memory) FileHeader{};
    head.magic = file_magic;
    head.version = format_version;
    head.header_bytes = page_bytes;
    head.end.store(bytes);
    std::strcpy(head.host.data(), "node");
    const char* const names[] = {"MPI_Allreduce", "MPI_Barrier", "MPI_Send", "MPI_Recv", "MPI_Finalize"};
    for (int rank = 0; rank < ranks; ++rank) {
        char* const base = memory + page_bytes + section_bytes * static_cast<std::uint64_t>(rank);
        auto& section = *new (base) SectionHeader{};
        section.magic = file_magic;
        section.bytes = section_bytes;
        section.rank.store(rank);
        section.size.store(ranks);
        section.state.store(State::finalized);
        section.records_calls = calls > 0 ? 1 : 0;
        section.last.monotonic_ns.store(60'000'000'000);
        section.last.ticks.store(60'000'000'000);
        std::uint64_t page = 2;
        const auto place = [&](Table& table, std::uint32_t size, std::uint32_t count, std::uint64_t offset = 0,
                               std::uint64_t bytes_each = 1) {
            table.offset = offset != 0 ? offset : page_bytes * page;
            if (offset == 0) page += pages(size * bytes_each);
            table.capacity = size;
            table.count.store(count);
            return base + table.offset;
        };
        auto* functions = reinterpret_cast<FunctionName*>(place(section.functions, 5, 5));
        for (int i = 0; i < 5; ++i) std::strcpy(functions[i].name.data(), names[i]);
        auto* communicators = reinterpret_cast<CommunicatorEntry*>(place(section.communicators, 2, 2));
        communicators[1].id = 1;
        communicators[1].rank = rank;
        communicators[1].size = ranks;
        auto* aggregates =
            reinterpret_cast<Aggregate*>(place(section.aggregates, sums + 1, sums + 1, 0, sizeof(Aggregate)));
        for (std::uint32_t i = 1; i <= sums; ++i) {
            const std::uint64_t kind = i % 5;
            const std::uint64_t path = i / 2 % paths;
            const std::uint64_t size_class = i % 7;
            aggregates[i].key.store(
                (kind | size_class << key_size_class | std::uint64_t{1} << key_communicator | path << key_path) + 1);
            aggregates[i].calls.store(1000);
            aggregates[i].bytes.store(1000U << size_class);
            aggregates[i].ticks.store(1'000'000 + static_cast<std::uint64_t>(rank) * 1000);
            aggregates[i].longest_ticks.store(50'000);
            aggregates[i].histogram[6].store(1000);
        }
        auto* path_entries = reinterpret_cast<PathEntry*>(place(section.paths, paths, paths, 0, sizeof(PathEntry)));
        auto* frames = reinterpret_cast<Frame*>(place(section.frames, paths * depth, paths * depth, 0, sizeof(Frame)));
        for (std::uint32_t i = 1; i < paths; ++i) {
            path_entries[i] = {i * depth, depth};
            for (std::uint32_t frame = 0; frame < depth; ++frame)
                frames[i * depth + frame] = {0, 0, 0x1000 + 16 * (frame == 0 ? i : frame)};
        }
        auto* modules = reinterpret_cast<ModuleEntry*>(place(section.modules, 1, 1));
        std::strcpy(modules[0].path.data(), "/bin/sh");
        for (Table* table :
             {&section.request_handles, &section.requests, &section.plans, &section.sends, &section.peers})
            place(*table, 1, 1);
        auto* threads = reinterpret_cast<ThreadEntry*>(place(section.threads, 1, 1));
        threads[0].ring_capacity = static_cast<std::uint32_t>(capacity);
        threads[0].recorded.store(calls);
        auto* ring = reinterpret_cast<Record*>(place(section.ring, static_cast<std::uint32_t>(capacity), 0, tables));
        page = tables / page_bytes + ring_pages;
        auto& sampling = section.sampling;
        auto* const nodes =
            reinterpret_cast<ContextNode*>(place(sampling.contexts, contexts, contexts, 0, sizeof(ContextNode)));
        auto* const sample = reinterpret_cast<Sample*>(place(sampling.ring, samples, 0, 0, sizeof(Sample)));
        auto* const of_threads = reinterpret_cast<SampledThread*>(
            place(sampling.threads, sampled_threads, sampled_threads, 0, sizeof(SampledThread)));
        auto* const sampled_modules =
            reinterpret_cast<ModuleEntry*>(place(sampling.modules, 2, 2, 0, sizeof(ModuleEntry)));
        const auto text_bytes = static_cast<std::uint32_t>((contexts + 2) * name_bytes);
        char* const texts = place(sampling.texts, text_bytes, text_bytes);
        if (contexts > 1) {
            std::strcpy(sampled_modules[1].path.data(), "/bin/sh");
            std::strcpy(texts + name_bytes, "/a.py");
            sampling.by.store(SampledBy::thread_cpu_timer);
            sampling.period_ns.store(10'000'000);
            sampling.samples.store(samples);
        }
        for (std::uint32_t i = 1; i < contexts; ++i) {
            const std::uint32_t number = i + (i % 20 == 7 ? contexts * (1 + static_cast<std::uint32_t>(rank) % 64) : 0);
            nodes[i].parent = i % 16 == 1 ? i / 2 : i - 1;
            if (i % 2 == 0) {
                nodes[i].kind = ContextKind::python;
                nodes[i].module = name_bytes;
                const std::uint64_t name = (i + 1) * name_bytes;
                std::snprintf(texts + name, name_bytes, "f%u", number % 100000);
                nodes[i].offset = name << 32U | (i % 100 + 1);
            } else {
                nodes[i].kind = ContextKind::native;
                nodes[i].module = 1;
                nodes[i].offset = 0x4000 + 4 * number;
            }
        }
        for (std::uint32_t i = 0; i < samples && contexts > 1; ++i) {
            const std::uint32_t thread = i % sampled_threads;
            const std::uint32_t at = 1 + (i * 2654435761U >> 8U) % (contexts - 1);
            sample[i].ticks.store(1 + 60'000'000'000U / samples * i);
            sample[i].context.store(at);
            sample[i].thread.store(thread + 1);
            sample[i].cpu_ns.store(10'000'000);
            nodes[at].samples.fetch_add(1);
            nodes[at].cpu_ns.fetch_add(10'000'000);
            of_threads[thread].samples.fetch_add(1);
            of_threads[thread].cpu_ns.fetch_add(10'000'000);
        }
        for (std::uint32_t i = 0; i < sampled_threads; ++i) of_threads[i].thread_id.store(i);
        std::uint64_t instance = 0;
        for (std::uint64_t i = 0; i < calls; ++i) {
            Record& record = ring[i];
            const std::uint64_t at = i * 1'000'000;
            const bool late = rank == 17 % ranks && i % 10 == 0;
            record.begin_ticks = at + (late ? 500'000 : 1000 * static_cast<std::uint64_t>(rank % 7));
            record.duration = packed_duration(at + 600'000 - record.begin_ticks);
            record.communicator = 1;
            if (i % 5 == 4) {
                const bool sends = rank % 2 == 0;
                record.function = sends ? 2 : 3;
                const int peer = sends ? rank + 1 : rank - 1;
                record.bytes_and_peer = 8U << 24U | (peer < ranks ? static_cast<std::uint32_t>(peer) : no_peer);
                record.tag = 3;
            } else {
                record.function = i % 2;
                record.bytes_and_peer = 8U << 24U | no_peer;
                record.tag = static_cast<std::int32_t>(++instance);
            }
        }
    }
    munmap(memory, bytes);
    close(file);
    return 0;
}
