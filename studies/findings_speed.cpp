// Writes a recording as `palmette run --trace` leaves it: RANKS processes in one file, CALLS calls each, of which most
// are collectives with one late rank, some messages between neighbours.
//
//     findings_speed FOLDER RANKS CALLS
#include <sys/mman.h>
#include <fcntl.h>
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
    const std::string path = std::string(argv[1]) + "/node.palmette";
    const int ranks = std::atoi(argv[2]);
    const std::uint64_t calls = std::strtoull(argv[3], nullptr, 10);
    std::uint64_t capacity = 1;
    while (capacity < calls) capacity *= 2;
    const std::uint64_t tables = 16 * page_bytes;
    const std::uint64_t section_bytes = (tables + capacity * sizeof(Record) + page_bytes - 1) / page_bytes * page_bytes;
    const std::uint64_t bytes = page_bytes + section_bytes * static_cast<std::uint64_t>(ranks);
    const int file = open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC, 0644);
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
        section.records_calls = 1;
        section.last.real_ns.store(60'000'000'000);
        section.last.ticks.store(60'000'000'000);
        std::uint64_t page = 2;
        const auto place = [&](Table& table, std::uint32_t size, std::uint32_t count, std::uint64_t offset = 0) {
            table.offset = offset != 0 ? offset : page_bytes * page++;
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
        for (Table* table : {&section.aggregates, &section.paths, &section.frames, &section.modules,
                             &section.request_handles, &section.requests, &section.plans, &section.sends})
            place(*table, 1, 1);
        auto* threads = reinterpret_cast<ThreadEntry*>(place(section.threads, 1, 1));
        threads[0].ring_capacity = static_cast<std::uint32_t>(capacity);
        threads[0].recorded.store(calls);
        auto* ring = reinterpret_cast<Record*>(place(section.ring, static_cast<std::uint32_t>(capacity), 0, tables));
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
