// Who holds how much of a daemon's resources. A reservation gives back what it holds when it ends.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "palmette/aggregate/daemon/limits.hpp"
#include "palmette/aggregate/messages.hpp"
#include "palmette/aggregate/token.hpp"

namespace palmette::aggregate {

struct Usage {
    std::uint32_t groups = 0;
    std::uint64_t slots = 0;
    std::uint64_t bytes = 0;
};

class Ledger {
  public:
    explicit Ledger(const Limits& limits) : limits_(limits), trees_(limits.trees) {}

    class Reservation {
      public:
        Reservation(Ledger& ledger, std::uint32_t uid, const Shape& shape, std::uint64_t bytes);
        Reservation(const Reservation&) = delete;
        Reservation& operator=(const Reservation&) = delete;
        ~Reservation();

      private:
        Ledger& ledger_;
        std::uint32_t uid_;
        Shape shape_;
        std::uint64_t bytes_;
    };

    /// Takes what a group needs, or says which limit keeps it from that: quota, no_resource, stream_lock.
    std::unique_ptr<Reservation> reserve(const Grant& grant, const Shape& shape, unsigned members, Reason& reason,
                                         Detail& why);

    const Usage& total() const { return total_; }
    const std::map<std::uint32_t, Usage>& users() const { return users_; }
    std::uint32_t streams() const;

  private:
    struct Tree {
        std::uint32_t groups = 0;
        std::uint32_t streams = 0;
    };

    Limits limits_;
    std::vector<Tree> trees_;
    std::map<std::uint32_t, Usage> users_;
    Usage total_;
};

}  // namespace palmette::aggregate
