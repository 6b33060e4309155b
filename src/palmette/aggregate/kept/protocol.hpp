// What members keep of a group's last operations, so that none of them has to agree with the others that all have the
// result: state machines without I/O, which tests explore exhaustively (docs/decisions/0037).
//
//   member      contributes to operation n, waits for its result, keeps it, goes on
//   a failure   it freezes: from now on it takes no result of the service's, and contributes nothing to it. If it has
//               contributed to n and lacks the result, it asks the arbiter, which is member 0's
//   the arbiter asks all members, which freezes them. One that has the result of n gives it; where nobody has it,
//               hosts combine the contributions, which all still have or have yet to make
//
// Whatever is lost, a member that waits for a verdict asks again and again, and that alone brings all else again: the
// questions, their answers, and verdicts. Nobody else needs a clock, or could be kept from what its clock is for.
//
// Operations are numbered from 1, the same on all members. All of them are allreduces, so that a result contains
// something of every member: who has that of n + 1 knows that all have contributed to it, hence have that of n. So each
// keeps one result and one contribution.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace palmette::aggregate::kept {

/// What members tell each other. Each word may be lost, repeated or overtaken.
struct Word {
    enum class Kind : std::uint8_t {
        ask,       ///< to the arbiter: the sender lacks this operation's result, and has frozen
        question,  ///< from the arbiter: do you have it?
        has,       ///< answers: here it is
        lacks,     ///< contributed to it, and will never get the result from the service
        absent,    ///< hasn't contributed, and never will
        result,    ///< verdicts: here it is
        hosts      ///< nobody has it, or ever will: it is for the hosts
    };
    Kind kind = Kind::ask;
    std::uint64_t operation = 0;
    std::string data;  ///< payload of `has` and `result`

    friend auto operator<=>(const Word&, const Word&) = default;
    friend bool operator==(const Word&, const Word&) = default;
};
constexpr std::uint8_t kinds_of_words = 7;

/// A member's part.
class Keeper {
  public:
    /// Before it contributes to the next operation. False: frozen, so that it must not, and the operation is for the
    /// hosts; nobody needs to be asked.
    bool contribute() noexcept;
    /// The service's result of the operation that was contributed to. False: frozen, so that it doesn't count.
    bool keep(std::string_view result);
    /// The result of the next or current operation by other means: a verdict, or hosts.
    void settle(std::string_view result);
    void freeze() noexcept { frozen_ = true; }
    /// Answers the arbiter's question, and freezes. Nothing where this member has a later operation's result: the
    /// question has been overtaken.
    /// overtaken.
    std::optional<Word> answer(std::uint64_t operation);

    bool frozen() const { return frozen_; }
    /// The number of the last operation whose result it has.
    std::uint64_t held() const { return held_; }
    /// Whether it has contributed to the operation after that one.
    bool contributed() const { return contributed_ > held_; }

    friend auto operator<=>(const Keeper&, const Keeper&) = default;
    friend bool operator==(const Keeper&, const Keeper&) = default;

  private:
    std::uint64_t contributed_ = 0;
    std::uint64_t held_ = 0;
    bool frozen_ = false;
    std::string result_;  ///< result of operation `held_`
};

/// Decides for all members what becomes of an operation whose result some of them lack. Its memory and messages grow
/// with the members; nothing happens here before a failure.
class Arbiter {
  public:
    struct Outgoing {
        std::uint32_t member;
        Word word;
    };

    explicit Arbiter(std::uint32_t members) : members_(members) {}

    /// An `ask` or an answer; appends what is to be sent. Another kind of word, or one that comes too late, does
    /// nothing. Has no timer: a member that asks again has questions without an answer asked again, once for all that
    /// ask at about the same time.
    void hear(std::uint32_t member, const Word& word, std::vector<Outgoing>& out);

    friend auto operator<=>(const Arbiter&, const Arbiter&) = default;
    friend bool operator==(const Arbiter&, const Arbiter&) = default;

  private:
    struct Open {
        std::uint64_t operation;
        std::vector<bool> waiting;  ///< members that have asked
        std::vector<bool> since;    ///< members that have asked since questions were sent last
        std::vector<bool> lacks;
        friend auto operator<=>(const Open&, const Open&) = default;
        friend bool operator==(const Open&, const Open&) = default;
    };

    std::optional<Word> verdict_of(std::uint64_t operation) const;
    void ask(Open& open, std::vector<Outgoing>& out) const;
    void close(std::uint64_t operation, std::vector<Outgoing>& out);

    std::uint32_t members_;
    std::vector<Open> open_;        ///< at most two: members are at most one operation apart
    std::uint64_t hosts_from_ = 0;  ///< the first operation for the hosts; 0: none yet
    std::uint64_t found_ = 0;       ///< the last operation of which some member had the result
    std::string result_;            ///< result of operation `found_`
};

}  // namespace palmette::aggregate::kept
