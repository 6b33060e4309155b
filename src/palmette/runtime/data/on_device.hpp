// A call whose buffers lie in device memory: its data is staged in pinned host memory, on this rank alone.
#pragma once

#include <mpi.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "palmette/device/place.hpp"
#include "palmette/device/staged_buffer.hpp"
#include "palmette/execute/executor.hpp"
#include "palmette/runtime/data/call_arguments.hpp"

namespace palmette::runtime {

/// Whether calls may pass without a look at their buffers: no driver has been loaded, or all are the host's for good,
/// or no buffers at all.
template <class... Buffers>
bool all_on_host(Buffers... buffers) {
    return !device::driver_loaded() || device::known_host((buffers == MPI_IN_PLACE ? nullptr : buffers)...);
}

/// What device buffers have cost, by function; for the report.
struct DeviceCounts {
    std::atomic<std::int64_t> calls{0}, bytes_read{0}, bytes_written{0}, failures{0};
    std::atomic<std::int64_t> in_place{0};  ///< calls of them that ran on device memory itself
    std::atomic<std::int64_t> left{0};      ///< calls of them that the MPI made on device memory itself
};
extern constinit std::array<DeviceCounts, select::all_function_count> device_counts;
/// Counts of compositions' runs on device memory.
extern constinit DeviceCounts composed_device_counts;

/// The device buffers of one call, and their copies that the call is made with instead. Which of a call's arguments are
/// significant at this rank is decided as MPI does; others are left alone. What MPI must reject isn't staged.
///
/// MPI orders nothing with a device's queues: the program has synchronised before the call, and results are complete
/// when it returns, or when the request is.
class OnDevice final : public execute::StepData {
  public:
    explicit OnDevice(const CallArguments& arguments);
    ~OnDevice() override;
    OnDevice(const OnDevice&) = delete;
    OnDevice& operator=(const OnDevice&) = delete;

    /// Whether any buffer lies on a device.
    bool any() const { return send_.is_open() || recv_.is_open(); }

    /// The arguments in place of the program's.
    const void* send(const void* given) const {
        return one_for_both_ ? recv_.host() + send_base_ : address_in(send_, send_base_, given);
    }
    void* recv(void* given) const { return const_cast<void*>(address_in(recv_, recv_base_, given)); }
    void* buffer(void* given) const { return send_.is_open() ? const_cast<void*>(send(given)) : recv(given); }

    /// Copies all input to the host, and waits for it.
    void read_all();
    /// Begins to copy the output back after the call, whose code is `code`.
    void start_writing_back(int code);
    /// Whether `finish` won't wait any more.
    bool is_done() { return send_.is_done() && recv_.is_done(); }
    /// Whether the communicator's error handler is MPI_ERRORS_RETURN.
    bool errors_return() const;
    /// Waits for that. Returns the program's code; an error of a copy has been raised on `comm`, unless that is null.
    int finish(int code, MPI_Comm comm);
    /// All of it.
    int close(int code) {
        start_writing_back(code);
        return finish(code, comm_);
    }
    /// For the next start of a persistent operation.
    void restart();

    /// The call that this thread is making on staged buffers; null: none.
    static OnDevice* current() { return current_; }
    /// Makes it this thread's: a blocking one until its output is copied back, others until they have been started.
    void make_current() { current_ = this; }
    void end_current() { current_ = nullptr; }

    /// The call is the MPI's to make. Where that takes the memory of these devices nothing is copied, and whoever has
    /// made this the thread's current call makes it with the program's own buffers. False: the copies serve.
    bool leave_to_mpi();
    bool is_left() const { return left_; }

    /// `program` reads and writes pieces while others are copied, from here until the output is copied back. Must
    /// precede `read_all`.
    void overlap(const execute::Bases& bases, const execute::BoundProgram& program);
    int about_to_read(std::int64_t offset, std::int64_t bytes) override;
    void wrote(std::int64_t offset, std::int64_t bytes) override;

    // For plans that run on device memory itself.

    /// Where a plan's base lies on the device that belongs to the call's send or receive buffer: as it is where that
    /// isn't staged. A base may lie outside of its buffer's data.
    char* on_device(char* base, bool of_send) const;
    const device::StagedBuffer& send_staging() const { return send_; }
    const device::StagedBuffer& recv_staging() const { return recv_; }
    /// Nothing is copied: the plan reads and writes device memory.
    void set_in_place() { in_place_ = true; }
    /// An error of the driver meanwhile; null: none.
    void note(device::Status failure) { failure_ = failure; }

  private:
    static const void* address_in(const device::StagedBuffer& buffer, std::int64_t base, const void* given) {
        return buffer.is_open() ? buffer.host() + base : given;
    }
    template <class Visit>
    void each_piece(const execute::BoundProgram& program, Visit visit);

    static constinit thread_local OnDevice* current_;

    select::Function function_;
    MPI_Comm comm_;
    device::StagedBuffer send_, recv_;  ///< one for both sides where these overlap: recv_
    /// From the beginning of the staged data to the program's argument; may be outside.
    std::int64_t send_base_ = 0, recv_base_ = 0;
    bool reads_send_ = false, reads_recv_ = false, writes_recv_ = false, one_for_both_ = false;
    std::int64_t own_begin_ = 0, own_bytes_ = -1;  ///< the part of recv_ that is read, where it isn't all
    bool has_read_ = false, in_place_ = false, left_ = false;
    device::Status failure_ = nullptr;
    execute::Bases bases_;
    std::vector<std::int64_t>
        unwritten_;  ///< by piece of recv_: bytes that steps have still to write; empty: no overlap
};

}  // namespace palmette::runtime
