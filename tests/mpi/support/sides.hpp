// The two sides of a collective that moves data: which blocks a rank sends and receives, where they lie and what they
// hold. What rank s has for rank t is the same on all ranks without a message, so each knows what must arrive.
#pragma once

#include <mpi.h>

#include <algorithm>
#include <deque>
#include <string>
#include <vector>

#include "buffer.hpp"
#include "layouts.hpp"
#include "rng.hpp"

namespace test {

/// A block: `count` items of a layout, the first at byte `at`; its contents go from `source` to `target`.
struct Part {
    int source = 0, target = 0;
    const Layout* layout = nullptr;
    int count = 0;
    MPI_Aint at = 0;
};

class Side {
  public:
    /// No blocks: a side that this rank doesn't have.
    Side() = default;
    Side(const Side&) = delete;
    Side& operator=(const Side&) = delete;
    Side(Side&&) = default;
    Side& operator=(Side&&) = default;

    Layout& add_layout(Layout layout) {
        layouts_.push_back(std::move(layout));
        return layouts_.back();
    }

    /// Blocks one behind the other, equally long.
    void place_evenly(std::vector<Part> parts, int units) {
        parts_ = std::move(parts);
        MPI_Aint item = 0;
        for (Part& part : parts_) {
            part.layout = &layouts_.front();
            part.count = items(*part.layout, units);
            part.at = item * part.layout->extent();
            item += part.count;
        }
    }

    /// Blocks of one type in any order, with gaps.
    void place(Rng& rng, std::vector<Part> parts, const std::vector<int>& units) {
        begin_placing(rng, std::move(parts));
        int item = 0;
        for (const std::size_t i : order_) {
            Part& part = parts_[i];
            part.layout = &layouts_.front();
            if (gaps_) item += rng.below(3);
            part.count = items(*part.layout, units[i]);
            part.at = item * part.layout->extent();
            displs_[i] = item;
            item += part.count;
        }
        list();
    }

    /// Blocks that have any of the types each, with displacements in bytes.
    void place_by_bytes(Rng& rng, std::vector<Part> parts, const std::vector<int>& units) {
        begin_placing(rng, std::move(parts));
        MPI_Aint free = 0;
        for (const std::size_t i : order_) {
            Part& part = parts_[i];
            part.layout = &layouts_[static_cast<std::size_t>(rng.below(static_cast<int>(layouts_.size())))];
            part.count = items(*part.layout, units[i]);
            if (gaps_) free += 8 * rng.below(9);
            if (part.count > 0) {
                part.at = (free - part.layout->begin(0) + 15) / 16 * 16;
                free = part.at + part.layout->end(part.count - 1);
            }
            displs_[i] = static_cast<int>(part.at);
        }
        list();
    }

    bool empty() const { return parts_.empty(); }
    const std::vector<Part>& parts() const { return parts_; }
    const int* counts() const { return counts_.data(); }
    const int* displs() const { return displs_.data(); }
    const MPI_Datatype* types() const { return types_.data(); }

    Buffer buffer(Rng& rng) const {
        MPI_Aint begin = 0;
        MPI_Aint end = 0;
        for (const Part& part : parts_) {
            if (part.count == 0) continue;
            begin = std::min(begin, part.at + part.layout->begin(0));
            end = std::max(end, part.at + part.layout->end(part.count - 1));
        }
        return Buffer(rng, begin, end);
    }

    std::string text() const {
        if (parts_.empty()) return "none";
        std::string out;
        for (const Part& part : parts_) {
            if (out.size() > 600) return out + " ...";
            out += (out.empty() ? "" : ", ") + std::to_string(part.count) + " " + part.layout->name() + " at " +
                   std::to_string(part.at);
        }
        return out;
    }

  private:
    static int items(const Layout& layout, int units) { return layout.units() == 0 ? 3 : units / layout.units(); }

    void begin_placing(Rng& rng, std::vector<Part> parts) {
        parts_ = std::move(parts);
        displs_.resize(parts_.size());
        for (std::size_t i = 0; i < parts_.size(); ++i) order_.push_back(i);
        if (rng.one_in(2)) rng.shuffle(order_);
        gaps_ = rng.one_in(2);
    }
    void list() {
        for (const Part& part : parts_) {
            counts_.push_back(part.count);
            types_.push_back(part.layout->type());
        }
    }

    std::deque<Layout> layouts_;  // they stay where they are
    std::vector<Part> parts_;
    std::vector<std::size_t> order_;
    bool gaps_ = false;
    std::vector<int> counts_, displs_;
    std::vector<MPI_Datatype> types_;
};

/// Writes what `source` has for `target` into a block. `bytes`: the data of a unit.
inline void write_part(Buffer& buffer, const Part& part, Rng contents, int unit_bytes, std::vector<char>& scratch) {
    const int bytes = part.count * part.layout->units() * unit_bytes;
    if (bytes == 0) return;
    scratch.resize(static_cast<std::size_t>(bytes));
    contents.fill(scratch.data(), scratch.size());
    int position = 0;
    PMPI_Unpack(scratch.data(), bytes, &position, buffer.address() + part.at, part.count, part.layout->type(),
                MPI_COMM_SELF);
}

}  // namespace test
