// All that can happen to three members that keep results, explored exhaustively over the state machines that production
// runs: the service dies between any two of its frames, connections end, words are lost, repeated and overtaken,
// members are late or wait for each other elsewhere.
//
// What has been sent may come at any later time, again and again: what can go wrong where words are late, doubled or
// lost can go wrong there, too. That nobody waits for ever is looked at the other way round: in each state that is
// reached all words on the way are lost, and still all members must be able to get all results, by the words alone that
// those who wait send again. More words on the way only add ways on, so that this is the worst of all losses. Time has
// no place here, since the only clock is that of a waiting member, which nothing sets back.
//
// The service's frames have no state of their own: once all have
// contributed, a member may get its result at any time, also after the service has died, or may find the connection's
// end instead.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <compare>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "palmette/aggregate/kept/protocol.hpp"

namespace palmette::aggregate::kept {
namespace {

constexpr std::uint8_t members = 3;
using Kind = Word::Kind;

std::string right_result(std::uint64_t operation) { return std::string(1, static_cast<char>('a' + operation)); }

/// Where a member's program stands.
enum class At : std::uint8_t { outside, waits, asks, with_hosts };

template <class SomeKeeper>
struct OneMember {
    SomeKeeper keeper;
    At at = At::outside;
    std::uint8_t contributed = 0;  ///< frames that it has sent to the service
    std::uint8_t with_hosts = 0;   ///< the last operation that it has given to hosts
    bool left = false;
    friend auto operator<=>(const OneMember&, const OneMember&) = default;
};

/// What has been sent by whom to whom, sorted: five characters each.
class MessagesInFlight {
  public:
    struct One {
        std::uint8_t from, to;
        Word word;
    };
    void add(std::uint8_t from, std::uint8_t to, const Word& word) {
        std::string one;
        for (const auto value :
             {from, to, static_cast<std::uint8_t>(word.kind), static_cast<std::uint8_t>(word.operation)})
            one += static_cast<char>(value);
        one += word.data.empty() ? ' ' : word.data.front();
        std::size_t at = 0;
        for (; at < text_.size(); at += size)
            if (const int order = text_.compare(at, size, one); order >= 0) {
                if (order == 0) return;
                break;
            }
        text_.insert(at, one);
    }
    std::size_t count() const { return text_.size() / size; }
    One at(std::size_t index) const {
        const char* const one = text_.data() + index * size;
        const auto number = [&](int i) { return static_cast<std::uint8_t>(one[i]); };
        return {number(0),
                number(1),
                {static_cast<Kind>(number(2)), number(3), one[4] == ' ' ? "" : std::string(1, one[4])}};
    }
    friend auto operator<=>(const MessagesInFlight&, const MessagesInFlight&) = default;

  private:
    static constexpr std::size_t size = 5;
    std::string text_;
};

/// A state but for the words on the way.
template <class SomeKeeper, class SomeArbiter>
struct Core {
    std::array<OneMember<SomeKeeper>, members> all;
    SomeArbiter arbiter{members};
    bool dead = false;  ///< the service has ended the group, or has died
    bool left() const { return std::ranges::any_of(all, &OneMember<SomeKeeper>::left); }
    friend auto operator<=>(const Core&, const Core&) = default;
};

template <class SomeKeeper, class SomeArbiter>
struct State : Core<SomeKeeper, SomeArbiter> {
    MessagesInFlight words;
    friend auto operator<=>(const State&, const State&) = default;
};

struct Exploration {
    std::size_t states = 0, ends = 0;
    bool given = false, for_hosts = false;  ///< whether there were verdicts of each kind
    std::string wrong;
};

/// Pairs of members: after each operation the program makes the first one wait until the second one has the result.
using Waits = std::vector<std::pair<std::uint8_t, std::uint8_t>>;

template <class SomeKeeper, class SomeArbiter>
class Explorer {
  public:
    Explorer(std::uint8_t operations, Waits waits) : operations_(operations), waits_(std::move(waits)) {}

    Exploration run() {
        const std::set<Its> known = reach({}, [](const Its&) { return true; });
        Exploration out = found_;
        out.states = known.size();
        out.ends = static_cast<std::size_t>(std::ranges::count_if(known, [&](const Its& one) { return is_end(one); }));
        if (out.wrong.empty() && !all_can_end(known)) out.wrong = "somebody waits for ever";
        return out;
    }

  private:
    using Its = State<SomeKeeper, SomeArbiter>;
    using ItsCore = Core<SomeKeeper, SomeArbiter>;
    using Member = OneMember<SomeKeeper>;

    /// All states that can be reached from this one through states that `through` lets pass.
    template <class Through>
    std::set<Its> reach(const Its& from, Through through) {
        std::set<Its> known{from};
        std::vector<const Its*> open{&*known.begin()};
        while (!open.empty() && found_.wrong.empty()) {
            const Its& state = *open.back();
            open.pop_back();
            next_.clear();
            expand(state);
            for (Its& to : next_) {
                const auto [it, fresh] = known.insert(std::move(to));
                if (fresh && through(*it)) open.push_back(&*it);
            }
        }
        return known;
    }

    bool is_end(const ItsCore& core) const {
        return std::ranges::all_of(core.all, [&](const Member& one) { return one.keeper.held() == operations_; });
    }

    /// Whether, from each of these states, all members get all results though all words on the way are lost; at each
    /// step of that, too. Nobody may have to wait for the service's death, but where a member has left, which ends it.
    bool all_can_end(const std::set<Its>& states) {
        std::map<ItsCore, std::uint32_t> cores;
        for (const Its& one : states) cores.try_emplace(one, static_cast<std::uint32_t>(cores.size()));
        std::vector<std::vector<std::uint32_t>> before(cores.size());
        std::vector<bool> ends(cores.size());
        std::vector<std::uint32_t> open;
        for (const auto& [core, number] : cores) {
            if (is_end(core)) open.push_back(number);
            for (const ItsCore& to : reach({core, {}}, [&](const ItsCore& one) { return one == core; }))
                if (to != core && (to.dead == core.dead || core.left())) before[cores.at(to)].push_back(number);
        }
        std::size_t count = 0;
        while (!open.empty()) {
            const std::uint32_t one = open.back();
            open.pop_back();
            if (ends[one]) continue;
            ends[one] = true;
            ++count;
            open.insert(open.end(), before[one].begin(), before[one].end());
        }
        return count == cores.size();
    }

    /// The operation that a member is in, or comes to next.
    static std::uint8_t next(const Member& member) { return static_cast<std::uint8_t>(member.keeper.held() + 1); }

    void check(bool fine, const char* what) {
        if (!fine && found_.wrong.empty()) found_.wrong = what;
    }

    template <class Change>
    void go(const Its& from, Change change) {
        Its to = from;
        change(to);
        next_.push_back(std::move(to));
    }

    static void lose(Its& state, std::uint8_t m) {
        Member& member = state.all[m];
        member.keeper.freeze();
        member.left = true;
        member.at = At::asks;
    }

    void expand(const Its& state) {
        for (const Member& given : state.all)
            for (const Member& has : state.all)
                check(given.at != At::with_hosts || has.keeper.held() < given.with_hosts ||
                          has.with_hosts >= given.with_hosts,
                      "hosts make what a member has");
        for (std::uint8_t m = 0; m < members; ++m) move_member(state, m);
        for (std::size_t i = 0; i < state.words.count(); ++i) hear(state, state.words.at(i));
        if (!state.dead) go(state, [](Its& to) { to.dead = true; });
    }

    bool may_begin(const Its& state, std::uint8_t m) const {
        return next(state.all[m]) <= operations_ && std::ranges::all_of(waits_, [&](const auto& pair) {
                   return pair.first != m || state.all[pair.second].keeper.held() >= state.all[m].keeper.held();
               });
    }

    void move_member(const Its& state, std::uint8_t m) {
        const Member& member = state.all[m];
        if (member.at == At::outside && may_begin(state, m))
            go(state, [&](Its& to) {
                Member& one = to.all[m];
                if (one.keeper.contribute()) {
                    ++one.contributed;
                    one.at = At::waits;
                } else {
                    one.with_hosts = next(one);
                    one.at = At::with_hosts;
                }
            });
        const auto contributed = [&](const Member& other) { return other.contributed >= next(member); };
        if (member.at == At::waits && std::ranges::all_of(state.all, contributed))
            go(state, [&](Its& to) {
                Member& one = to.all[m];
                if (one.keeper.keep(right_result(next(one))))
                    one.at = At::outside;
                else
                    lose(to, m);
            });
        if (member.at == At::waits && (state.dead || member.keeper.frozen())) go(state, [&](Its& to) { lose(to, m); });
        if (member.at == At::asks) go(state, [&](Its& to) { to.words.add(m, 0, {Kind::ask, next(member), {}}); });
        const auto gives = [&](const Member& other) { return other.with_hosts >= member.with_hosts; };
        if (member.at == At::with_hosts && std::ranges::all_of(state.all, gives))
            go(state, [&](Its& to) {
                Member& one = to.all[m];
                one.keeper.settle(right_result(next(one)));
                one.at = At::outside;
            });
    }

    void hear(const Its& state, const MessagesInFlight::One& sent) {
        const Word& word = sent.word;
        if (word.kind != Kind::question && word.kind != Kind::result && word.kind != Kind::hosts) {
            go(state, [&](Its& to) {
                std::vector<Arbiter::Outgoing> out;
                to.arbiter.hear(sent.from, word, out);
                for (const auto& [member, told] : out) {
                    found_.given = found_.given || told.kind == Kind::result;
                    found_.for_hosts = found_.for_hosts || told.kind == Kind::hosts;
                    to.words.add(0, static_cast<std::uint8_t>(member), told);
                }
            });
            return;
        }
        go(state, [&](Its& to) {
            Member& member = to.all[sent.to];
            if (word.kind == Kind::question) {
                if (const auto answer = member.keeper.answer(word.operation)) to.words.add(sent.to, 0, *answer);
            } else if (member.at == At::asks && word.operation == next(member)) {
                if (word.kind == Kind::hosts) {
                    member.with_hosts = next(member);
                    member.at = At::with_hosts;
                    return;
                }
                check(word.data == right_result(word.operation), "a result of another operation");
                member.keeper.settle(word.data);
                member.at = At::outside;
            }
        });
    }

    std::uint8_t operations_;
    Waits waits_;
    std::vector<Its> next_;
    Exploration found_;
};

/// Goes on to take the service's results after it has said that it has none.
struct ForgetfulKeeper : Keeper {
    std::optional<Word> answer(std::uint64_t operation) {
        Keeper asked = *this;
        return asked.answer(operation);
    }
    friend auto operator<=>(const ForgetfulKeeper&, const ForgetfulKeeper&) = default;
};

/// Leaves an operation to hosts as soon as one member lacks its result.
struct HastyArbiter : Arbiter {
    using Arbiter::Arbiter;
    void hear(std::uint32_t member, Word word, std::vector<Outgoing>& out) {
        if (word.kind == Kind::lacks) word.kind = Kind::absent;
        Arbiter::hear(member, word, out);
    }
    friend auto operator<=>(const HastyArbiter&, const HastyArbiter&) = default;
};

/// Asks its questions once. That is also what repeats them by a clock that each word it hears sets back, as long as
/// somebody asks.
struct PatientArbiter : Arbiter {
    using Arbiter::Arbiter;
    void hear(std::uint32_t member, const Word& word, std::vector<Outgoing>& out) {
        Arbiter::hear(member, word, out);
        if (out.empty() || out.front().word.kind != Kind::question) return;
        if (!asked.insert(word.operation).second) out.clear();
    }
    std::set<std::uint64_t> asked;
    friend auto operator<=>(const PatientArbiter&, const PatientArbiter&) = default;
};

/// Combines the next operation by hosts only where a verdict says so, as if it had contributed.
struct StubbornKeeper : Keeper {
    bool contribute() noexcept {
        Keeper::contribute();
        return true;
    }
    friend auto operator<=>(const StubbornKeeper&, const StubbornKeeper&) = default;
};

TEST(Kept, every_member_gets_every_result_whatever_fails) {
    for (const Waits& waits : {Waits{}, Waits{{0, 1}, {1, 2}, {2, 0}}}) {
        const Exploration found = Explorer<Keeper, Arbiter>(2, waits).run();
        std::printf("%zu states, %zu of them ends\n", found.states, found.ends);
        EXPECT_EQ(found.wrong, "");
        EXPECT_GT(found.ends, 100U);
        EXPECT_TRUE(found.given);
        EXPECT_TRUE(found.for_hosts);
    }
}

TEST(Kept, the_exploration_finds_what_is_broken_on_purpose) {
    EXPECT_EQ((Explorer<ForgetfulKeeper, Arbiter>(1, {}).run().wrong), "hosts make what a member has");
    EXPECT_EQ((Explorer<Keeper, HastyArbiter>(1, {}).run().wrong), "hosts make what a member has");
    EXPECT_EQ((Explorer<StubbornKeeper, Arbiter>(1, {}).run().wrong), "hosts make what a member has");
    EXPECT_EQ((Explorer<Keeper, PatientArbiter>(1, {}).run().wrong), "somebody waits for ever");
}

TEST(Kept, the_arbiter_asks_again_only_for_what_has_no_answer_and_forgets_what_is_decided) {
    Arbiter arbiter(3);
    std::vector<Arbiter::Outgoing> out;
    arbiter.hear(1, {Kind::ask, 5, {}}, out);
    EXPECT_EQ(out.size(), 3U);
    arbiter.hear(1, {Kind::lacks, 5, {}}, out);
    out.clear();
    // Members that ask for the first time have nothing asked again, and of the others one each time.
    arbiter.hear(2, {Kind::ask, 5, {}}, out);
    EXPECT_TRUE(out.empty());
    arbiter.hear(1, {Kind::ask, 5, {}}, out);
    arbiter.hear(2, {Kind::ask, 5, {}}, out);
    ASSERT_EQ(out.size(), 2U);
    EXPECT_EQ(out[0].member, 0U);
    EXPECT_EQ(out[1].member, 2U);
    out.clear();
    arbiter.hear(2, {Kind::has, 5, "x"}, out);
    ASSERT_EQ(out.size(), 2U);
    EXPECT_EQ(out[0].member, 1U);
    EXPECT_EQ(out[1].member, 2U);
    EXPECT_EQ(out[0].word, (Word{Kind::result, 5, "x"}));
    EXPECT_EQ(out[1].word, out[0].word);
    // Who isn't a member, or comes too late, changes nothing.
    const Arbiter before = arbiter;
    out.clear();
    arbiter.hear(3, {Kind::ask, 6, {}}, out);
    arbiter.hear(0, {Kind::lacks, 5, {}}, out);
    arbiter.hear(0, {Kind::ask, 4, {}}, out);
    arbiter.hear(0, {Kind::ask, 0, {}}, out);
    EXPECT_TRUE(out.empty());
    EXPECT_EQ(arbiter, before);
}

}  // namespace
}  // namespace palmette::aggregate::kept
