// What carries the operations of one group to what combines them: a daemon (client), or switches (sharp).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "palmette/aggregate/frame.hpp"
#include "palmette/aggregate/reason.hpp"

namespace palmette::aggregate {

/// One operation as this member takes part in it. Memory stays the caller's until it is done or has failed; `output`
/// is undefined after a failure, so a caller that falls back keeps `input` apart from it.
struct Operation {
    Collective collective = Collective::barrier;
    kernels::Operator op = kernels::Operator::sum;
    kernels::Element element = kernels::Element::byte;
    std::uint16_t root = 0;       ///< any number on which all members agree
    std::uint64_t count = 0;      ///< elements, `count` times their extent in memory
    const void* input = nullptr;  ///< null: contributes nothing (a broadcast's receivers)
    void* output = nullptr;       ///< receives elements [first, first + wanted)
    std::uint64_t first = 0;
    std::uint64_t wanted = 0;

    static Operation allreduce(kernels::Operator op, kernels::Element element, const void* input, void* output,
                               std::uint64_t count);
    /// `output` only counts at the root.
    static Operation reduce(kernels::Operator op, kernels::Element element, const void* input, void* output,
                            std::uint64_t count, std::uint16_t root, bool is_root);
    static Operation bcast(kernels::Element element, void* buffer, std::uint64_t count, std::uint16_t root,
                           bool is_root);
    /// A reduce-scatter of `count` elements altogether; `output` receives `wanted` elements from `first` on.
    static Operation reduce_scatter(kernels::Operator op, kernels::Element element, const void* input, void* output,
                                    std::uint64_t count, std::uint64_t first, std::uint64_t wanted);
};

/// Why a group can't be joined; Reason::none: it can.
struct Problem {
    Reason reason = Reason::none;
    std::string detail;
};

/// A member's side of one group: posts operations, moves them by progress(), and ends with their results or with a
/// reason. No exceptions, and no function waits for other members.
class Service {
  public:
    Service() = default;
    Service(const Service&) = delete;
    Service& operator=(const Service&) = delete;
    virtual ~Service() = default;

    virtual void progress() noexcept = 0;
    /// Nothing is written to memory of operations any more, and the other members are told in the service's own way.
    virtual void leave() noexcept = 0;

    /// Whether operations may be posted.
    virtual bool ready() const = 0;
    virtual bool failed() const = 0;
    virtual Reason reason() const = 0;
    virtual std::string_view detail() const = 0;

    /// Reason::none and the operation's number; no_resource while too many are open; unsupported; or why the group has
    /// failed. All members post the same operations in the same order.
    virtual Reason post(const Operation& operation, std::uint32_t& number) noexcept = 0;
    virtual bool done(std::uint32_t number) const = 0;

    /// What a waiting rank does until the next progress(): polls a descriptor (-1: there is none) for at most `due_ms`
    /// (-1: as long as it likes).
    struct Watch {
        int fd = -1;
        short events = 0;
        int due_ms = -1;
    };
    virtual Watch watch() const = 0;
};

}  // namespace palmette::aggregate
