#include "palmette/record/texts.hpp"

#include <cstring>

#include "palmette/base/hash.hpp"
#include "palmette/record/zeroed.hpp"

namespace palmette::record {

void Texts::attach(trace::SectionHeader& section) {
    table_ = &section.sampling.texts;
    texts_ = trace::entries<char>(section, *table_);
    index_ = zeroed<std::atomic<std::uint32_t>>(slots);
    table_->count.store(1, std::memory_order_release);
}

bool Texts::is(std::uint32_t number, std::string_view text) const {
    return number < table_->capacity && text.size() < table_->capacity - number &&
           std::memcmp(texts_ + number, text.data(), text.size()) == 0 && texts_[number + text.size()] == 0;
}

std::uint32_t Texts::number_of(std::string_view text) {
    std::uint64_t hash = base::fnv1a_start;
    base::hash_append(hash, text);
    std::uint32_t made = 0;
    for (std::size_t tries = 0; tries < most_tries; ++tries) {
        std::atomic<std::uint32_t>& slot = index_[(hash + tries) % slots];
        std::uint32_t held = slot.load(std::memory_order_acquire);
        if (held == 0) {
            if (made == 0) {
                std::uint32_t at = table_->count.load(std::memory_order_relaxed);
                do {
                    if (text.size() >= table_->capacity - at) return 0;
                } while (!table_->count.compare_exchange_weak(at, at + static_cast<std::uint32_t>(text.size()) + 1));
                std::memcpy(texts_ + at, text.data(), text.size());
                made = at;
            }
            if (slot.compare_exchange_strong(held, made, std::memory_order_acq_rel)) return made;
        }
        if (is(held, text)) return held;
    }
    return 0;
}

}  // namespace palmette::record
