// A leader's side of the aggregation service by daemons. No threads, no memory allocated after construction; nothing is
// copied but the ends of a reduce-scatter's part.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "palmette/aggregate/client/link.hpp"
#include "palmette/aggregate/service.hpp"
#include "palmette/base/byte_buffer.hpp"

namespace palmette::aggregate {

class Client final : public Service, private Traffic {
  public:
    static constexpr std::uint32_t most_outstanding = 64;

    Client(Membership membership, Timeouts timeouts);

    void start() noexcept { link_.start(); }
    void progress() noexcept override { link_.progress(); }
    /// Waits for events on the connection, at most that long (-1: until progress() is due), and makes progress.
    void wait(int most_ms) noexcept;
    void leave() noexcept override { link_.leave(); }

    bool ready() const override { return link_.state() == Link::State::ready; }
    bool failed() const override { return link_.state() == Link::State::failed; }
    Reason reason() const override { return link_.reason(); }
    std::string_view detail() const override { return link_.detail(); }
    const Link& link() const { return link_; }

    /// Whether post() would take such an operation, as far as the daemon's profile is known.
    Reason supports(const Operation& operation) const noexcept;
    Reason post(const Operation& operation, std::uint32_t& number) noexcept override;
    bool done(std::uint32_t number) const override { return static_cast<std::int32_t>(finished_ - number) > 0; }
    bool idle() const { return finished_ == posted_; }
    Watch watch() const override { return {link_.fd(), link_.events(), link_.due_ms()}; }

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
