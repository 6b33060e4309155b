// Calls that the MPI makes of itself while we serve one must not come back to us.
#pragma once

namespace palmette::interpose {

/// Marks this thread as inside of palmette for its lifetime.
class Guard {
  public:
    Guard() : entered_(!inside_) { inside_ = true; }
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;
    ~Guard() {
        if (entered_) inside_ = false;
    }
    /// False when this thread was inside already.
    bool entered() const { return entered_; }

  private:
    static thread_local bool inside_;
    bool entered_;
};

/// True when the runtime is up. A program that only opened sessions never called MPI_Init: the runtime is started at its first collective.
bool started();

}  // namespace palmette::interpose
