// All functions that complete requests.
#pragma once

#include "run.hpp"

namespace oracle {

inline constexpr About completing(const char* function) { return {function, none}; }

/// Completes some outstanding requests by the function that this rank draws.
class Completing {
  public:
    Completing(Run& run, const std::vector<std::size_t>& which) : run_(run) {
        for (const std::size_t i : which) one_.push_back(run.pending[i]);
        for (const Pending& one : one_) handles_.push_back(one.handle);
        statuses_.resize(one_.size() + 1);
        indices_.resize(one_.size() + 1);
        std::vector<Pending> left;
        for (std::size_t i = 0; i < run.pending.size(); ++i)
            if (std::find(which.begin(), which.end(), i) == which.end()) left.push_back(run.pending[i]);
        run.pending = std::move(left);
        ignores_ = run.own.one_in(2);
        left_ = static_cast<int>(one_.size());
    }

    void complete() {
        if (one_.empty()) return;
        // MPICH 5.0 fails where persistent collectives or partitioned messages are completed with others.
        if (std::any_of(one_.begin(), one_.end(), [](const Pending& one) { return one.alone; }))
            return run_.own.one_in(2) ? wait_each() : test_each();
        switch (run_.own.below(8)) {
            case 0:
                return wait_each();
            case 1:
                return wait_all();
            case 2:
                return wait_any();
            case 3:
                return wait_some();
            case 4:
                return test_each();
            case 5:
                return test_all();
            case 6:
                return test_any();
            default:
                return test_some();
        }
    }

    void wait_each() {
        for (std::size_t i = 0; i < one_.size(); ++i) {
            if (is_null(i)) continue;
            if (printing)
                std::fprintf(stderr, "%d.%d waits for %s\n", world_rank, run_.account.thread,
                             text_of(run_.account.requests[one_[i].request]).c_str());
            made(run_.account, completing("MPI_Wait"), MPI_Wait, &handles_[i], status());
            done(i);
        }
    }
    void wait_all() {
        made(run_.account, completing("MPI_Waitall"), MPI_Waitall, count(), handles_.data(), statuses());
        for (std::size_t i = 0; i < one_.size(); ++i) done(i);
    }

  private:
    static constexpr int patience = 12;  ///< tests before a wait

    int count() const { return static_cast<int>(handles_.size()); }
    bool is_null(std::size_t i) const { return handles_[i] == MPI_REQUEST_NULL; }
    MPI_Status* status() { return ignores_ ? MPI_STATUS_IGNORE : statuses_.data(); }
    MPI_Status* statuses() { return ignores_ ? MPI_STATUSES_IGNORE : statuses_.data(); }
    void done(std::size_t i) {
        if (done_.size() < one_.size()) done_.resize(one_.size());
        if (done_[i]) return;
        done_[i] = true;
        --left_;
        run_.completed(one_[i]);
    }
    void wait_any() {
        while (left_ > 0) {
            int index = MPI_UNDEFINED;
            made(run_.account, completing("MPI_Waitany"), MPI_Waitany, count(), handles_.data(), &index, status());
            if (index == MPI_UNDEFINED) return;  // as Open MPI says of persistent buffered sends
            done(static_cast<std::size_t>(index));
        }
    }
    void some(int found) {
        for (int i = 0; i < found; ++i) done(static_cast<std::size_t>(indices_[static_cast<std::size_t>(i)]));
    }
    void wait_some() {
        while (left_ > 0) {
            int found = 0;
            made(run_.account, completing("MPI_Waitsome"), MPI_Waitsome, count(), handles_.data(), &found,
                 indices_.data(), statuses());
            if (found == MPI_UNDEFINED) return;  // as Open MPI says of persistent buffered sends
            some(found);
        }
    }
    void test_each() {
        for (int tries = 0; tries < patience && left_ > 0; ++tries, sched_yield())
            for (std::size_t i = 0; i < one_.size(); ++i) {
                if (is_null(i)) continue;
                int flag = 0;
                if (run_.own.one_in(4)) {
                    made(run_.account, completing("MPI_Request_get_status"), MPI_Request_get_status, handles_[i], &flag,
                         MPI_STATUS_IGNORE);
                    continue;
                }
                made(run_.account, completing("MPI_Test"), MPI_Test, &handles_[i], &flag, status());
                if (flag) done(i);
            }
        wait_each();
    }
    void test_all() {
        for (int tries = 0; tries < patience; ++tries, sched_yield()) {
            int flag = 0;
            made(run_.account, completing("MPI_Testall"), MPI_Testall, count(), handles_.data(), &flag, statuses());
            if (!flag) continue;
            for (std::size_t i = 0; i < one_.size(); ++i) done(i);
            return;
        }
        wait_all();
    }
    void test_any() {
        for (int tries = 0; tries < patience && left_ > 0; ++tries, sched_yield()) {
            int flag = 0;
            int index = MPI_UNDEFINED;
            made(run_.account, completing("MPI_Testany"), MPI_Testany, count(), handles_.data(), &index, &flag,
                 status());
            if (flag && index != MPI_UNDEFINED) done(static_cast<std::size_t>(index));
        }
        wait_any();
    }
    void test_some() {
        for (int tries = 0; tries < patience && left_ > 0; ++tries, sched_yield()) {
            int found = 0;
            made(run_.account, completing("MPI_Testsome"), MPI_Testsome, count(), handles_.data(), &found,
                 indices_.data(), statuses());
            if (found != MPI_UNDEFINED) some(found);
        }
        wait_some();
    }

    Run& run_;
    std::vector<Pending> one_;
    std::vector<MPI_Request> handles_;
    std::vector<MPI_Status> statuses_;
    std::vector<int> indices_;
    std::vector<bool> done_;
    bool ignores_ = false;
    int left_ = 0;
};

/// Some of what is outstanding, as this rank likes.
inline void complete_some(Run& run) {
    std::vector<std::size_t> which;
    for (std::size_t i = 0; i < run.pending.size(); ++i)
        if (run.own.one_in(2)) which.push_back(i);
    Completing(run, which).complete();
}

inline void complete_all(Run& run) {
    std::vector<std::size_t> which(run.pending.size());
    for (std::size_t i = 0; i < which.size(); ++i) which[i] = i;
    run.own.shuffle(which);
    Completing(run, which).complete();
}

}  // namespace oracle
