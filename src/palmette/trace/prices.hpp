// What calls cost in a replay, once all that they wait for is there.
#pragma once

#include <algorithm>
#include <limits>
#include <map>

#include "palmette/trace/replay_state.hpp"
#include "palmette/trace/roles.hpp"

namespace palmette::trace {

/// Where costs come from.
struct Sources {
    const BoundOf& bound_of;
    const PredictedOf& predicted_of;
    const Changes* changes;
};

class Prices {
  public:
    Prices(const Trace& trace, Costs costs, const Sources& sources)
        : trace_(trace), costs_(costs), sources_(sources), changes_(sources.changes) {
        for (const std::string& name : trace.functions) is_file_.push_back(name.starts_with("MPI_File") ? 1 : 0);
    }

    bool is_file(const Event& call) const { return is_file_[call.function] != 0; }

    /// A rank's part of a collective: its root's, or rank 0's, tells how much it moves.
    void note(Gathering& one, const Roles& roles, const Event& event, std::int32_t rank) {
        const std::int32_t root = root_of(roles.kind(event), event);
        if (costs_ != Costs::changed && event.plan != 0)
            one.price.seconds = std::max(one.price.seconds, trace_.plans[event.plan].bound_s);
        if (rank != std::max(0, root) || !has_source(event.plan != 0)) return;
        const CollectiveKind kind{event.function, event.communicator, by_plan() ? event.plan : 0, root,
                                  asked_.size() < most_sizes ? event.bytes : rounded_down(event.bytes)};
        const auto [found, made] = asked_.try_emplace(kind);
        if (made) found->second = ask(kind);
        if (costs_ == Costs::changed)
            one.price = found->second;
        else
            one.price.seconds = std::max(one.price.seconds, found->second.seconds);
    }

    /// `own_s`: what the call took after all it waited for had begun. `parts`: what it is or completes, a collective's
    /// with what is known of all ranks.
    struct Part {
        const Gathering* gathering;  ///< null: a message, or nothing
        bool moves_here;             ///< whether data must come to this process
        std::uint64_t pair;          ///< a message's pair of processes; else none_of_pairs
        bool receives;
    };
    double cost_s(double own_s, const std::vector<Part>& parts, double ready_s, double begun_s) const {
        if (costs_ != Costs::changed) {
            double limit_s = 0;
            for (const Part& part : parts)
                if (part.gathering && part.moves_here) limit_s = std::max(limit_s, part.gathering->price.seconds);
            // The limit is that of the rank that is done last: others may have been quicker.
            return std::min(own_s, limit_s);
        }
        double longest_s = own_s;
        bool changed = false;
        Price message;
        for (const Part& part : parts) {
            if (part.gathering) {
                const Price& price = part.gathering->price;
                if (price.seconds < 0 || price.seconds == price.was_s) continue;
                const double time_s = changed_s(price, own_s, part.moves_here);
                longest_s = changed ? std::max(longest_s, time_s) : time_s;
                changed = true;
            } else if (part.pair != none_of_pairs) {
                const auto found = changes_->messages.find(part.pair);
                if (found == changes_->messages.end()) continue;
                // An eager send ends before its message has gone.
                if (!part.receives && own_s < found->second.was_s / 2) continue;
                message.seconds = std::max(message.seconds, found->second.seconds);
                message.was_s = std::max(message.was_s, found->second.was_s);
            }
        }
        if (message.seconds < 0 || message.seconds == message.was_s) return longest_s;
        // It may have been on its way, or there, long before it was asked for.
        const double time_s = own_s < message.was_s / 2
                                  ? std::max(own_s, begun_s + message.was_s + differs_s(message) - ready_s)
                                  : differing_s(message, own_s);
        return changed ? std::max(longest_s, time_s) : time_s;
    }
    /// What computation before a call, or the call itself, is multiplied by.
    double factor(const Event& call, std::int32_t process, bool in_call) const {
        if (!changes_ || process != changes_->shorter.process) return 1;
        const Changes::ShorterCalls& one = changes_->shorter;
        return one.in_call == in_call && one.function == call.function && one.path == call.path ? one.factor : 1;
    }
    static constexpr std::uint64_t none_of_pairs = ~std::uint64_t{0};

  private:
    bool by_plan() const { return costs_ == Costs::changed || costs_ == Costs::planned || costs_ == Costs::served; }
    bool has_source(bool is_served) const {
        if (costs_ == Costs::changed) return changes_->collective != nullptr;
        return is_served ? by_plan() : costs_ != Costs::ideal && sources_.bound_of != nullptr;
    }
    Price ask(const CollectiveKind& kind) const {
        if (costs_ == Costs::changed) return changes_->collective(kind);
        if (kind.plan == 0) return {sources_.bound_of(kind.function, kind.communicator, kind.root, kind.bytes)};
        const double predicted_s = costs_ == Costs::planned && sources_.predicted_of ? sources_.predicted_of(kind) : 0;
        return {predicted_s > 0 ? predicted_s : as_measured};
    }
    static constexpr double as_measured = std::numeric_limits<double>::infinity();

    double changed_s(const Price& price, double own_s, bool moves_here) const {
        if (price.was_s > 0) return differing_s(price, own_s);
        const double scaled_s = price.seconds * changes_->scale;
        return moves_here ? scaled_s : std::min(own_s, scaled_s);
    }
    /// What the model doesn't explain of a call's time stays.
    double differing_s(const Price& price, double own_s) const {
        if (price.by_ratio || own_s < price.was_s)
            return own_s * std::max(0.0, 1 + (price.seconds / price.was_s - 1) * changes_->scale);
        return std::max(0.0, own_s + differs_s(price));
    }
    double differs_s(const Price& price) const { return (price.seconds - price.was_s) * changes_->scale; }

    const Trace& trace_;
    const Costs costs_;
    const Sources sources_;
    const Changes* changes_;
    std::vector<char> is_file_;
    std::map<CollectiveKind, Price> asked_;
};

}  // namespace palmette::trace
