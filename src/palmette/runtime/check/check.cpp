#include "palmette/runtime/check/check.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <numeric>
#include <thread>
#include <utility>

#include "palmette/base/text.hpp"
#include "palmette/runtime/check/call_place.hpp"
#include "palmette/runtime/check/check_message.hpp"
#include "palmette/runtime/transport/outstanding.hpp"

namespace palmette::runtime {
namespace {

using Fault = CheckedCall::Fault;
using Clock = std::chrono::steady_clock;

/// A rank that waits longer says for whom, and before that rank 0 looks for ranks that wait for each other. Late ranks
/// are no mistake, so that nothing but these lines follows.
constexpr std::chrono::milliseconds patience(1000), patience_with_order(500), patience_without_rank_0(1500);
/// An answer that is none: rank 0 has said who is missing.
constexpr int has_told = -1;

int error_class(Fault fault) {
    switch (fault) {
        case Fault::none:
            return MPI_SUCCESS;
        case Fault::root:
            return MPI_ERR_ROOT;
        case Fault::count:
            return MPI_ERR_COUNT;
        case Fault::type:
            return MPI_ERR_TYPE;
        case Fault::op:
            return MPI_ERR_OP;
        case Fault::function:
        case Fault::other:
            break;
    }
    return MPI_ERR_OTHER;
}

std::string comm_text(MPI_Comm comm, int size) {
    std::array<char, MPI_MAX_OBJECT_NAME + 1> name{};
    int length = 0;
    if (PMPI_Comm_get_name(comm, name.data(), &length) != MPI_SUCCESS || length == 0)
        return "a communicator of " + std::to_string(size) + " ranks";
    return std::string(name.data()) + " (" + std::to_string(size) + " ranks)";
}

/// One call of one rank, as rank 0 keeps it until those of all others are there.
struct HeldCall {
    CheckedCall call;
    bool blocks = false;  ///< its rank waits for the answer
};

/// All checks on one communicator.
class Checks {
  public:
    Checks(MPI_Comm comm, MPI_Comm shadow_comm);
    ~Checks();
    Checks(const Checks&) = delete;
    Checks& operator=(const Checks&) = delete;
    /// The checks of a shadow communicator, which keeps them as an attribute.
    static Checks& of(MPI_Comm comm, MPI_Comm shadow_comm);

    int wait_for_answer(const CheckedCall& mine);
    int start(const CheckedCall& mine);
    /// Whether nothing of this rank is on its way or waits to be compared.
    bool progress();

  private:
    friend int palmette::runtime::check_call(const CheckedCall&, MPI_Comm, MPI_Comm);

    bool leads() const { return rank_ == 0; }
    bool is_idle() const {
        return std::ranges::all_of(calls_, [](const auto& calls) { return calls.empty(); });
    }
    void wait_without_rank_0(const CheckedCall& mine, Clock::time_point since);
    void post(const CheckedCall& mine, bool blocks);
    void take_answer(int result);
    void send(std::vector<char> data, int to);
    bool receive();
    void judge_all();
    void answer(const std::vector<std::size_t>& ranks, int result);
    void tell(const Verdict& verdict, const std::vector<CheckedCall>& calls) const;
    std::string there_text(std::vector<std::size_t>& there, std::vector<std::size_t>& missing);
    bool is_out_of_order();
    void tell_of_missing();
    std::size_t rank_of(int world_rank) const;

    MPI_Comm comm_, shadow_comm_;
    int rank_ = 0, size_ = 1;
    std::vector<int> world_ranks_;  ///< by rank; empty where there is no world
    std::vector<std::deque<HeldCall>> calls_;
    std::vector<std::deque<int>> owed_;  ///< answers to calls that have been judged before they came
    std::uint64_t posted_ = 0, answered_ = 0, given_up_ = 0;
    std::optional<int> answer_;  ///< to the call of this rank that was posted last
    Clock::duration patience_with_started_ = patience;
    bool told_of_missing_ = false;
    Clock::time_point since_;  ///< the first of those that aren't compared was met
    struct PendingSend {
        std::vector<char> data;
        MPI_Request request = MPI_REQUEST_NULL;
    };
    std::deque<PendingSend> sent_;
};

/// Never destroyed: communicators may be freed after this library's own objects.
std::recursive_mutex& checks_mutex() {
    static auto* mutex = new std::recursive_mutex;
    return *mutex;
}
std::vector<Checks*>& all_checks() {
    static auto* all = new std::vector<Checks*>;
    return *all;
}

int delete_checks(MPI_Comm, int, void* checks, void*) {
    const std::lock_guard lock(checks_mutex());
    delete static_cast<Checks*>(checks);
    return MPI_SUCCESS;
}

/// No plan's messages have it (TagSpace).
int tag_of_checks() {
    int* limit = nullptr;
    int found = 0;
    PMPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, static_cast<void*>(&limit), &found);
    return found ? *limit : 32767;
}

Checks::Checks(MPI_Comm comm, MPI_Comm shadow_comm) : comm_(comm), shadow_comm_(shadow_comm) {
    PMPI_Comm_rank(shadow_comm, &rank_);
    PMPI_Comm_size(shadow_comm, &size_);
    if (leads()) {
        calls_.resize(static_cast<std::size_t>(size_));
        owed_.resize(calls_.size());
    }
    int initialized = 0;
    PMPI_Initialized(&initialized);
    if (initialized) {
        MPI_Group own = MPI_GROUP_NULL, world = MPI_GROUP_NULL;
        PMPI_Comm_group(shadow_comm, &own);
        PMPI_Comm_group(MPI_COMM_WORLD, &world);
        std::vector<int> ranks(static_cast<std::size_t>(size_));
        std::iota(ranks.begin(), ranks.end(), 0);
        world_ranks_.resize(ranks.size());
        PMPI_Group_translate_ranks(own, size_, ranks.data(), world, world_ranks_.data());
        PMPI_Group_free(&own);
        PMPI_Group_free(&world);
    }
    all_checks().push_back(this);
}

Checks::~Checks() {
    std::erase(all_checks(), this);
    // Small messages to a rank that ends, too: their buffers must outlive them.
    for (PendingSend& one : sent_)
        if (int done = 0; PMPI_Test(&one.request, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS && !done)
            new std::vector<char>(std::move(one.data));
}

Checks& Checks::of(MPI_Comm comm, MPI_Comm shadow_comm) {
    static int keyval = MPI_KEYVAL_INVALID;
    if (keyval == MPI_KEYVAL_INVALID) PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, &delete_checks, &keyval, nullptr);
    Checks* known = nullptr;
    int found = 0;
    PMPI_Comm_get_attr(shadow_comm, keyval, static_cast<void*>(&known), &found);
    if (found) return *known;
    known = new Checks(comm, shadow_comm);
    PMPI_Comm_set_attr(shadow_comm, keyval, known);
    return *known;
}

void Checks::send(std::vector<char> data, int to) {
    sent_.push_back({std::move(data), MPI_REQUEST_NULL});
    PendingSend& one = sent_.back();
    PMPI_Isend(one.data.data(), static_cast<int>(one.data.size()), MPI_BYTE, to, tag_of_checks(), shadow_comm_,
               &one.request);
}

void Checks::post(const CheckedCall& mine, bool blocks) {
    answer_.reset();
    ++posted_;
    if (leads()) {
        if (owed_[0].empty()) {
            if (is_idle()) since_ = Clock::now();
            calls_[0].push_back({mine, blocks});
            return;
        }
        take_answer(owed_[0].front());
        owed_[0].pop_front();
        return;
    }
    std::vector<char> data = pack(mine);
    data.push_back(blocks ? 1 : 0);
    send(std::move(data), 0);
}

/// Answers come in the order of calls. One that comes later than the call has waited for is an error that nobody has
/// raised yet.
void Checks::take_answer(int result) {
    if (++answered_ == posted_) answer_ = result;
    if (answered_ <= given_up_ && result != MPI_SUCCESS) PMPI_Comm_call_errhandler(comm_, result);
}

/// One message of another rank's, if there is one.
bool Checks::receive() {
    MPI_Status status;
    int found = 0;
    if (PMPI_Iprobe(MPI_ANY_SOURCE, tag_of_checks(), shadow_comm_, &found, &status) != MPI_SUCCESS || !found)
        return false;
    int bytes = 0;
    PMPI_Get_count(&status, MPI_BYTE, &bytes);
    std::vector<char> data(static_cast<std::size_t>(bytes));
    PMPI_Recv(data.data(), bytes, MPI_BYTE, status.MPI_SOURCE, tag_of_checks(), shadow_comm_, MPI_STATUS_IGNORE);
    if (!leads()) {
        int result = MPI_SUCCESS;
        std::memcpy(&result, data.data(), std::min(sizeof result, data.size()));
        if (result == has_told)
            told_of_missing_ = true;
        else
            take_answer(result);
        return true;
    }
    const auto rank = static_cast<std::size_t>(status.MPI_SOURCE);
    const bool blocks = data.back() != 0;
    data.pop_back();
    if (owed_[rank].empty()) {
        if (is_idle()) since_ = Clock::now();
        calls_[rank].push_back({unpack(data), blocks});
    } else {
        answer({rank}, owed_[rank].front());
        owed_[rank].pop_front();
    }
    return true;
}

void Checks::answer(const std::vector<std::size_t>& ranks, int result) {
    // This rank last: its error handler may end the job.
    for (const std::size_t rank : ranks) {
        if (rank == 0) continue;
        std::vector<char> data(sizeof result);
        std::memcpy(data.data(), &result, sizeof result);
        send(std::move(data), static_cast<int>(rank));
    }
    if (result != has_told && std::ranges::find(ranks, std::size_t{0}) != ranks.end()) take_answer(result);
}

void Checks::tell(const Verdict& verdict, const std::vector<CheckedCall>& calls) const {
    std::string text = verdict.text;
    std::map<std::string, std::vector<std::size_t>> places;
    std::vector<std::string> order;
    for (const std::size_t rank : verdict.ranks) {
        auto& ranks = places[calls[rank].place];
        if (ranks.empty()) order.push_back(calls[rank].place);
        ranks.push_back(rank);
    }
    constexpr std::size_t most = 4;
    for (std::size_t i = 0; i < std::min(order.size(), most); ++i)
        if (const std::string where = place_text(order[i]); !where.empty())
            text += base::cat("\n  ", ranks_text(places[order[i]]), " at ", where);
    // Reported before any rank gets the error: its error handler may end the job.
    std::fprintf(stderr, "palmette: %s on %s: %s\n",
                 verdict.fault == Fault::function ? "a collective" : calls[0].function.c_str(),
                 comm_text(comm_, size_).c_str(), text.c_str());
    std::fflush(stderr);
}

/// Compares those calls of which all are there, in their order.
void Checks::judge_all() {
    while (std::ranges::none_of(calls_, [](const auto& calls) { return calls.empty(); })) {
        std::vector<CheckedCall> calls;
        std::vector<std::size_t> ranks;
        for (auto& of_rank : calls_) {
            ranks.push_back(ranks.size());
            calls.push_back(std::move(of_rank.front().call));
            of_rank.pop_front();
        }
        told_of_missing_ = false;
        since_ = Clock::now();
        const std::optional<Verdict> verdict = judge(calls);
        const int result = verdict ? error_class(verdict->fault) : MPI_SUCCESS;
        if (verdict) tell(*verdict, calls);
        answer(ranks, result);
    }
}

bool Checks::progress() {
    while (receive()) {
    }
    while (!sent_.empty()) {
        int done = 0;
        if (PMPI_Test(&sent_.front().request, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS && !done) break;
        sent_.pop_front();
    }
    if (leads()) judge_all();
    return sent_.empty() && answered_ == posted_;
}

/// Who is there, where, and who isn't.
std::string Checks::there_text(std::vector<std::size_t>& there, std::vector<std::size_t>& missing) {
    for (std::size_t rank = 0; rank < calls_.size(); ++rank) (calls_[rank].empty() ? missing : there).push_back(rank);
    if (there.empty()) return {};
    const CheckedCall& call = calls_[there[0]].front().call;
    const std::string where = place_text(call.place);
    return base::cat(ranks_text(there), there.size() == 1 ? " is" : " are", " in ", call.function, " on ",
                     comm_text(comm_, size_), where.empty() ? "" : " at ", where);
}

std::size_t Checks::rank_of(int world_rank) const {
    return static_cast<std::size_t>(std::ranges::find(world_ranks_, world_rank) - world_ranks_.begin());
}

/// Rank 0 waits for a rank that waits for rank 0 in another communicator's collective, which rank 0 leads as well:
/// neither will ever come.
bool Checks::is_out_of_order() {
    if (calls_[0].empty() || world_ranks_.empty() || Clock::now() < since_ + patience_with_order) return false;
    // Else another thread may come.
    int level = MPI_THREAD_SINGLE;
    if (PMPI_Query_thread(&level) != MPI_SUCCESS || level == MPI_THREAD_MULTIPLE) return false;
    for (Checks* const other : all_checks()) {
        if (other == this || !other->leads() || !other->calls_[0].empty() || other->world_ranks_.empty()) continue;
        for (std::size_t rank = 1; rank < calls_.size(); ++rank) {
            if (!calls_[rank].empty()) continue;
            const std::size_t its = other->rank_of(world_ranks_[rank]);
            if (its >= other->calls_.size() || other->calls_[its].empty() || !other->calls_[its].back().blocks)
                continue;
            std::vector<std::size_t> there, missing, others_there, others_missing;
            const std::string here = there_text(there, missing);
            const std::string elsewhere = other->there_text(others_there, others_missing);
            std::fprintf(stderr,
                         "palmette: collectives in another order: %s and wait%s for %s;\n  %s and wait%s for %s: let "
                         "all ranks call the collectives of both communicators in the same order\n",
                         here.c_str(), there.size() == 1 ? "s" : "", ranks_text(missing).c_str(), elsewhere.c_str(),
                         others_there.size() == 1 ? "s" : "", ranks_text(others_missing).c_str());
            std::fflush(stderr);
            for (const std::size_t one : there) calls_[one].pop_front();
            for (const std::size_t one : missing) owed_[one].push_back(MPI_ERR_OTHER);
            answer(there, MPI_ERR_OTHER);
            return true;
        }
    }
    return false;
}

void Checks::tell_of_missing() {
    if (told_of_missing_ || !leads() || is_idle() || Clock::now() < since_ + patience) return;
    std::vector<std::size_t> there, missing;
    const std::string text = there_text(there, missing);
    if (there.empty() || missing.empty()) return;
    told_of_missing_ = true;
    std::fprintf(stderr, "palmette: %s and wait%s for %s since 1 s\n", text.c_str(), there.size() == 1 ? "s" : "",
                 ranks_text(missing).c_str());
    std::fflush(stderr);
    answer(there, has_told);
}

/// Rank 0 isn't in a collective that others are in, nor in another one. The first of them say so.
void Checks::wait_without_rank_0(const CheckedCall& mine, Clock::time_point since) {
    if (told_of_missing_ || leads() || rank_ > 3 || Clock::now() < since + patience_without_rank_0) return;
    told_of_missing_ = true;
    const std::string where = place_text(mine.place);
    std::fprintf(stderr, "palmette: rank %d is in %s on %s%s%s and waits since 1.5 s for rank 0, which is in none\n",
                 rank_, mine.function.c_str(), comm_text(comm_, size_).c_str(), where.empty() ? "" : " at ",
                 where.c_str());
    std::fflush(stderr);
}

/// Waits for a while, so that a mistake is told before the MPI meets it, and an error is returned as of a blocking
/// call. Where that was in vain, ranks start at different times: then for half as long the next time.
int Checks::start(const CheckedCall& mine) {
    std::unique_lock lock(checks_mutex());
    post(mine, false);
    const auto until = Clock::now() + patience_with_started_;
    for (;;) {
        progress();
        if (answer_) return *std::exchange(answer_, std::nullopt);
        if (Clock::now() > until) break;
        lock.unlock();
        std::this_thread::sleep_for(std::chrono::microseconds(20));
        lock.lock();
    }
    given_up_ = posted_;
    patience_with_started_ = std::max<Clock::duration>(patience_with_started_ / 2, std::chrono::milliseconds(1));
    return MPI_SUCCESS;
}

int Checks::wait_for_answer(const CheckedCall& mine) {
    std::unique_lock lock(checks_mutex());
    if (!leads()) told_of_missing_ = false;
    const auto since = Clock::now();
    post(mine, true);
    for (int turns = 0;; ++turns) {
        for (Checks* const one : std::vector(all_checks())) one->progress();
        if (answer_) return *std::exchange(answer_, std::nullopt);
        if (leads() && is_out_of_order()) continue;
        for (Checks* const one : all_checks()) one->tell_of_missing();
        wait_without_rank_0(mine, since);
        lock.unlock();
        if (turns > 100) std::this_thread::sleep_for(std::chrono::microseconds(turns > 2000 ? 1000 : 50));
        if (has_outstanding()) progress_background();
        lock.lock();
    }
}

}  // namespace

int check_call(const CheckedCall& mine, MPI_Comm comm, MPI_Comm shadow_comm) {
    std::unique_lock lock(checks_mutex());
    Checks& checks = Checks::of(comm, shadow_comm);
    checks.comm_ = comm;
    lock.unlock();
    return checks.wait_for_answer(mine);
}

int check_started(const CheckedCall& mine, MPI_Comm comm, MPI_Comm shadow_comm) {
    std::unique_lock lock(checks_mutex());
    Checks& checks = Checks::of(comm, shadow_comm);
    lock.unlock();
    return checks.start(mine);
}

void begin_checks(MPI_Comm comm, MPI_Comm shadow_comm) {
    const std::lock_guard lock(checks_mutex());
    Checks::of(comm, shadow_comm);
}

bool progress_checks() {
    const std::lock_guard lock(checks_mutex());
    bool idle = true;
    for (Checks* const one : std::vector(all_checks())) idle = one->progress() && idle;
    return idle;
}

std::string op_text(MPI_Op op) {
    const std::array<std::pair<MPI_Op, const char*>, 14> known = {{{MPI_MAX, "MPI_MAX"},
                                                                   {MPI_MIN, "MPI_MIN"},
                                                                   {MPI_SUM, "MPI_SUM"},
                                                                   {MPI_PROD, "MPI_PROD"},
                                                                   {MPI_LAND, "MPI_LAND"},
                                                                   {MPI_BAND, "MPI_BAND"},
                                                                   {MPI_LOR, "MPI_LOR"},
                                                                   {MPI_BOR, "MPI_BOR"},
                                                                   {MPI_LXOR, "MPI_LXOR"},
                                                                   {MPI_BXOR, "MPI_BXOR"},
                                                                   {MPI_MAXLOC, "MPI_MAXLOC"},
                                                                   {MPI_MINLOC, "MPI_MINLOC"},
                                                                   {MPI_REPLACE, "MPI_REPLACE"},
                                                                   {MPI_NO_OP, "MPI_NO_OP"}}};
    for (const auto& [handle, name] : known)
        if (handle == op) return name;
    if (op == MPI_OP_NULL) return "MPI_OP_NULL";
    int commutes = 1;
    PMPI_Op_commutative(op, &commutes);
    return commutes ? "(user-defined, commutative)" : "(user-defined, non-commutative)";
}

}  // namespace palmette::runtime
