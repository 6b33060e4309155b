#include "palmette/aggregate/io_uring_registrar.hpp"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <numeric>
#include <utility>

#include "palmette/aggregate/socket.hpp"
#include "palmette/base/text.hpp"

#if __has_include(<linux/io_uring.h>)
#include <linux/io_uring.h>
#endif

namespace palmette::aggregate {

// Before Linux 6.1 headers have no report of copies; they come with what else is used here.
#if defined(IORING_SEND_ZC_REPORT_USAGE) && defined(__NR_io_uring_setup)

namespace {

constexpr unsigned submissions = 8;
constexpr std::size_t most_in_send = std::size_t{1} << 28;

/// Memory of the kernel's, mapped.
class KernelMapping {
  public:
    KernelMapping(int ring, std::size_t bytes, std::int64_t what) : bytes_(bytes) {
        memory_ = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring, what);
    }
    ~KernelMapping() {
        if (*this) munmap(memory_, bytes_);
    }
    KernelMapping(const KernelMapping&) = delete;
    KernelMapping& operator=(const KernelMapping&) = delete;
    explicit operator bool() const { return memory_ != MAP_FAILED; }
    template <class T>
    T* at(std::size_t offset) const {
        return reinterpret_cast<T*>(static_cast<char*>(memory_) + offset);
    }

  private:
    void* memory_;
    std::size_t bytes_;
};

std::size_t queue_bytes(const io_uring_params& made) {
    const std::size_t submitted = made.sq_off.array + made.sq_entries * sizeof(std::uint32_t);
    const std::size_t completed = made.cq_off.cqes + made.cq_entries * sizeof(io_uring_cqe);
    return std::max(submitted, completed);
}

std::string reason(const char* what, int error) {
    std::string out = base::cat(what, ": ", std::strerror(error));
    if (error == EPERM || error == EACCES)
        out += " (kernel.io_uring_disabled, or a container's seccomp policy)";
    else if (error == ENOMEM)
        out += " (RLIMIT_MEMLOCK)";
    else if (error == ENOSYS || error == EINVAL)
        out += " (the kernel is too old)";
    return out;
}

}  // namespace

struct IoUringRegistrar::Ring {
    Ring(Fd opened, const io_uring_params& params)
        : fd(std::move(opened)),
          made(params),
          queues(fd.get(), queue_bytes(made), IORING_OFF_SQ_RING),
          entries(fd.get(), made.sq_entries * sizeof(io_uring_sqe), static_cast<std::int64_t>(IORING_OFF_SQES)) {}

    int update(std::uint32_t slot, void* memory, std::size_t bytes) const {
        iovec buffer{memory, bytes};
        io_uring_rsrc_update2 update{};
        update.offset = slot;
        update.data = reinterpret_cast<std::uintptr_t>(&buffer);
        update.nr = 1;
        return syscall(__NR_io_uring_register, fd.get(), IORING_REGISTER_BUFFERS_UPDATE, &update, sizeof update) < 0
                   ? errno
                   : 0;
    }

    void submit(const io_uring_sqe& wanted) {
        std::atomic_ref tail(*queues.at<std::uint32_t>(made.sq_off.tail));
        const std::uint32_t at = tail.load(std::memory_order_relaxed);
        const std::uint32_t index = at & *queues.at<std::uint32_t>(made.sq_off.ring_mask);
        entries.at<io_uring_sqe>(0)[index] = wanted;
        queues.at<std::uint32_t>(made.sq_off.array)[index] = index;
        tail.store(at + 1, std::memory_order_release);
        while (syscall(__NR_io_uring_enter, fd.get(), 1, 0, 0, nullptr, 0) < 0 && errno == EINTR) continue;
    }

    io_uring_cqe wait() {
        std::atomic_ref head(*queues.at<std::uint32_t>(made.cq_off.head));
        const std::atomic_ref tail(*queues.at<std::uint32_t>(made.cq_off.tail));
        const std::uint32_t at = head.load(std::memory_order_relaxed);
        while (tail.load(std::memory_order_acquire) == at)
            syscall(__NR_io_uring_enter, fd.get(), 0, 1, IORING_ENTER_GETEVENTS, nullptr, 0);
        const io_uring_cqe out =
            queues.at<io_uring_cqe>(made.cq_off.cqes)[at & *queues.at<std::uint32_t>(made.cq_off.ring_mask)];
        head.store(at + 1, std::memory_order_release);
        return out;
    }

    Fd fd;
    io_uring_params made;
    KernelMapping queues, entries;
};

std::unique_ptr<IoUringRegistrar> IoUringRegistrar::open(unsigned buffers, std::string& why) {
    io_uring_params params{};
    Fd fd(static_cast<int>(syscall(__NR_io_uring_setup, submissions, &params)));
    if (!fd) {
        why = reason("io_uring_setup", errno);
        return nullptr;
    }
    if (!(params.features & IORING_FEAT_SINGLE_MMAP)) {
        why = "io_uring: the kernel is too old";
        return nullptr;
    }
    auto ring = std::make_unique<Ring>(std::move(fd), params);
    if (!ring->queues || !ring->entries) {
        why = reason("io_uring's queues can't be mapped", errno);
        return nullptr;
    }
    io_uring_rsrc_register table{};
    table.nr = buffers;
    table.flags = IORING_RSRC_REGISTER_SPARSE;
    if (syscall(__NR_io_uring_register, ring->fd.get(), IORING_REGISTER_BUFFERS2, &table, sizeof table) < 0) {
        why = reason("io_uring's table of buffers", errno);
        return nullptr;
    }
    return std::unique_ptr<IoUringRegistrar>(new IoUringRegistrar(std::move(ring), buffers));
}

std::uintptr_t IoUringRegistrar::register_memory(void* memory, std::size_t bytes) {
    refused_by_ = free_.empty() ? ENOSPC : ring_->update(free_.back(), memory, bytes);
    if (refused_by_) return 0;
    const std::uint32_t slot = free_.back();
    free_.pop_back();
    return std::uintptr_t{slot} + 1;
}

void IoUringRegistrar::unregister_memory(std::uintptr_t handle) noexcept {
    const auto slot = static_cast<std::uint32_t>(handle - 1);
    // A slot that couldn't be emptied keeps its pages, and isn't used again.
    if (ring_->update(slot, nullptr, 0) == 0) free_.push_back(slot);
}

IoUringRegistrar::SendResult IoUringRegistrar::send(int socket, std::uintptr_t handle, const void* memory,
                                                    std::size_t bytes) {
    SendResult out;
    for (std::size_t done = 0; done < bytes;) {
        io_uring_sqe wanted{};
        wanted.opcode = IORING_OP_SEND_ZC;
        wanted.fd = socket;
        wanted.addr = reinterpret_cast<std::uintptr_t>(memory) + done;
        wanted.len = static_cast<std::uint32_t>(std::min(bytes - done, most_in_send));
        wanted.ioprio = IORING_RECVSEND_FIXED_BUF | (reports_copies_ ? IORING_SEND_ZC_REPORT_USAGE : 0U);
        wanted.buf_index = static_cast<std::uint16_t>(handle - 1);
        ring_->submit(wanted);
        // The result, then the notice that the pages are free.
        const io_uring_cqe result = ring_->wait();
        if (result.flags & IORING_CQE_F_MORE) {
            const auto notice = static_cast<std::uint32_t>(ring_->wait().res);
            if (reports_copies_)
                out.copied = out.copied.value_or(false) || (notice & IORING_NOTIF_USAGE_ZC_COPIED) != 0;
        }
        if (result.res == -EINVAL && std::exchange(reports_copies_, false)) continue;
        if (result.res <= 0) {
            out.error = result.res < 0 ? -result.res : EPIPE;
            return out;
        }
        done += static_cast<std::size_t>(result.res);
    }
    return out;
}

#else

struct IoUringRegistrar::Ring {};
std::unique_ptr<IoUringRegistrar> IoUringRegistrar::open(unsigned, std::string& why) {
    why = "io_uring: built with headers of an older Linux than 6.2";
    return nullptr;
}
std::uintptr_t IoUringRegistrar::register_memory(void*, std::size_t) { return 0; }
void IoUringRegistrar::unregister_memory(std::uintptr_t) noexcept {}
IoUringRegistrar::SendResult IoUringRegistrar::send(int, std::uintptr_t, const void*, std::size_t) {
    return {ENOSYS, {}};
}

#endif

IoUringRegistrar::IoUringRegistrar(std::unique_ptr<Ring> ring, unsigned buffers)
    : ring_(std::move(ring)), free_(buffers) {
    // Slot 0 first.
    std::iota(free_.rbegin(), free_.rend(), 0U);
}

IoUringRegistrar::~IoUringRegistrar() = default;

/// The table is full, or RLIMIT_MEMLOCK is reached.
bool IoUringRegistrar::exhausted() const { return refused_by_ == ENOSPC || refused_by_ == ENOMEM; }

}  // namespace palmette::aggregate
