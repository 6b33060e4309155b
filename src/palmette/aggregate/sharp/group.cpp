#include "palmette/aggregate/sharp/group.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <new>
#include <thread>
#include <utility>
#include <vector>

#include "palmette/aggregate/known_memory.hpp"
#include "palmette/base/text.hpp"

namespace palmette::aggregate::sharp {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

/// Limit of the first sum, for which all members are there.
constexpr milliseconds longest_trial{10000};
/// Limit of waiting for other operations that may still complete when one has failed.
constexpr milliseconds longest_drain{250};
constexpr int most_trials = 5;
/// The usual length from which SHARP streams, and takes the lock (SHARP_COLL_SAT_THRESHOLD).
constexpr std::size_t trial_bytes = 16384;
/// Polls between looks whether another member has aborted, which cost a call of the MPI.
constexpr unsigned polls_between_looks = 32;
/// Polls in vain after which a waiting rank sleeps between them.
constexpr unsigned most_spins = 2000;

/// Some member's switches may still write into memory of this process.
std::atomic<bool> some_are_stuck{false};

int call_bcast(void* context, void* buffer, int bytes, int root) {
    return static_cast<OutOfBand*>(context)->bcast(buffer, bytes, root);
}
int call_barrier(void* context) { return static_cast<OutOfBand*>(context)->barrier(); }
int call_gather(void* context, int root, void* from, void* to, int bytes) {
    return static_cast<OutOfBand*>(context)->gather(root, from, to, bytes);
}

DataDescription describe(void* data, std::size_t bytes, std::uintptr_t handle) {
    DataDescription out{};
    out.buffer.data = data;
    out.buffer.bytes = bytes;
    out.buffer.memory = reinterpret_cast<void*>(handle);
    return out;
}

/// Small enough for the sum of many thousand members.
std::uint32_t trial_number(std::size_t i) { return static_cast<std::uint32_t>(i % 997 + 1); }
std::uint32_t trial_weight(int rank) { return static_cast<std::uint32_t>(rank % 61 + 1); }

}  // namespace

int smallest(OutOfBand& out_of_band, int rank, int size, int mine) noexcept {
    std::vector<int> all;
    try {
        if (rank == 0) all.resize(static_cast<std::size_t>(size));
    } catch (const std::bad_alloc&) {
        out_of_band.abort(Reason::no_resource);
        return no_number;
    }
    if (out_of_band.gather(0, &mine, all.data(), sizeof mine) != 0) return no_number;
    int least = rank == 0 ? *std::min_element(all.begin(), all.end()) : 0;
    return out_of_band.bcast(&least, sizeof least, 0) == 0 ? least : no_number;
}

Group::~Group() {
    // Others may not close it, so neither can this one; its memory stays registered.
    if (context_) forget_registrations();
}

/// Memory stays registered, where the library may still use it.
void Group::forget_registrations() noexcept {
    static_cast<void>(pool_.release());
    if (cache_) KnownMemory::instance().leave(*cache_);
    static_cast<void>(cache_.release());
}

Problem Group::refused(const char* function, int code) {
    // Where another member has aborted, the library's calls out of band have failed, and it may say so in its own way.
    const OutOfBand::AbortNotice by = out_of_band_.aborted();
    if (by.member >= 0 && (code == error_out_of_band || code == error_general))
        return {Reason::member_lost, base::cat("leader ", by.member, " has failed: ", name_of(by.reason))};
    out_of_band_.abort(reason_of(code));
    return {reason_of(code), base::cat("sharp_coll_", function, ": ", library_.error_text(code))};
}

Problem Group::init(std::uint64_t job_id) {
    if (some_are_stuck.load()) {
        out_of_band_.abort(Reason::library);
        return {Reason::library, "an earlier operation of this process has never ended"};
    }
    InitSpec spec{};
    spec.job_id = job_id;
    spec.world_rank = rank_;
    spec.world_size = size_;
    spec.config = *library_.default_config;
    spec.config.flags |= hide_errors | no_lazy_resources;
    spec.out_of_band = {call_bcast, call_barrier, call_gather};
    spec.out_of_band_context = &out_of_band_;
    spec.thread_support = threads_ ? 1 : 0;
    const int code = library_.init(&spec, &context_);
    if (code == success) return {};
    context_ = nullptr;
    return refused("init", code);
}

Problem Group::create() {
    std::vector<std::uint32_t> ranks(static_cast<std::size_t>(size_));
    for (std::size_t i = 0; i < ranks.size(); ++i) ranks[i] = static_cast<std::uint32_t>(i);
    CommSpec spec{};
    spec.rank = rank_;
    spec.size = size_;
    spec.out_of_band_context = &out_of_band_;
    spec.group_world_ranks = ranks.data();
    int code = library_.comm_init(context_, &spec, &comm_);
    if (code != success) {
        comm_ = nullptr;
        return refused("comm_init", code);
    }
    Capabilities capabilities{};
    code = library_.caps_query(context_, &capabilities);
    if (code != success) return refused("caps_query", code);
    combines_ = Combines::of(capabilities);
    return {};
}

Problem Group::make_pool() {
    if (!combines_(kernels::Operator::sum, kernels::Element::int32))
        return {Reason::unsupported, "these switches don't sum 32-bit integers"};
    pool_ = std::make_unique<Pool>(static_cast<Registrar&>(*this), slots, slot_bytes);
    if (!*pool_)
        return {Reason::registration, base::cat("sharp_coll_reg_mr: ", library_.error_text(registration_error_))};
    cache_ = std::make_unique<RegistrationCache>(static_cast<Registrar&>(*this), RegistrationCache::Bounds{});
    KnownMemory::instance().join(*cache_);
    return {};
}

/// All members take the same turns, whatever each of them finds.
Problem Group::prove() {
    Problem problem = make_pool();
    if (problem.reason != Reason::none) out_of_band_.abort(problem.reason);
    bool settled = true;
    for (int trial = 0;; ++trial) {
        bool open = false;
        const int code = problem.reason == Reason::none ? try_sum(open) : int{error_general};
        settled = out_of_band_.settle() && settled;
        // 0: this member has the sum; -1: may try again; -2: not.
        const int mine = code == success ? 0 : code == error_lock_failed && !open ? -1 : -2;
        const int all = agree(settled ? mine : -2);
        if (all == 0) {
            proven_ = true;
            return {};
        }
        if (all == -1 && trial + 1 < most_trials) {
            // A member that aborts the next trial must not reach one that is still agreeing on this one.
            settled = out_of_band_.settle();
            std::this_thread::sleep_for(milliseconds(1 << (2 * trial)));
            continue;
        }
        if (open) some_are_stuck.store(true);
        if (problem.reason != Reason::none) return problem;
        if (open || code == success) return {Reason::member_lost, "another leader has no right sum"};
        if (code > 0) return {Reason::wrong_sum, "the switches' sum of integers isn't that of the leaders' numbers"};
        return {reason_of(code), base::cat("the first sum: ", library_.error_text(code))};
    }
}

/// 0, an error, or 1 where the sum is wrong; `open`: it has not ended.
int Group::try_sum(bool& open) noexcept {
    constexpr std::size_t count = trial_bytes / sizeof(std::uint32_t);
    auto* const input = reinterpret_cast<std::uint32_t*>(pool_->input(0));
    auto* const output = reinterpret_cast<std::uint32_t*>(pool_->output(0));
    for (std::size_t i = 0; i < count; ++i) input[i] = trial_weight(rank_) * trial_number(i);
    std::memset(output, 0, trial_bytes);
    void* request = nullptr;
    int code = begin(in_pool(pool_->input(0), trial_bytes), 0, type_int32, op_sum, count, request);
    if (code == success) {
        auto end = Clock::now() + longest_trial;
        bool alone = false;
        while (library_.req_test(request) == 0) {
            library_.progress(context_);
            if (!alone && out_of_band_.aborted().member >= 0) {
                alone = true;
                end = std::min(end, Clock::now() + longest_drain);
            }
            if (Clock::now() > end) {
                open = true;
                return error_general;
            }
            out_of_band_.idle();
        }
        code = library_.req_wait(request);
    }
    if (code == success) {
        std::uint32_t weights = 0;
        for (int rank = 0; rank < size_; ++rank) weights += trial_weight(rank);
        for (std::size_t i = 0; i < count && code == success; ++i)
            code = output[i] == weights * trial_number(i) ? 0 : 1;
    }
    if (code != success) out_of_band_.abort(code < 0 ? reason_of(code) : Reason::wrong_sum);
    return code;
}

DataDescription Group::in_pool(char* data, std::size_t bytes) const {
    return describe(data, bytes, bytes < registered_from ? 0 : pool_->handle());
}

int Group::begin(const DataDescription& from, std::size_t slot, DataType type, ReduceOp op, std::size_t count,
                 void*& request) {
    ReduceSpec spec{};
    spec.from = from;
    spec.to = in_pool(pool_->output(slot), from.buffer.bytes);
    spec.type = type;
    spec.count = count;
    spec.op = op;
    return library_.do_allreduce_nb(comm_, &spec, &request);
}

Reason Group::post(const Operation& operation, std::uint32_t& number) noexcept {
    if (failed()) return reason_;
    if (left_ || !proven_) return Reason::left;
    if (posted_ - finished_ == most_outstanding) return Reason::no_resource;
    if (operation.collective != Collective::allreduce || !combines_(operation.op, operation.element))
        return Reason::unsupported;
    number = posted_;
    at(posted_) = {operation, 0, 0, nullptr};
    take_input(at(posted_));
    ++posted_;
    issue();
    return failed() ? reason_ : Reason::none;
}

void Group::issue() noexcept {
    while (!failed() && sending_ != posted_ && in_flight() < slots) {
        Open& open = at(sending_);
        const Operation& operation = open.operation;
        const std::size_t extent = kernels::bytes_of(operation.element).extent;
        const std::uint64_t count = std::min<std::uint64_t>(slot_bytes / extent, operation.count - open.sent);
        if (count > 0) {
            const std::size_t slot = issued_ % slots;
            Piece& piece = pieces_[slot];
            piece = {nullptr, sending_, open.sent, count};
            char* const own = static_cast<char*>(const_cast<void*>(operation.input)) + open.sent * extent;
            DataDescription from = describe(own, count * extent, open.input ? open.input->handle : 0);
            if (!open.input) {
                std::memcpy(pool_->input(slot), own, count * extent);
                from = in_pool(pool_->input(slot), count * extent);
            }
            const int code = begin(from, slot, *type_of(operation.element), *op_of(operation.op), count, piece.request);
            if (code != success) return fail(reason_of(code), "sharp_coll_do_allreduce_nb", code);
            ++issued_;
            open.sent += count;
        }
        if (open.sent == operation.count) ++sending_;
    }
}

/// Pieces complete in the order in which all members have issued them.
bool Group::take_finished() noexcept {
    bool any = false;
    while (in_flight() > 0) {
        Piece& piece = pieces_[taken_ % slots];
        if (library_.req_test(piece.request) == 0) break;
        const int code = library_.req_wait(piece.request);
        const std::size_t slot = taken_++ % slots;
        any = true;
        if (failed() || left_) continue;
        if (code != success) {
            fail(reason_of(code), "sharp_coll_req_wait", code);
            continue;
        }
        Open& open = at(piece.operation);
        const std::size_t extent = kernels::bytes_of(open.operation.element).extent;
        std::memcpy(static_cast<char*>(open.operation.output) + piece.first * extent, pool_->output(slot),
                    piece.count * extent);
        open.received += piece.count;
    }
    while (!failed() && finished_ != posted_ && at(finished_).received == at(finished_).operation.count)
        release_input(at(finished_++));
    return any;
}

void Group::progress() noexcept {
    if (!proven_ || failed() || left_ || finished_ == posted_) return;
    if (const int code = library_.progress(context_); code < 0)
        return fail(reason_of(code), "sharp_coll_progress", code);
    if (take_finished()) {
        polls_ = 0;
        issue();
    } else if (++polls_ % polls_between_looks == 0) {
        const OutOfBand::AbortNotice by = out_of_band_.aborted();
        if (by.member < 0) return;
        reason_ = Reason::member_lost;
        detail_.set("leader %d has failed: %s", by.member, name_of(by.reason).data());
    }
}

Service::Watch Group::watch() const {
    Watch out;
    out.due_ms = polls_ < most_spins ? 0 : 1;
    return out;
}

void Group::fail(Reason reason, const char* what, int code) noexcept {
    if (failed()) return;
    reason_ = reason;
    const char* const text = library_.strerror(code);
    detail_.set("%s: %s (%d)", what, text ? text : "unknown error", code);
    out_of_band_.abort(reason);
}

void Group::leave() noexcept {
    if (left_) return;
    left_ = true;
    if (!failed() && finished_ != posted_) out_of_band_.abort(Reason::left);
}

bool Group::drain() noexcept {
    const auto end = Clock::now() + longest_drain;
    left_ = true;
    while (in_flight() > 0 && Clock::now() < end) {
        library_.progress(context_);
        if (!take_finished()) out_of_band_.idle();
    }
    return in_flight() == 0;
}

void Group::close() noexcept {
    out_of_band_.settle();
    // -1: none; what only some members have is ended without the others, whose calls fail at once.
    const auto together = [&](bool mine) {
        const int all = agree(mine ? 1 : 0), any = -agree(mine ? -1 : 0);
        if (all != 1 && any == 1) out_of_band_.refuse();
        return mine;
    };
    const bool ended = drain() && !some_are_stuck.load();
    if (agree(ended ? 1 : 0) != 1) {
        some_are_stuck.store(true);
        forget_registrations();
        comm_ = nullptr;
        context_ = nullptr;
        return;
    }
    // All pieces have ended: what is registered is used no more.
    if (cache_) {
        for (; finished_ != posted_; ++finished_) release_input(at(finished_));
        KnownMemory::instance().leave(*cache_);
        cache_.reset();
    }
    if (pool_) pool_->release();
    if (together(comm_ != nullptr)) library_.comm_destroy(comm_);
    comm_ = nullptr;
    out_of_band_.settle();
    if (together(context_ != nullptr)) library_.finalize(context_);
    context_ = nullptr;
    pool_.reset();
    out_of_band_.settle();
}

std::uintptr_t Group::register_memory(void* memory, std::size_t bytes) {
    void* handle = nullptr;
    registration_error_ = library_.reg_mr(context_, memory, bytes, &handle);
    return registration_error_ == success ? reinterpret_cast<std::uintptr_t>(handle) : 0;
}

void Group::unregister_memory(std::uintptr_t handle) noexcept {
    library_.dereg_mr(context_, reinterpret_cast<void*>(handle));
}

void Group::take_input(Open& open) noexcept {
    const Operation& operation = open.operation;
    const std::size_t bytes = operation.count * kernels::bytes_of(operation.element).extent;
    if (bytes < direct_from) return;
    try {
        open.input = cache_->take(operation.input, bytes, RegistrationCache::Extent::allowed);
    } catch (const std::bad_alloc&) {  // it is copied
    }
}

void Group::release_input(Open& open) noexcept {
    if (!open.input) return;
    cache_->release(std::exchange(open.input, nullptr));
}

RegistrationCache::Counts Group::registrations() const {
    return cache_ ? cache_->counts() : RegistrationCache::Counts{};
}

}  // namespace palmette::aggregate::sharp
