#include <link.h>
#include <pthread.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "palmette/device/place.hpp"

namespace palmette::device {

constinit HostMemory host_memory;
constinit thread_local HostMemory::Stack HostMemory::stack_;

namespace {

struct Data {
    std::uintptr_t begin = 0, bytes = 0;
};

/// The first object is the program.
int program_data(dl_phdr_info* info, std::size_t, void* argument) {
    auto& data = *static_cast<Data*>(argument);
    for (int i = 0; i < info->dlpi_phnum; ++i) {
        const auto& part = info->dlpi_phdr[i];
        if (part.p_type == PT_LOAD && (part.p_flags & PF_W) && part.p_memsz > data.bytes)
            data = {info->dlpi_addr + part.p_vaddr, part.p_memsz};
    }
    return 1;
}

/// Where the kernel has the heap begin; the highest address where there is none.
std::uintptr_t heap_begin() {
    std::FILE* const maps = std::fopen("/proc/self/maps", "re");
    unsigned long long begin = ~0ULL;
    char line[512];
    while (maps && std::fgets(line, sizeof line, maps))
        if (std::strstr(line, "[heap]")) {
            std::sscanf(line, "%llx-", &begin);
            break;
        }
    if (maps) std::fclose(maps);
    return begin;
}

}  // namespace

void HostMemory::learn() {
    Data data;
    dl_iterate_phdr(program_data, &data);
    data_bytes_.store(0, std::memory_order_relaxed);
    data_.store(data.begin, std::memory_order_relaxed);
    data_bytes_.store(data.bytes, std::memory_order_relaxed);
    heap_.store(heap_begin(), std::memory_order_relaxed);
}

void HostMemory::learn_stack() {
    stack_ = {0, 0};
    pthread_attr_t attributes;
    if (pthread_getattr_np(pthread_self(), &attributes) != 0) return;
    void* begin = nullptr;
    std::size_t bytes = 0;
    // The main thread's is as long as the limit, which may be none: the kernel maps nothing else in the last 128 MiB.
    constexpr std::size_t most = std::size_t{128} << 20;
    if (pthread_attr_getstack(&attributes, &begin, &bytes) == 0) {
        const std::uintptr_t end = reinterpret_cast<std::uintptr_t>(begin) + bytes;
        stack_ = {end - std::min(bytes, most), end};
    }
    pthread_attr_destroy(&attributes);
}

}  // namespace palmette::device
