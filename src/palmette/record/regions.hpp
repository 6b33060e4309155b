// Regions that the program says itself: palmette_region_begin and its end, and functions that the compiler has told to
// call __cyg_profile_func_enter and _exit (-finstrument-functions). Their calls and times are summed in a tree in the
// section, one for each thread, which alone writes to it. Whatever is begun is counted: there is no buffer to run over.
#pragma once

#include <pthread.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "palmette/record/contexts.hpp"
#include "palmette/trace/format.hpp"

namespace palmette::record {

/// A region that has begun and not ended.
struct OpenRegion {
    const void* what = nullptr;  ///< address of its function or its name; null: ended by whatever ends
    std::uint64_t begin = 0;
    std::uint32_t node = 0;   ///< node of the region; for one without a place of its own the node around it
    std::uint32_t named = 0;  ///< the innermost named one outside of it
    bool counts = false;      ///< its time is added to its node: not within itself, nor without a place
};

/// What a thread needs for its regions. Made at its first one.
struct RegionThread {
    static constexpr std::uint32_t deepest = 1U << 16U, cached = 512;
    struct CacheEntry {
        const void* what;
        std::uint32_t parent, node;
    };
    bool is_busy;         ///< in the midst of a begin or an end, which a signal handler may interrupt
    std::uint32_t depth;  ///< number of entries in `open`
    std::uint32_t root;   ///< node
    std::uint32_t named;  ///< the innermost named region that it is in: node; 0: none
    trace::RegionNode* nodes;
    std::uint64_t beyond;   ///< open regions that found `open` full
    std::uint64_t unloads;  ///< when `known` was right
    std::uint64_t updated_ticks;
    RegionThread* next;  ///< list of all threads
    bool is_free;        ///< its thread has ended: another one may go on with it
    OpenRegion* open;
    std::array<CacheEntry, cached> known;
    std::uint32_t sampled_named, sampled_context;  ///< the last that a sample was taken in, and its context
};

#if defined(PALMETTE_ABI_SMPI)
extern constinit thread_local RegionThread* region_thread;
#else
extern constinit thread_local RegionThread* region_thread __attribute__((tls_model("initial-exec")));
#endif
class Regions;
/// The process's regions; null where nothing is recorded, and in forked children.
extern constinit std::atomic<Regions*> regions;
/// Whether the program has switched recording off by MPI_Pcontrol(0): what begins then isn't counted.
extern constinit std::atomic<bool> regions_are_off;

class Regions {
  public:
    static constexpr std::uint32_t most_nodes = 1U << 16U, most_texts = 1U << 20U, most_modules = 256;
    /// Names are cut there.
    static constexpr std::size_t longest_name = 255;

    /// Starts in memory of its own, until there is a section.
    Regions();
    /// Makes the tables' capacities.
    static void size(trace::RegionsHeader& header);
    /// The section takes over what was counted before there was one.
    void attach(trace::SectionHeader& section);

    /// False: wrong, and told in the recording.
    bool begin(const char* name);
    /// `name` null: whichever is the innermost.
    bool end(const char* name);
    void enter(const void* function);
    void leave(const void* function);

    /// Gives the names of a named region and those around it, the innermost first. Async-signal-safe.
    template <class Give>
    void names(std::uint32_t named, Give give) const {
        const trace::RegionNode* const nodes = nodes_.load(std::memory_order_acquire);
        for (std::uint32_t node = named; node != 0; node = nodes[node].parent)
            if (nodes[node].kind == trace::RegionKind::named) give(nodes[node].offset);
    }
    const char* text(std::uint64_t at) const { return texts_ + at; }
    /// The context that samples of the calling thread lie in. Async-signal-safe.
    std::uint32_t context_of_samples(Contexts& contexts) const;
    void leave_thread(RegionThread& thread);

  private:
    RegionThread* join();
    /// Times some that nobody begins, and forgets them. 0.1 ms.
    void measure_cost();
    void follow(RegionThread& thread);
    std::uint32_t child(RegionThread& thread, std::uint32_t parent, trace::RegionKind kind, const void* what);
    std::uint32_t find_or_make(std::uint32_t parent, trace::RegionKind kind, const void* what);
    std::uint32_t make(std::uint32_t parent, trace::RegionKind kind, std::uint32_t module, std::uint64_t offset);
    std::uint32_t text_of(const char* name);
    std::uint32_t module_of(std::uintptr_t address, std::uint64_t& offset);
    void push(RegionThread& thread, trace::RegionKind kind, const void* what);
    template <class IsIt>
    bool pop(RegionThread& thread, IsIt is_it);
    static void close(RegionThread& thread, std::uint64_t at, bool is_left);

    std::mutex mutex_;
    std::atomic<trace::RegionNode*> nodes_{nullptr};
    char* texts_ = nullptr;
    trace::ModuleEntry* modules_ = nullptr;
    trace::RegionsHeader* header_ = nullptr;
    trace::RegionsHeader first_header_{};  ///< until there is a section
    std::uint32_t* text_index_ = nullptr;  ///< where texts are, likewise
    std::uint32_t text_count_ = 0;
    std::uint32_t* index_ = nullptr;  ///< index of nodes by open addressing; 0: free
    RegionThread* threads_ = nullptr;
    bool has_cost_ = false;
#if !defined(PALMETTE_ABI_SMPI)
    pthread_key_t key_ = 0;
    bool has_key_ = false;
#endif
};

/// The number of the innermost named region that the calling thread is in; 0: none.
inline std::uint32_t named_region() {
    const RegionThread* const thread = region_thread;
    return thread ? thread->named : 0;
}

}  // namespace palmette::record
