#include "palmette/runtime/check/check_verdict.hpp"

#include <algorithm>
#include <cstddef>
#include <map>
#include <type_traits>

#include "palmette/base/text.hpp"

namespace palmette::runtime {
namespace {

using base::cat;
using Fault = CheckedCall::Fault;

/// Compares one argument by majority: the ranks outside of the largest group are wrong; on a tie the group with the
/// lowest rank is right.
template <class Value, class Text>
std::optional<std::string> compare(const std::vector<CheckedCall>& calls, Value value, Text text,
                                   std::vector<std::size_t>& wrong, const char* verb = "pass") {
    std::map<decltype(value(calls[0])), std::vector<std::size_t>> by_value;
    for (std::size_t rank = 0; rank < calls.size(); ++rank) by_value[value(calls[rank])].push_back(rank);
    // An empty text is one that nobody knows.
    if constexpr (std::is_same_v<decltype(value(calls[0])), std::string>) by_value.erase("");
    if (by_value.size() <= 1) return std::nullopt;
    const auto usual = std::max_element(by_value.begin(), by_value.end(), [](const auto& a, const auto& b) {
        return a.second.size() != b.second.size() ? a.second.size() < b.second.size() : a.second[0] > b.second[0];
    });
    std::string out;
    for (auto it = by_value.begin(); it != by_value.end(); ++it) {
        if (it == usual) continue;
        wrong.insert(wrong.end(), it->second.begin(), it->second.end());
        out += cat(out.empty() ? "" : ", ", ranks_text(it->second), ' ', verb, it->second.size() == 1 ? "es " : " ",
                   text(it->first));
    }
    wrong.push_back(usual->second[0]);
    return cat(out, ", but ", ranks_text(usual->second), ' ', verb, usual->second.size() == 1 ? "es " : " ",
               text(usual->first));
}

/// Bytes of `amounts` for `peer`; -1: unspecified.
std::int64_t amount(const Amounts& amounts, std::size_t peer, std::int64_t root) {
    switch (amounts.kind) {
        case Amounts::Kind::unspecified:
            break;
        case Amounts::Kind::each:
            return amounts.bytes[0];
        case Amounts::Kind::root_only:
            return static_cast<std::int64_t>(peer) == root ? amounts.bytes[0] : -1;
        case Amounts::Kind::listed:
            return peer < amounts.bytes.size() ? amounts.bytes[peer] : -1;
    }
    return -1;
}

/// Compares what each rank sends with what its peer expects; unspecified amounts are skipped.
std::optional<Verdict> compare_pairs(const std::vector<CheckedCall>& calls) {
    std::vector<std::string> wrong;
    std::vector<std::size_t> ranks;
    std::size_t count = 0;
    for (std::size_t i = 0; i < calls.size(); ++i) {
        for (std::size_t j = 0; j < calls.size(); ++j) {
            const std::int64_t sent = amount(calls[i].to, j, calls[i].root);
            const std::int64_t expected = amount(calls[j].from, i, calls[j].root);
            if (sent < 0 || expected < 0 || sent == expected) continue;
            if (count == 0) ranks = i == j ? std::vector{i} : std::vector{i, j};
            if (count++ < 3)
                wrong.push_back(i == j ? cat("rank ", i, " sends ", sent, " bytes to itself and receives ", expected)
                                       : cat("rank ", i, " passes a count of ", sent, " bytes for rank ", j,
                                             ", which passes one of ", expected, " bytes for what comes from it"));
        }
    }
    if (wrong.empty()) return std::nullopt;
    std::string text = wrong[0];
    for (std::size_t i = 1; i < wrong.size(); ++i) text += "; " + wrong[i];
    if (count > wrong.size()) text += cat("; and ", count - wrong.size(), " more pairs");
    return Verdict{Fault::count, text + ": make counts and types of sender and receiver the same amount of data",
                   ranks};
}

}  // namespace

std::string ranks_text(const std::vector<std::size_t>& ranks) {
    constexpr std::size_t most = 4;
    std::string out = ranks.size() == 1 ? "rank " : "ranks ";
    const std::size_t shown = ranks.size() <= most ? ranks.size() : most - 1;
    for (std::size_t i = 0; i < shown; ++i) {
        if (i > 0) out += i + 1 == ranks.size() ? " and " : ", ";
        out += std::to_string(ranks[i]);
    }
    if (shown < ranks.size()) out += cat(" and ", ranks.size() - shown, " more");
    return out;
}

std::optional<Verdict> judge(const std::vector<CheckedCall>& calls) {
    std::vector<std::size_t> wrong;
    const auto same = [&](Fault fault, auto value, auto text, const char* what) -> std::optional<Verdict> {
        const auto found = compare(calls, value, text, wrong);
        if (!found) return std::nullopt;
        return Verdict{fault, cat(*found, ": pass the same ", what, " on all ranks"), wrong};
    };
    using One = const CheckedCall&;
    const auto function = [](One c) { return c.function; };
    if (const auto text = compare(calls, function, [](const auto& name) { return name; }, wrong, "reach"))
        return Verdict{Fault::function, *text + ": let all ranks call the same collectives in the same order", wrong};
    for (std::size_t rank = 0; rank < calls.size(); ++rank) {
        const CheckedCall& call = calls[rank];
        if (call.fault != Fault::none)
            return Verdict{call.fault, cat("rank ", rank, " passes ", call.faulty, ": correct this argument"), {rank}};
    }
    const auto bytes_text = [](const char* of) {
        return [of](std::int64_t bytes) { return cat(of, bytes, " bytes"); };
    };
    if (auto bad = same(
            Fault::root, [](One c) { return c.root; }, [](std::int64_t root) { return cat("root ", root); }, "root"))
        return bad;
    if (auto bad = same(
            Fault::op, [](One c) { return c.op; }, [](const auto& op) { return "the operation " + op; }, "operation"))
        return bad;
    if (auto bad = same(Fault::type, [](One c) { return c.type_bytes; }, bytes_text("a type of "), "type")) return bad;
    if (auto bad = same(
            Fault::type, [](One c) { return c.elements; }, [](const auto& kind) { return "a type of " + kind; },
            "type"))
        return bad;
    if (auto bad = same(Fault::count, [](One c) { return c.bytes; }, bytes_text("a count of "), "amount of data"))
        return bad;
    return compare_pairs(calls);
}

}  // namespace palmette::runtime
