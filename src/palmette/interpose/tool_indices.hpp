// Indices of MPI_T's variables where some of palmette's follow the MPI's own.
#pragma once

#include <mpi.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <mutex>
#include <set>
#include <string_view>

namespace palmette::interpose {

/// An index never changes, and the MPI may get more variables while it runs. So ours stand behind those that it had
/// when somebody asked first; those that it gets later come behind ours.
class ToolIndices {
  public:
    explicit ToolIndices(int own) : own_(own) {}
    /// `get_num`: the MPI's own. Returns its code; what is below needs a call that succeeded.
    template <class GetNum>
    int settle(GetNum get_num) {
        if (first_.load() >= 0) return MPI_SUCCESS;
        int number = 0;
        const int code = get_num(&number);
        int unknown = -1;
        if (code == MPI_SUCCESS) first_.compare_exchange_strong(unknown, number);
        return code;
    }
    bool is_own(int index) const { return index >= first_ && index < first_ + own_; }
    std::size_t own(int index) const { return static_cast<std::size_t>(index - first_); }
    int of_own(std::size_t which) const { return first_ + static_cast<int>(which); }
    int to_mpi(int index) const { return index < first_ ? index : index - own_; }
    int from_mpi(int index) const { return index < first_ ? index : index + own_; }
    int all(int of_mpi) const { return of_mpi + own_; }

  private:
    int own_;
    std::atomic<int> first_{-1};
};

/// Handles that palmette has given out.
template <class Variable>
class ToolHandles {
  public:
    /// Some MPIs' handles are of pointers to what nobody can make.
    template <class Handle>
    void add(const Variable& variable, Handle* handle) {
        const std::lock_guard lock(mutex_);
        auto* const made = new const Variable*(&variable);
        known_.insert(made);
        *handle = reinterpret_cast<Handle>(made);
    }
    /// Null: it is the MPI's.
    template <class Handle>
    const Variable* find(Handle handle) const {
        const std::lock_guard lock(mutex_);
        const auto found = known_.find(reinterpret_cast<const void*>(handle));
        return found == known_.end() ? nullptr : *static_cast<const Variable* const*>(*found);
    }
    template <class Handle>
    bool free(Handle handle) {
        const std::lock_guard lock(mutex_);
        if (known_.erase(reinterpret_cast<const void*>(handle)) == 0) return false;
        delete reinterpret_cast<const Variable* const*>(handle);
        return true;
    }

  private:
    mutable std::mutex mutex_;
    std::set<const void*> known_;
};

/// As MPI_T gives texts: `length` is how much fits, with the 0 behind it, and becomes how long it is.
inline void give_text(std::string_view text, char* to, int* length) {
    if (!length) return;
    if (to && *length > 0) {
        const std::size_t most = std::min(text.size(), static_cast<std::size_t>(*length) - 1);
        std::memcpy(to, text.data(), most);
        to[most] = '\0';
    }
    *length = static_cast<int>(text.size()) + 1;
}

template <class Value>
void give(Value* to, Value value) {
    if (to) *to = value;
}

}  // namespace palmette::interpose
