// Requests that are outstanding, in the section, so that others see what a process waits for.
#pragma once

#include <mpi.h>

#include <atomic>
#include <cstdint>
#include <memory>

#include "palmette/record/peers.hpp"
#include "palmette/trace/format.hpp"
#include "palmette/trace/served.hpp"

namespace palmette::record {

/// A hash table of sets of eight. The same handle may stand in it several times: an MPI may give all messages that were
/// sent at once one handle. Safe to use from several threads, each of which uses requests that only it knows.
class RequestTable {
  public:
    static constexpr std::uint32_t ways = 8, sets = 2048, capacity = sets * ways;

    void attach(trace::SectionHeader& section) {
        handles_ = trace::entries<trace::Shared<std::uint64_t>>(section, section.request_handles);
        entries_ = trace::entries<trace::RequestEntry>(section, section.requests);
        used_ = section.request_sets.data();
    }

    /// A place for a request, to be filled and then published under its handle; null: there is none.
    trace::RequestEntry* claim(MPI_Request request);
    void publish(trace::RequestEntry* entry, MPI_Request request) {
        handle_of(entry).store(key(request), std::memory_order_release);
    }
    /// One that no thread waits for, and that thread `waiter` waits for from here on (0: none does); null: it isn't
    /// followed.
    trace::RequestEntry* find(MPI_Request request, std::uint32_t waiter) const {
        const std::uint64_t wanted = key(request);
        const std::uint32_t first = set_of(wanted);
        const std::uint32_t reach = reach_.load(std::memory_order_relaxed);
        for (std::uint32_t distance = 0; distance <= reach; ++distance) {
            const std::uint32_t at = (first + distance) % sets * ways;
            for (std::uint32_t way = 0; way < ways; ++way)
                if (handles_[at + way].load(std::memory_order_acquire) == wanted) {
                    std::uint32_t nobody = 0;
                    trace::Shared<std::uint32_t>& by = entries_[at + way].waited_by;
                    if (by.load(std::memory_order_relaxed) != 0) continue;
                    if (!concurrent_)
                        by.store(waiter, std::memory_order_relaxed);
                    else if (!by.compare_exchange_strong(nobody, waiter, std::memory_order_acq_rel))
                        continue;
                    return entries_ + at + way;
                }
        }
        return nullptr;
    }
    /// The MPI has given a request another handle; its place from then on, null: there is none.
    trace::RequestEntry* move(trace::RequestEntry* entry, MPI_Request request);
    bool is_under(trace::RequestEntry* entry, MPI_Request request) {
        return handle_of(entry).load(std::memory_order_relaxed) == key(request);
    }
    /// What each start of a persistent request sends; null: nothing that is said by the program.
    const PersistentSend* sending(const trace::RequestEntry* entry) const {
        const std::unique_ptr<PersistentSend>* const all = sendings_.load(std::memory_order_acquire);
        return all ? all[entry - entries_].get() : nullptr;
    }
    void keep_sending(const trace::RequestEntry* entry, std::unique_ptr<PersistentSend> sending);
    void remove(trace::RequestEntry* entry) { handle_of(entry).store(0, std::memory_order_release); }
    /// `use(entry)` with each that has been started and isn't complete.
    template <class Use>
    void for_each_started(Use use) {
        for (std::uint32_t i = 0; i < capacity; ++i) {
            if (i % ways == 0 && (used_[i / ways / 64].load(std::memory_order_relaxed) >> i / ways % 64 & 1U) == 0) {
                i += ways - 1;
                continue;
            }
            const std::uint64_t handle = handles_[i].load(std::memory_order_acquire);
            if (handle != 0 && handle != claimed && entries_[i].ticks.load(std::memory_order_relaxed) != 0)
                use(entries_[i]);
        }
    }
    /// Forgets what is outstanding; persistent requests are inactive from then on. How many there were.
    std::uint64_t clear();
    void set_concurrent(bool concurrent) { concurrent_ = concurrent; }

  private:
    static constexpr std::uint32_t farthest = 32;
    static constexpr std::uint64_t claimed = ~std::uint64_t{0};
    static std::uint64_t key(MPI_Request request) { return trace::handle_word(request) + 1; }
    static std::uint32_t set_of(std::uint64_t key) {
        return static_cast<std::uint32_t>(key * 0x9E3779B97F4A7C15ULL >> 32U) % sets;
    }
    trace::Shared<std::uint64_t>& handle_of(trace::RequestEntry* entry) { return handles_[entry - entries_]; }

    trace::Shared<std::uint64_t>* handles_ = nullptr;
    trace::RequestEntry* entries_ = nullptr;
    trace::Shared<std::uint64_t>* used_ = nullptr;
    std::atomic<std::unique_ptr<PersistentSend>*> sendings_{nullptr};  ///< by entry, from the first on that is kept
    bool concurrent_ = true;
    std::atomic<std::uint32_t> reach_{0};  ///< how many sets from its own a handle may be
};

}  // namespace palmette::record
