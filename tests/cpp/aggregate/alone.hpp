// Messages out of band of a group of switches with one member.
#pragma once

#include <cstring>

#include "palmette/aggregate/sharp/out_of_band.hpp"

namespace palmette::aggregate::sharp {

/// Out-of-band exchange of a single process.
class SoleMember final : public OutOfBand {
  public:
    int bcast(void*, int, int) noexcept override { return 0; }
    int barrier() noexcept override { return 0; }
    int gather(int, const void* from, void* to, int bytes) noexcept override {
        std::memcpy(to, from, static_cast<std::size_t>(bytes));
        return 0;
    }
    void abort(Reason reason) noexcept override { told = reason; }
    AbortNotice aborted() noexcept override { return by; }
    bool settle() noexcept override {
        by = {};
        return true;
    }
    void refuse() noexcept override {}
    void idle() noexcept override {}

    Reason told = Reason::none;
    AbortNotice by;
};

}  // namespace palmette::aggregate::sharp
