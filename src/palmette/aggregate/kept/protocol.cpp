#include "palmette/aggregate/kept/protocol.hpp"

#include <algorithm>

namespace palmette::aggregate::kept {

bool Keeper::contribute() noexcept {
    if (frozen_) return false;
    contributed_ = held_ + 1;
    return true;
}

bool Keeper::keep(std::string_view result) {
    if (frozen_) return false;
    settle(result);
    return true;
}

void Keeper::settle(std::string_view result) {
    result_.assign(result);
    ++held_;
    contributed_ = held_;
}

std::optional<Word> Keeper::answer(std::uint64_t operation) {
    frozen_ = true;
    if (held_ > operation) return std::nullopt;
    if (held_ == operation) return Word{Word::Kind::has, operation, result_};
    return Word{contributed_ >= operation ? Word::Kind::lacks : Word::Kind::absent, operation, {}};
}

std::optional<Word> Arbiter::verdict_of(std::uint64_t operation) const {
    if (found_ == operation) return Word{Word::Kind::result, operation, result_};
    if (hosts_from_ != 0 && operation >= hosts_from_) return Word{Word::Kind::hosts, operation, {}};
    return std::nullopt;
}

void Arbiter::ask(Open& open, std::vector<Outgoing>& out) const {
    open.since.assign(members_, false);
    for (std::uint32_t member = 0; member < members_; ++member)
        if (!open.lacks[member]) out.push_back({member, {Word::Kind::question, open.operation, {}}});
}

void Arbiter::close(std::uint64_t operation, std::vector<Outgoing>& out) {
    const auto it = std::ranges::find(open_, operation, &Open::operation);
    if (it == open_.end()) return;
    const Open closed = std::move(*it);
    open_.erase(it);
    for (std::uint32_t member = 0; member < members_; ++member)
        if (closed.waiting[member]) out.push_back({member, *verdict_of(operation)});
}

void Arbiter::hear(std::uint32_t member, const Word& word, std::vector<Outgoing>& out) {
    using Kind = Word::Kind;
    if (member >= members_ || word.operation == 0) return;
    auto open = std::ranges::find(open_, word.operation, &Open::operation);
    if (word.kind == Kind::ask) {
        if (auto verdict = verdict_of(word.operation)) {
            out.push_back({member, std::move(*verdict)});
            return;
        }
        // Who asks for an older one has it since: the word has been overtaken.
        if (word.operation < found_) return;
        if (open == open_.end()) {
            const std::vector<bool> none(members_);
            open = open_.insert(open_.end(), {word.operation, none, none, none});
            ask(*open, out);
        } else if (open->since[member]) {
            ask(*open, out);
        }
        open->waiting[member] = open->since[member] = true;
        return;
    }
    if (open == open_.end()) return;
    switch (word.kind) {
        case Kind::has:
            found_ = word.operation;
            result_ = word.data;
            break;
        case Kind::lacks:
            open->lacks[member] = true;
            if (std::ranges::find(open->lacks, false) != open->lacks.end()) return;
            [[fallthrough]];
        case Kind::absent:
            if (hosts_from_ == 0 || word.operation < hosts_from_) hosts_from_ = word.operation;
            break;
        default:
            return;
    }
    close(word.operation, out);
}

}  // namespace palmette::aggregate::kept
