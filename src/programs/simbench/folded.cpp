#include "folded.h"

#include <smpi/smpi.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <new>
#include <string>
#include <system_error>
#include <vector>

namespace {

constexpr std::size_t least_folded = std::size_t{1} << 20;

bool folding = false;
std::vector<void*> folded;

/// The file that SimGrid maps repeatedly for folded memory, created in /tmp with the first allocation; -1: none found.
int folded_file() {
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", error)) {
        const std::string target = std::filesystem::read_symlink(entry.path(), error).string();
        if (!target.starts_with("/tmp/simgrid-shmalloc-")) continue;
        const std::string name = entry.path().filename().string();
        int file = -1;
        std::from_chars(name.data(), name.data() + name.size(), file);
        return file;
    }
    return -1;
}

/// Replaces that file by one in memory. With /tmp on a disk, the kernel would keep writing back its pages, and walk all
/// of their mappings each time: tens of thousands, so that an all-to-all of 1,024 ranks never finished.
bool keep_in_memory(int file) {
    struct stat status = {};
    const int in_memory = memfd_create("palmette-folded", MFD_CLOEXEC);
    const bool kept = in_memory >= 0 && fstat(file, &status) == 0 && ftruncate(in_memory, status.st_size) == 0 &&
                      dup2(in_memory, file) >= 0;
    if (in_memory >= 0) close(in_memory);
    return kept;
}

/// Once per rank, as each has its own globals; all ranks share one file, so only the first one finds it.
bool begin_folding() {
    if (void* first = SMPI_SHARED_MALLOC(1)) SMPI_SHARED_FREE(first);
    const int file = folded_file();
    return file >= 0 && keep_in_memory(file);
}

}  // namespace

extern "C" void* folded_memory(size_t bytes) {
    [[maybe_unused]] static const bool begun = begin_folding();
    return SMPI_SHARED_MALLOC(std::max<std::size_t>(bytes, 1));
}
extern "C" void free_folded_memory(void* memory) { SMPI_SHARED_FREE(memory); }
extern "C" void fold_scratch(bool fold) { folding = fold; }

// The runtime uses new[] for byte arrays only: scratch and copies of elements, never data with pointers.
void* operator new[](std::size_t bytes) {
    if (!folding || bytes < least_folded) return ::operator new(bytes);
    folded.reserve(folded.size() + 1);
    void* memory = folded_memory(bytes);
    if (!memory) throw std::bad_alloc();
    folded.push_back(memory);
    return memory;
}

void operator delete[](void* memory) noexcept {
    const auto at = std::find(folded.begin(), folded.end(), memory);
    if (at == folded.end()) return ::operator delete(memory);
    folded.erase(at);
    free_folded_memory(memory);
}

void operator delete[](void* memory, std::size_t) noexcept { operator delete[](memory); }
