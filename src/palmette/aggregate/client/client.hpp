// A leader's side of the aggregation service: posts operations, moves them by progress(), and ends with their results
// or with a reason. No threads, no exceptions, no memory allocated after construction; nothing is copied but the ends
// of a reduce-scatter's part.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "palmette/aggregate/client/link.hpp"
#include "palmette/base/byte_buffer.hpp"

namespace palmette::aggregate {

/// One operation as this member takes part in it. Memory stays the caller's until it is done or has failed; `output`
/// is undefined after a failure, so a caller that falls back keeps `input` apart from it.
struct Operation {
    Collective collective = Collective::barrier;
    runtime::Operator op = runtime::Operator::sum;
    runtime::Element element = runtime::Element::byte;
    std::uint16_t root = 0;       ///< any number on which all members agree
    std::uint64_t count = 0;      ///< elements, `count` times their extent in memory
    const void* input = nullptr;  ///< null: contributes nothing (a broadcast's receivers)
    void* output = nullptr;       ///< receives elements [first, first + wanted)
    std::uint64_t first = 0;
    std::uint64_t wanted = 0;

    static Operation allreduce(runtime::Operator op, runtime::Element element, const void* input, void* output,
                               std::uint64_t count);
    /// `output` only counts at the root.
    static Operation reduce(runtime::Operator op, runtime::Element element, const void* input, void* output,
                            std::uint64_t count, std::uint16_t root, bool is_root);
    static Operation bcast(runtime::Element element, void* buffer, std::uint64_t count, std::uint16_t root,
                           bool is_root);
    /// Of `count` elements altogether; `output` receives `wanted` from `first` on.
    static Operation reduce_scatter(runtime::Operator op, runtime::Element element, const void* input, void* output,
                                    std::uint64_t count, std::uint64_t first, std::uint64_t wanted);
};

class Client final : private Traffic {
  public:
    static constexpr std::uint32_t most_outstanding = 64;

    Client(Membership membership, Timeouts timeouts);

    void start() noexcept { link_.start(); }
    void progress() noexcept { link_.progress(); }
    /// Waits for events on the connection, at most that long (-1: until progress() is due), and makes progress.
    void wait(int most_ms) noexcept;
    void leave() noexcept { link_.leave(); }

    bool ready() const { return link_.state() == Link::State::ready; }
    bool failed() const { return link_.state() == Link::State::failed; }
    Reason reason() const { return link_.reason(); }
    std::string_view detail() const { return link_.detail(); }
    const Link& link() const { return link_; }

    /// Whether post() would take such an operation, as far as the daemon's profile is known.
    Reason supports(const Operation& operation) const noexcept;
    /// Reason::none and the operation's number; no_resource while most_outstanding are open; unsupported; or why the
    /// group has failed. All members post the same operations in the same order.
    Reason post(const Operation& operation, std::uint32_t& number) noexcept;
    bool done(std::uint32_t number) const { return static_cast<std::int32_t>(finished_ - number) > 0; }
    bool idle() const { return finished_ == posted_; }

  private:
    /// Where sending or receiving stands: operation and element.
    struct Cursor {
        std::uint32_t operation = 0;
        std::uint64_t offset = 0;
    };

    bool next(Header& header, const char*& payload) noexcept override;
    bool place(const Header& header, char*& payload) noexcept override;
    void arrived(const Header& header) noexcept override;

    const Operation& at(std::uint32_t number) const { return operations_[number % most_outstanding]; }
    std::uint64_t elements_of_chunk(const Cursor& cursor) const;
    Header header_of(const Cursor& cursor) const;
    void step(Cursor& cursor) const;

    std::array<Operation, most_outstanding> operations_{};
    std::uint32_t posted_ = 0;
    std::uint32_t finished_ = 0;
    Cursor sending_;
    Cursor receiving_;
    base::ByteBuffer ends_;  ///< results of which only a part is wanted
    Link link_;
};

}  // namespace palmette::aggregate
