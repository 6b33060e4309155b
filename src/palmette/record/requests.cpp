#include "palmette/record/requests.hpp"

namespace palmette::record {

trace::RequestEntry* RequestTable::claim(MPI_Request request) {
    const std::uint32_t first = set_of(key(request));
    for (std::uint32_t distance = 0; distance < farthest; ++distance) {
        const std::uint32_t at = (first + distance) % sets * ways;
        for (std::uint32_t way = 0; way < ways; ++way) {
            trace::Shared<std::uint64_t>& handle = handles_[at + way];
            std::uint64_t none = 0;
            if (handle.load(std::memory_order_relaxed) != none) continue;
            if (!concurrent_)
                handle.store(claimed, std::memory_order_relaxed);
            else if (!handle.compare_exchange_strong(none, claimed, std::memory_order_acq_rel))
                continue;
            const std::uint32_t set = at / ways;
            const std::uint64_t bit = std::uint64_t{1} << set % 64;
            if ((used_[set / 64].load(std::memory_order_relaxed) & bit) == 0)
                used_[set / 64].fetch_or(bit, std::memory_order_relaxed);
            std::uint32_t reach = reach_.load(std::memory_order_relaxed);
            while (reach < distance && !reach_.compare_exchange_weak(reach, distance, std::memory_order_relaxed)) {
            }
            return entries_ + at + way;
        }
    }
    return nullptr;
}

trace::RequestEntry* RequestTable::move(trace::RequestEntry* entry, MPI_Request request) {
    trace::RequestEntry* const to = claim(request);
    if (to) {
        const auto copy = [](auto& into, const auto& from) {
            into.store(from.load(std::memory_order_relaxed), std::memory_order_relaxed);
        };
        copy(to->ticks, entry->ticks);
        copy(to->waited_by, entry->waited_by);
        copy(to->cancelled, entry->cancelled);
        to->bytes = entry->bytes;
        to->instance = entry->instance;
        to->path = entry->path;
        to->function = entry->function;
        to->communicator = entry->communicator;
        to->peer = entry->peer;
        to->tag = entry->tag;
        to->persistent = entry->persistent;
        to->plan = entry->plan;
        to->maker = entry->maker;
        to->made_record = entry->made_record;
        if (std::unique_ptr<PersistentSend>* const all = sendings_.load(std::memory_order_acquire))
            all[to - entries_] = std::move(all[entry - entries_]);
        publish(to, request);
    }
    remove(entry);
    return to;
}

void RequestTable::keep_sending(const trace::RequestEntry* entry, std::unique_ptr<PersistentSend> sending) {
    std::unique_ptr<PersistentSend>* all = sendings_.load(std::memory_order_acquire);
    if (!all) {
        if (!sending) return;
        // Never destroyed, as the recorder; of two threads that come first at the same time one's is used.
        auto* const made = new std::unique_ptr<PersistentSend>[capacity];
        if (sendings_.compare_exchange_strong(all, made, std::memory_order_acq_rel))
            all = made;
        else
            delete[] made;
    }
    all[entry - entries_] = std::move(sending);
}

std::uint64_t RequestTable::clear() {
    std::uint64_t count = 0;
    for (std::uint32_t i = 0; i < capacity; ++i) {
        const std::uint64_t handle = handles_[i].load(std::memory_order_acquire);
        if (handle == 0 || handle == claimed) continue;
        if (entries_[i].ticks.exchange(0, std::memory_order_relaxed) != 0) ++count;
        if (entries_[i].persistent == trace::Persistent::no) handles_[i].store(0, std::memory_order_release);
    }
    return count;
}

}  // namespace palmette::record
