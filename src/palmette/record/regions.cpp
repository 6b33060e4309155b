#include "palmette/record/regions.hpp"

#include <link.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <new>

#include "palmette/base/hash.hpp"
#include "palmette/record/build_ids.hpp"
#include "palmette/record/call_paths.hpp"
#include "palmette/record/clock.hpp"
#include "palmette/record/node_file.hpp"
#include "palmette/record/recorder.hpp"

namespace palmette::record {

#if defined(PALMETTE_ABI_SMPI)
constinit thread_local RegionThread* region_thread = nullptr;
#else
constinit thread_local RegionThread* region_thread __attribute__((tls_model("initial-exec"))) = nullptr;
#endif
constinit std::atomic<Regions*> regions{nullptr};
constinit std::atomic<bool> regions_are_off{false};

namespace {

using trace::RegionKind;
using trace::RegionNode;

/// Nested ones that have places of their own.
constexpr std::uint32_t deepest_node = 256;
constexpr std::uint32_t index_slots = 2 * Regions::most_nodes;
constexpr std::uint64_t clock_interval = std::uint64_t{1} << 28U;  ///< ticks: about a tenth of a second

/// Zeros that take no memory before they are written to; null where there are none. Not by the program's own malloc,
/// which may be instrumented.
template <class Value>
Value* lazily_zeroed(std::size_t count) {
    void* const memory = mmap(nullptr, count * sizeof(Value), PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return memory == MAP_FAILED ? nullptr : static_cast<Value*>(memory);
}

template <class Value>
void add_to(trace::Shared<Value>& counter, Value value) {
    counter.store(counter.load(std::memory_order_relaxed) + value, std::memory_order_relaxed);
}

/// Whether a text begins as a name does, as far as names are kept.
bool is_named(const char* text, const char* name) {
    for (std::size_t i = 0; i < Regions::longest_name; ++i)
        if (text[i] != name[i] || name[i] == 0) return text[i] == name[i];
    return text[Regions::longest_name] == 0;
}

std::size_t slot_of(const void* what, std::uint32_t parent) {
    const std::uint64_t mixed =
        (reinterpret_cast<std::uintptr_t>(what) ^ std::uint64_t{parent} << 48U) * 0x9E3779B97F4A7C15ULL;
    return static_cast<std::size_t>(mixed >> 32U) % RegionThread::cached;
}

std::uint32_t place_of(std::uint32_t parent, RegionKind kind, std::uint32_t module, std::uint64_t offset) {
    std::uint64_t mixed = (offset ^ std::uint64_t{module} << 40U) * 0x9E3779B97F4A7C15ULL;
    mixed = (mixed ^ mixed >> 29U ^ parent ^ static_cast<std::uint64_t>(kind) << 32U) * 0xBF58476D1CE4E5B9ULL;
    return static_cast<std::uint32_t>(mixed >> 32U) % index_slots;
}

/// While a thread is in here, what a signal handler or an instrumented function of the C library's begins isn't
/// counted.
class BusyGuard {
  public:
    explicit BusyGuard(RegionThread& thread) : thread_(thread) {
        thread_.is_busy = true;
        std::atomic_signal_fence(std::memory_order_seq_cst);
    }
    BusyGuard(const BusyGuard&) = delete;
    BusyGuard& operator=(const BusyGuard&) = delete;
    ~BusyGuard() {
        std::atomic_signal_fence(std::memory_order_seq_cst);
        thread_.is_busy = false;
    }

  private:
    RegionThread& thread_;
};

}  // namespace

Regions::Regions() : header_(&first_header_) {
    choose_clock();
    nodes_.store(lazily_zeroed<RegionNode>(most_nodes));
    texts_ = lazily_zeroed<char>(most_texts);
    modules_ = lazily_zeroed<trace::ModuleEntry>(most_modules);
    index_ = lazily_zeroed<std::uint32_t>(index_slots);
    text_index_ = lazily_zeroed<std::uint32_t>(index_slots);
    if (!nodes_.load() || !texts_ || !modules_ || !index_ || !text_index_) throw std::bad_alloc();
    size(first_header_);
    for (trace::Table* const table : {&first_header_.nodes, &first_header_.modules, &first_header_.texts})
        table->count.store(1);
#if !defined(PALMETTE_ABI_SMPI)
    has_key_ = pthread_key_create(&key_, [](void* thread) {
                   if (Regions* const all = regions.load()) all->leave_thread(*static_cast<RegionThread*>(thread));
               }) == 0;
#endif
}

void Regions::size(trace::RegionsHeader& header) {
    header.nodes.capacity = most_nodes;
    header.modules.capacity = most_modules;
    header.texts.capacity = most_texts;
}

void Regions::attach(trace::SectionHeader& section) {
    const std::lock_guard lock(mutex_);
    trace::RegionsHeader& to = section.regions;
    auto* const nodes = trace::entries<RegionNode>(section, to.nodes);
    auto* const texts = trace::entries<char>(section, to.texts);
    auto* const modules = trace::entries<trace::ModuleEntry>(section, to.modules);
    const std::uint32_t count = header_->nodes.count.load();
    // Counters are of atomic type, and no other one's representation.
    std::memcpy(static_cast<void*>(nodes), nodes_.load(), count * sizeof(RegionNode));
    std::memcpy(texts, texts_, header_->texts.count.load());
    std::memcpy(static_cast<void*>(modules), modules_, header_->modules.count.load() * sizeof(trace::ModuleEntry));
    to.texts.count.store(header_->texts.count.load());
    to.modules.count.store(header_->modules.count.load());
    to.missed.store(header_->missed.load());
    to.cost_milliticks.store(header_->cost_milliticks.load());
    to.nodes.count.store(count, std::memory_order_release);
    texts_ = texts;
    modules_ = modules;
    header_ = &to;
    nodes_.store(nodes, std::memory_order_release);
}

/// Other threads may have counted meanwhile where nobody reads any more: each moves its own counters.
void Regions::follow(RegionThread& thread) {
    const std::lock_guard lock(mutex_);
    RegionNode* const nodes = nodes_.load();
    const std::uint32_t count = header_->nodes.count.load();
    const auto is_own = [&](std::uint32_t node) {
        while (nodes[node].parent != 0) node = nodes[node].parent;
        return node == thread.root;
    };
    for (std::uint32_t i = 1; i < count; ++i) {
        if (!is_own(i)) continue;
        const RegionNode& from = thread.nodes[i];
        using Counter = trace::Shared<std::uint64_t> RegionNode::*;
        for (const Counter counter : {&RegionNode::calls, &RegionNode::ticks, &RegionNode::longest_ticks,
                                      &RegionNode::inner, &RegionNode::open_since})
            (nodes[i].*counter).store((from.*counter).load());
        nodes[i].unclosed.store(from.unclosed.load());
    }
    thread.nodes = nodes;
}

RegionThread* Regions::join() {
    RegionThread* thread = nullptr;
    {
        const std::lock_guard lock(mutex_);
        for (thread = threads_; thread && !thread->is_free; thread = thread->next) continue;
        if (!thread) {
            thread = lazily_zeroed<RegionThread>(1);
            OpenRegion* const open = lazily_zeroed<OpenRegion>(RegionThread::deepest);
            const std::uint32_t root = make(0, RegionKind::thread, 0, header_->nodes.count.load());
            if (!thread || !open || root == 0) return nullptr;
            thread->open = open;
            thread->root = root;
            thread->nodes = nodes_.load();
            thread->next = threads_;
            threads_ = thread;
        }
        thread->is_free = false;
    }
    region_thread = thread;
#if !defined(PALMETTE_ABI_SMPI)
    if (has_key_) pthread_setspecific(key_, thread);
#endif
    if (!has_cost_ && !simulated) {
        has_cost_ = true;
        measure_cost();
    }
    return thread;
}

void Regions::measure_cost() {
    constexpr std::uint64_t batches = 12, pairs = 100;
    const char* const name = "(cost)";
    RegionThread& thread = *region_thread;
    std::uint64_t least = UINT64_MAX;
    for (std::uint64_t batch = 0; batch < batches; ++batch) {
        const std::uint64_t begin_ticks = now();
        for (std::uint64_t i = 0; i < pairs; ++i) {
            begin(name);
            end(name);
        }
        least = std::min(least, now() - begin_ticks);
    }
    header_->cost_milliticks.store(static_cast<std::uint32_t>(least * 1000 / pairs));
    // What has no calls isn't read.
    RegionNode& node = thread.nodes[child(thread, thread.root, RegionKind::named, name)];
    for (trace::Shared<std::uint64_t>* const counter : {&node.calls, &node.ticks, &node.longest_ticks})
        counter->store(0);
}

void Regions::leave_thread(RegionThread& thread) {
    const std::uint64_t at = now();
    if (thread.nodes != nodes_.load(std::memory_order_acquire)) follow(thread);
    while (thread.depth > 0) close(thread, at, true);
    thread.beyond = 0;
    thread.named = 0;
    region_thread = nullptr;
    const std::lock_guard lock(mutex_);
    thread.is_free = true;
}

std::uint32_t Regions::text_of(const char* name) {
    trace::Table& table = header_->texts;
    const std::uint32_t count = table.count.load(std::memory_order_relaxed);
    const std::size_t length = strnlen(name, longest_name);
    std::uint64_t hash = base::fnv1a_start;
    base::hash_append(hash, {name, length});
    std::uint32_t at = static_cast<std::uint32_t>(hash) % index_slots;
    for (; text_index_[at] != 0; at = at + 1 == index_slots ? 0 : at + 1)
        if (is_named(texts_ + text_index_[at], name)) return text_index_[at];
    if (length + 1 > table.capacity - count || text_count_ == index_slots / 2) return 0;
    std::memcpy(texts_ + count, name, length);
    table.count.store(count + static_cast<std::uint32_t>(length) + 1, std::memory_order_release);
    text_index_[at] = count;
    ++text_count_;
    return count;
}

std::uint32_t Regions::module_of(std::uintptr_t address, std::uint64_t& offset) {
    struct Query {
        std::uintptr_t address;
        std::uintptr_t base = 0;
        bool is_found = false;
        trace::ModuleEntry entry{};
    } asked{address};
    dl_iterate_phdr(
        [](dl_phdr_info* info, std::size_t, void* argument) {
            Query& to = *static_cast<Query*>(argument);
            for (int i = 0; i < info->dlpi_phnum; ++i) {
                const ElfW(Phdr) & header = info->dlpi_phdr[i];
                const std::uintptr_t at = info->dlpi_addr + header.p_vaddr;
                if (header.p_type != PT_LOAD || to.address < at || to.address - at >= header.p_memsz) continue;
                to.is_found = true;
                to.base = info->dlpi_addr;
                take_build_id(*info, to.entry);
                if (info->dlpi_name && *info->dlpi_name)
                    put_text(to.entry.path, info->dlpi_name);
                else
                    put_text(to.entry.path, own_path());
                return 1;
            }
            return 0;
        },
        &asked);
    offset = address - asked.base;
    if (!asked.is_found) return 0;
    trace::Table& table = header_->modules;
    const std::uint32_t count = table.count.load(std::memory_order_relaxed);
    for (std::uint32_t i = 1; i < count; ++i)
        if (std::memcmp(&modules_[i], &asked.entry, sizeof asked.entry) == 0) return i;
    if (count >= table.capacity) return 0;
    std::memcpy(&modules_[count], &asked.entry, sizeof asked.entry);
    table.count.store(count + 1, std::memory_order_release);
    return count;
}

std::uint32_t Regions::make(std::uint32_t parent, RegionKind kind, std::uint32_t module, std::uint64_t offset) {
    RegionNode* const nodes = nodes_.load(std::memory_order_relaxed);
    std::uint32_t at = place_of(parent, kind, module, offset);
    for (; index_[at] != 0; at = at + 1 == index_slots ? 0 : at + 1) {
        const RegionNode& held = nodes[index_[at]];
        if (held.parent == parent && held.kind == kind && held.module == module && held.offset == offset)
            return index_[at];
    }
    const std::uint32_t number = header_->nodes.count.load(std::memory_order_relaxed);
    if (number >= header_->nodes.capacity) return 0;
    RegionNode& node = nodes[number];
    node.parent = parent;
    node.kind = kind;
    node.module = module;
    node.offset = offset;
    header_->nodes.count.store(number + 1, std::memory_order_release);
    index_[at] = number;
    return number;
}

std::uint32_t Regions::find_or_make(std::uint32_t parent, RegionKind kind, const void* what) {
    const std::lock_guard lock(mutex_);
    std::uint64_t offset = 0;
    std::uint32_t module = 0;
    if (kind == RegionKind::function) {
        module = module_of(reinterpret_cast<std::uintptr_t>(what), offset);
    } else {
        offset = text_of(static_cast<const char*>(what));
        if (offset == 0) return 0;
    }
    return make(parent, kind, module, offset);
}

std::uint32_t Regions::child(RegionThread& thread, std::uint32_t parent, RegionKind kind, const void* what) {
    if (const std::uint64_t seen = unloads.load(std::memory_order_acquire); seen != thread.unloads) [[unlikely]] {
        thread.unloads = seen;
        for (RegionThread::CacheEntry& one : thread.known) one = {};
    }
    RegionThread::CacheEntry& known = thread.known[slot_of(what, parent)];
    if (known.what == what && known.parent == parent) [[likely]] {
        // Another name may stand there now.
        const RegionNode& node = thread.nodes[known.node];
        if (kind == node.kind &&
            (kind == RegionKind::function || is_named(texts_ + node.offset, static_cast<const char*>(what))))
            return known.node;
    }
    const std::uint32_t found = find_or_make(parent, kind, what);
    if (found != 0) known = {what, parent, found};
    return found;
}

void Regions::push(RegionThread& thread, RegionKind kind, const void* what) {
    if (thread.nodes != nodes_.load(std::memory_order_acquire)) [[unlikely]]
        follow(thread);
    const std::uint32_t parent = thread.depth == 0 ? thread.root : thread.open[thread.depth - 1].node;
    if (thread.depth == RegionThread::deepest) [[unlikely]] {
        ++thread.beyond;
        add_to(thread.nodes[parent].inner, std::uint64_t{1});
        return;
    }
    OpenRegion& open = thread.open[thread.depth++];
    open.what = what;
    open.named = thread.named;
    open.node = parent;
    open.counts = false;
    if (regions_are_off.load(std::memory_order_relaxed)) [[unlikely]] {
        open.what = nullptr;
        return;
    }
    // One that calls itself counts in its own place, and its time once.
    const RegionNode& outer = thread.nodes[parent];
    std::uint32_t node = 0;
    bool is_again = false;
    if (thread.depth > 1 && thread.open[thread.depth - 2].what == what && outer.kind == kind &&
        (kind == RegionKind::function || is_named(texts_ + outer.offset, static_cast<const char*>(what)))) {
        node = parent;
        is_again = true;
    } else if (thread.depth <= deepest_node) {
        node = child(thread, parent, kind, what);
    }
    if (node == 0) [[unlikely]] {
        open.what = nullptr;
        add_to(thread.nodes[parent].inner, std::uint64_t{1});
        return;
    }
    open.node = node;
    RegionNode& inside = thread.nodes[node];
    add_to(inside.calls, std::uint64_t{1});
    if (kind == RegionKind::named) thread.named = node;
    open.counts = !is_again;
    if (is_again) return;
    open.begin = now();
    inside.open_since.store(open.begin, std::memory_order_relaxed);
}

void Regions::close(RegionThread& thread, std::uint64_t at, bool is_left) {
    const OpenRegion& open = thread.open[--thread.depth];
    thread.named = open.named;
    RegionNode& node = thread.nodes[open.node];
    if (is_left && open.what) node.unclosed.store(node.unclosed.load(std::memory_order_relaxed) + 1);
    if (!open.counts) return;
    const std::uint64_t ticks = at > open.begin ? at - open.begin : 0;
    add_to(node.ticks, ticks);
    if (ticks > node.longest_ticks.load(std::memory_order_relaxed))
        node.longest_ticks.store(ticks, std::memory_order_relaxed);
    node.open_since.store(0, std::memory_order_relaxed);
    if (at - thread.updated_ticks > clock_interval) [[unlikely]] {
        // So that a recording tells how far its process got, also where it calls no MPI for long.
        thread.updated_ticks = at;
        if (Recorder* const current = recorder.load(std::memory_order_acquire)) current->update_clock();
    }
}

/// Ends the innermost region that is meant, and with it those inside of it. False: there is none.
template <class IsIt>
bool Regions::pop(RegionThread& thread, IsIt is_it) {
    const std::uint64_t at = now();
    if (thread.nodes != nodes_.load(std::memory_order_acquire)) [[unlikely]]
        follow(thread);
    if (thread.beyond > 0) [[unlikely]] {
        --thread.beyond;
        return true;
    }
    std::uint32_t depth = thread.depth;
    while (depth > 0 && !is_it(thread.open[depth - 1])) --depth;
    if (depth == 0) return false;
    while (thread.depth > depth) close(thread, at, true);
    close(thread, at, false);
    return true;
}

bool Regions::begin(const char* name) {
    if (!name || *name == 0) return false;
    RegionThread* thread = region_thread;
    if (!thread) [[unlikely]]
        thread = join();
    if (!thread || thread->is_busy) [[unlikely]] {
        header_->missed.fetch_add(1, std::memory_order_relaxed);
        return true;
    }
    const BusyGuard busy(*thread);
    push(*thread, RegionKind::named, name);
    return true;
}

bool Regions::end(const char* name) {
    RegionThread* thread = region_thread;
    if (!thread) [[unlikely]]
        thread = join();
    if (!thread || thread->is_busy) [[unlikely]]
        return true;
    const BusyGuard busy(*thread);
    const bool is_ended = pop(*thread, [&](const OpenRegion& open) {
        if (!open.what || (!name && thread->nodes[open.node].kind == RegionKind::named)) return true;
        const RegionNode& node = thread->nodes[open.node];
        return name && node.kind == RegionKind::named && is_named(texts_ + node.offset, name);
    });
    if (is_ended) return true;
    if (!name || *name == 0) name = "(innermost)";
    if (const std::uint32_t node = child(*thread, thread->root, RegionKind::unbegun, name))
        add_to(thread->nodes[node].calls, std::uint64_t{1});
    return false;
}

void Regions::enter(const void* function) {
    RegionThread* thread = region_thread;
    if (!thread) [[unlikely]]
        thread = join();
    if (!thread || thread->is_busy) [[unlikely]] {
        header_->missed.fetch_add(1, std::memory_order_relaxed);
        return;
    }
    const BusyGuard busy(*thread);
    push(*thread, RegionKind::function, function);
}

void Regions::leave(const void* function) {
    RegionThread* const thread = region_thread;
    if (!thread || thread->is_busy) [[unlikely]]
        return;
    const BusyGuard busy(*thread);
    // Of a function that was entered before anything was counted there is nothing to end.
    pop(*thread, [&](const OpenRegion& open) { return !open.what || open.what == function; });
}

std::uint32_t Regions::context_of_samples(Contexts& contexts) const {
    RegionThread* const thread = region_thread;
    if (!thread || thread->named == 0) return 0;
    if (thread->sampled_named == thread->named) return thread->sampled_context;
    constexpr std::size_t most = 64;
    std::array<std::uint64_t, most> found{};
    std::size_t count = 0;
    names(thread->named, [&](std::uint64_t text) {
        if (count < most) found[count++] = text;
    });
    std::uint32_t node = 0;
    while (count > 0) {
        const std::uint32_t next = contexts.child_of(node, {trace::ContextKind::region, 0, found[--count], false});
        if (next == 0) break;
        node = next;
    }
    thread->sampled_named = thread->named;
    thread->sampled_context = node;
    return node;
}

}  // namespace palmette::record
