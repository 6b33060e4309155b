#include "palmette/base/stack_walk.hpp"

#include <pthread.h>

#include <cstring>
#if defined(__aarch64__)
#include <unwind.h>
#endif

#include "palmette/base/readable.hpp"

namespace palmette::base {
namespace {

/// Frames that a search for a call's frame looks at: a recursion between two calls.
constexpr std::size_t deepest_search = 4096;

constinit thread_local StackWalk* of_thread = nullptr;

/// A return address as it stands in the stack, without the signature that a program for arm64 may give it.
std::uintptr_t without_signature(std::uintptr_t address) {
#if defined(__aarch64__)
    register std::uintptr_t x30 asm("x30") = address;
    asm("hint #7" : "+r"(x30));  // xpaclri, which older processors ignore
    return x30;
#else
    return address;
#endif
}

std::uintptr_t word_at(std::uintptr_t address) {
    std::uintptr_t word = 0;
    std::memcpy(&word, reinterpret_cast<const void*>(address), sizeof word);
    return word;
}

/// How far a function's CFA is above its frame address (where the caller's frame pointer lies).
#if defined(__aarch64__)
struct CfaQuery {
    std::uintptr_t return_address, cfa;
};
std::int32_t entry_of(std::uintptr_t return_address, std::uintptr_t frame) {
    // The record of both registers may lie anywhere in a frame. Only frames of this library are unwound.
    CfaQuery wanted{return_address, 0};
    _Unwind_Backtrace(
        [](_Unwind_Context* context, void* argument) {
            auto& out = *static_cast<CfaQuery*>(argument);
            if (_Unwind_GetIP(context) != out.return_address) return _URC_NO_REASON;
            out.cfa = _Unwind_GetCFA(context);
            return _URC_END_OF_STACK;
        },
        &wanted);
    return wanted.cfa > frame ? static_cast<std::int32_t>(wanted.cfa - frame) : 16;
}
#else
constexpr std::int32_t entry_bytes = 2 * sizeof(std::uintptr_t);
std::int32_t entry_of(std::uintptr_t, std::uintptr_t) { return entry_bytes; }
#endif

/// Whether a frame with this CFA and frame pointer is that of a function with this frame address.
bool ends_at(std::uintptr_t frame, [[maybe_unused]] std::uintptr_t cfa, [[maybe_unused]] std::uintptr_t fp) {
#if defined(__aarch64__)
    return fp == frame;
#else
    return cfa == frame + entry_bytes;
#endif
}

}  // namespace

StackWalk& StackWalk::own() {
    if (of_thread) [[likely]]
        return *of_thread;
    struct Key {
        pthread_key_t key{};
        bool is_there = false;
    };
    static const Key key = [] {
        Key made;
        made.is_there = pthread_key_create(&made.key, [](void* walk) {
                            of_thread = nullptr;
                            delete static_cast<StackWalk*>(walk);
                        }) == 0;
        return made;
    }();
    of_thread = new StackWalk;
    if (key.is_there) pthread_setspecific(key.key, of_thread);
    return *of_thread;
}

namespace {

/// Rules that nearly all functions have, whose return address lies right below the CFA: by the stack pointer, without
/// or with the frame pointer saved, or by the frame pointer.
enum class Shape : std::uint8_t { other, by_sp, by_sp_saves_fp, by_fp };

Shape shape_of(const FrameRule& rule) {
    constexpr std::int32_t word = sizeof(std::uintptr_t);
    if (rule.kind != FrameRule::Kind::caller || rule.cfa_is_there || rule.is_signal) return Shape::other;
    if (rule.ra_from != FrameRule::From::cfa || rule.ra != -word) return Shape::other;
    if (rule.cfa < word || rule.cfa % word != 0 || rule.fp % word != 0) return Shape::other;
    const bool saves = rule.fp_from == FrameRule::From::cfa;
    if (!saves && rule.fp_from != FrameRule::From::kept) return Shape::other;
    if (rule.cfa_from == FrameRule::From::sp) return saves ? Shape::by_sp_saves_fp : Shape::by_sp;
    return saves ? Shape::by_fp : Shape::other;
}

std::uintptr_t plus(std::uintptr_t base, std::int32_t offset) {
    return base + static_cast<std::uintptr_t>(static_cast<std::intptr_t>(offset));
}

}  // namespace

struct StackWalk::Node {
    std::uintptr_t address = 0;
    Node* latest = nullptr;  ///< the caller that was met last; itself: none
    FrameRule rule;
    Shape shape = Shape::other;
    std::int32_t entry = 0;  ///< innermost frame: from the function's frame address to its CFA
    std::uint32_t word = 0;
    Node* parent = nullptr;                  ///< the function that it calls
    const StraightPath* recent = nullptr;    ///< innermost frame: the path that was met last
    std::unique_ptr<StraightPath> straight;  ///< outermost frame of a path
    bool is_bent = false;                    ///< there is no such path to this node
};

StackWalk::StackWalk() = default;
StackWalk::~StackWalk() = default;

std::uint32_t& StackWalk::word(Node* node) { return node->word; }

void StackWalk::forget() {
    blocks_.clear();
    count_ = 0;
    places_.assign(1024, nullptr);
}

std::size_t StackWalk::slot_of(const Node* parent, std::uintptr_t address) const {
    const auto above = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(parent));
    const std::uint64_t mixed = (address ^ above << 20U) * 0x9E3779B97F4A7C15ULL;
    return static_cast<std::size_t>(mixed >> 32U) & (places_.size() - 1);
}

StackWalk::Node* StackWalk::find(const Node* parent, std::uintptr_t address) const {
    for (std::size_t at = slot_of(parent, address);; at = (at + 1) & (places_.size() - 1)) {
        Node* const node = places_[at];
        if (!node || (node->address == address && node->parent == parent)) return node;
    }
}

void StackWalk::place(Node* node) {
    std::size_t at = slot_of(node->parent, node->address);
    while (places_[at]) at = (at + 1) & (places_.size() - 1);
    places_[at] = node;
}

StackWalk::Node* StackWalk::add(Node* parent, std::uintptr_t address, bool after_signal) {
    if (count_ % nodes_of_block == 0) blocks_.push_back(std::make_unique<Node[]>(nodes_of_block));
    Node* const node = &blocks_.back()[count_++ % nodes_of_block];
    node->address = address;
    node->latest = node;
    node->parent = parent;
    // A return address is behind its call, maybe in the next function.
    node->rule = frame_rule_at(after_signal ? address : address - 1);
    // Which the caller of a walk doesn't know. No call begins below the loader's resolver.
    if (node->rule.cfa_from == FrameRule::From::bx) node->rule = {};
    node->shape = shape_of(node->rule);
    if (count_ * 2 > places_.size()) {
        places_.assign(places_.size() * 2, nullptr);
        for (std::size_t i = 0; i < count_; ++i) place(&blocks_[i / nodes_of_block][i % nodes_of_block]);
    } else {
        place(node);
    }
    return node;
}

std::size_t StackWalk::addresses(const Node* node, std::span<std::uintptr_t> out) {
    std::size_t depth = 0;
    for (const Node* at = node; at; at = at->parent) ++depth;
    std::size_t index = depth;
    for (const Node* at = node; at; at = at->parent)
        if (--index < out.size()) out[index] = at->address;
    return depth < out.size() ? depth : out.size();
}

void StackWalk::know_bounds() {
    bounds_known_ = true;
    pthread_attr_t attributes;
    if (pthread_getattr_np(pthread_self(), &attributes) != 0) return;
    void* lowest = nullptr;
    std::size_t bytes = 0;
    pthread_attr_getstack(&attributes, &lowest, &bytes);
    pthread_attr_destroy(&attributes);
    lowest_ = reinterpret_cast<std::uintptr_t>(lowest);
    low_ = high_ = lowest_ + bytes;
}

/// What is above a frame on the thread's own stack is there. It may have grown since, or this may be a coroutine's
/// stack that lies where it could have grown to: then pages between them are missing.
void StackWalk::begin_on(std::uintptr_t frame) {
    if (!bounds_known_) know_bounds();
    if (frame < low_ && frame >= lowest_ && frame > not_below_) {
        const std::uintptr_t begin = frame & ~(memory_page - 1);
        if (is_readable(begin, low_ - begin))
            low_ = begin;
        else
            not_below_ = frame;
    }
    from_ = frame;
    page_ = frame & ~(memory_page - 1);
    until_ = is_own(frame) ? high_ - sizeof(std::uintptr_t) : page_ + memory_page - sizeof(std::uintptr_t);
}

bool StackWalk::can_read_beyond(std::uintptr_t address) {
    if (is_own(from_)) return false;
    const std::uintptr_t page = address & ~(memory_page - 1);
    if (page != page_ && !is_readable(page)) return false;
    page_ = page;
    return true;
}

bool StackWalk::step(const Node& node, std::uintptr_t sp, std::uintptr_t fp, std::uintptr_t& cfa, std::uintptr_t& ra_at,
                     std::uintptr_t& caller_fp) {
    const FrameRule& rule = node.rule;
    if (rule.kind != FrameRule::Kind::caller) return false;
    if (node.shape == Shape::by_sp) [[likely]] {
        cfa = plus(sp, rule.cfa);
        ra_at = cfa - sizeof(std::uintptr_t);
        caller_fp = fp;
        return cfa > sp && can_read(ra_at);
    }
    if (node.shape != Shape::other) {
        cfa = plus(node.shape == Shape::by_fp ? fp : sp, rule.cfa);
        ra_at = cfa - sizeof(std::uintptr_t);
        const std::uintptr_t fp_at = plus(cfa, rule.fp);
        if (cfa <= sp || !can_read(fp_at) || !can_read(ra_at)) return false;
        caller_fp = word_at(fp_at);
        return true;
    }
    const auto from = [&](FrameRule::From where, std::int32_t offset) {
        return plus(where == FrameRule::From::cfa ? cfa : where == FrameRule::From::sp ? sp : fp, offset);
    };
    cfa = from(rule.cfa_from, rule.cfa);
    if (rule.cfa_is_there) {
        if (!can_read(cfa)) return false;
        cfa = word_at(cfa);
    }
    ra_at = from(rule.ra_from, rule.ra);
    caller_fp = fp;
    if (cfa <= sp || !can_read(ra_at)) return false;
    if (rule.fp_from == FrameRule::From::kept) return true;
    const std::uintptr_t fp_at = from(rule.fp_from, rule.fp);
    if (!can_read(fp_at)) return false;
    caller_fp = word_at(fp_at);
    return true;
}

StackWalk::End StackWalk::follow(std::uintptr_t return_address, std::uintptr_t frame, std::size_t most) {
    End end;
    begin_on(frame);
    Node* at = find(nullptr, without_signature(return_address));
    if (!at) return end;
    Node* const first = at;
    const std::uintptr_t until = until_;
    if (const StraightPath* const known = at->recent; known && frame + known->reach <= until) {
        bool same = true;
        for (const StraightPath::Slot& slot : known->slots) {
            same = without_signature(word_at(frame + slot.offset)) == slot.address;
            if (!same) break;
        }
        if (same) {
            end.node = known->end;
            end.sp = frame + known->reach;
            return end;
        }
    }
    std::uintptr_t sp = plus(frame, at->entry);
    std::uintptr_t fp = word_at(frame);
    for (std::size_t left = most; left > 1; --left) {
        std::uintptr_t cfa = plus(sp, at->rule.cfa);
        std::uintptr_t ra_at = cfa - sizeof(std::uintptr_t);
        std::uintptr_t caller_fp = fp;
        if (at->shape != Shape::by_sp || ra_at > until) [[unlikely]]
            if (!step(*at, sp, fp, cfa, ra_at, caller_fp)) break;
        const std::uintptr_t address = without_signature(word_at(ra_at));
        Node* next = at->latest;
        if (next->address != address || next == at) [[unlikely]] {
            if (address == 0) break;
            next = find(at, address);
            if (!next) return end;
            at->latest = next;
        }
        at = next;
        sp = cfa;
        fp = caller_fp;
    }
    end.node = at;
    end.sp = sp;
    if (!at->straight && !at->is_bent) {
        at->straight = straight_to(at);
        at->is_bent = !at->straight;
    }
    first->recent = at->straight.get();
    return end;
}

/// One frame after the other is where the sizes say, as in a walk: so nothing else can be read by mistake.
std::unique_ptr<StackWalk::StraightPath> StackWalk::straight_to(Node* end) const {
    if (end->rule.kind == FrameRule::Kind::caller) return nullptr;
    std::vector<const Node*> path;
    for (const Node* at = end; at; at = at->parent) path.push_back(at);
    auto made = std::make_unique<StraightPath>();
    made->end = end;
    made->reach = static_cast<std::uintptr_t>(path.back()->entry);
    for (std::size_t i = path.size() - 1; i > 0; --i) {
        if (path[i]->shape != Shape::by_sp && path[i]->shape != Shape::by_sp_saves_fp) return nullptr;
        made->reach += static_cast<std::uintptr_t>(path[i]->rule.cfa);
        made->slots.push_back({made->reach - sizeof(std::uintptr_t), path[i - 1]->address});
    }
    return made;
}

StackWalk::End StackWalk::walk(std::uintptr_t return_address, std::uintptr_t frame, std::size_t most,
                               const Standing* other) {
    End end;
    begin_on(frame);
    if (blocks_.size() >= most_blocks) forget();
    std::uintptr_t address = without_signature(return_address);
    Node* at = find(nullptr, address);
    if (!at) {
        at = add(nullptr, address, false);
        at->entry = entry_of(address, frame);
    }
    std::uintptr_t sp = plus(frame, at->entry);
    std::uintptr_t fp = word_at(frame);
    for (std::size_t depth = 1;; ++depth) {
        end.node = at;
        end.sp = sp;
        if (other && sp == other->bottom) end.passed_bottom = true;
        std::uintptr_t cfa = 0;
        std::uintptr_t ra_at = 0;
        std::uintptr_t caller_fp = 0;
        end.is_complete = at->rule.kind != FrameRule::Kind::caller;
        if (end.is_complete || depth >= most || !step(*at, sp, fp, cfa, ra_at, caller_fp)) return end;
        address = without_signature(word_at(ra_at));
        end.is_complete = address == 0;
        end.met = other && address == without_signature(other->return_address) && ends_at(other->frame, cfa, fp);
        if (end.is_complete || end.met) return end;
        Node* next = find(at, address);
        if (!next) next = add(at, address, at->rule.is_signal);
        at->latest = next;
        at = next;
        sp = cfa;
        fp = caller_fp;
    }
}

StackWalk::Relation StackWalk::relation(const Standing& begun, std::uintptr_t return_address, std::uintptr_t frame) {
    // Nobody has told this copy of what was unloaded.
    if (const std::uint64_t now = unloaded_modules(); now != unloaded_) {
        unloaded_ = now;
        forget();
    }
    const End end = walk(return_address, frame, deepest_search, &begun);
    if (end.met) return Relation::inside;
    const bool both_own = is_own(frame) && may_be_own(begun.frame);
    if (both_own && frame >= begun.frame) return Relation::left;
    if (end.passed_bottom) return Relation::left;
    if (both_own) return end.sp > begun.frame ? Relation::left : Relation::inside;
    if (is_own(frame) || may_be_own(begun.frame)) return Relation::elsewhere;
    // On two stacks that aren't the thread's, or on one in which no table leads up to the call.
    constexpr std::uintptr_t near = std::uintptr_t{1} << 16U;
    const bool may_be_below = frame < begun.frame && end.sp <= begun.frame && begun.frame - frame < near;
    return may_be_below && !end.is_complete ? Relation::inside : Relation::elsewhere;
}

}  // namespace palmette::base
