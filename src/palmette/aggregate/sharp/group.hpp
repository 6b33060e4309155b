// One member's part of a group of switches: a job and a group of libsharp_coll's, and operations in it.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include "palmette/aggregate/registration_cache.hpp"
#include "palmette/aggregate/service.hpp"
#include "palmette/aggregate/sharp/library.hpp"
#include "palmette/aggregate/sharp/out_of_band.hpp"
#include "palmette/aggregate/sharp/pool.hpp"
#include "palmette/aggregate/sharp/types.hpp"

namespace palmette::aggregate::sharp {

/// Joining has three stages, `init`, `create` and `prove`; each is called by all members, and the next one only when it
/// has passed on all. `close` ends it, wherever it stands.
///
/// An operation that some member's library fails ends the group: that member tells the others out of band, since
/// switches don't.
class Group final : public Service, private Registrar {
  public:
    static constexpr std::uint32_t most_outstanding = 64;
    static constexpr std::size_t slots = 8, slot_bytes = 131072;
    /// Shorter pieces need no registered memory.
    static constexpr std::size_t registered_from = 256;
    /// Operations of at least so many bytes are sent from where they are, if that is memory of MPI_Alloc_mem; what is
    /// shorter is copied sooner than looked up. Results always come into the pool: switches may still write them when
    /// the operation has been given up and its memory is the program's again.
    static constexpr std::size_t direct_from = 8192;

    Group(const Library& library, OutOfBand& out_of_band, int rank, int size, bool several_threads)
        : library_(library), out_of_band_(out_of_band), rank_(rank), size_(size), threads_(several_threads) {}
    /// Waits for nobody, and leaves what has not been closed to the process's end.
    ~Group() override;

    /// Makes the job; `job_id`: the same on all members, and on nobody else.
    Problem init(std::uint64_t job_id);
    /// Makes the group, and asks what it combines.
    Problem create();
    /// Sums something whose sum is known. This takes the lock of the tree where there is one, which may be another
    /// job's for a while: members try again together a few times.
    Problem prove();
    /// Collective: ends the operations, the group and the job. Where some member's operations never end, all is left as
    /// it is, for the switches may still write; then no member of this process joins any group again.
    void close() noexcept;

    const Combines& combines() const { return combines_; }
    /// Registrations of the program's own memory; the pool is registered once.
    RegistrationCache::Counts registrations() const;

    void progress() noexcept override;
    void leave() noexcept override;
    bool ready() const override { return proven_; }
    bool failed() const override { return reason_ != Reason::none; }
    Reason reason() const override { return reason_; }
    std::string_view detail() const override { return detail_.view(); }
    Reason post(const Operation& operation, std::uint32_t& number) noexcept override;
    bool done(std::uint32_t number) const override { return static_cast<std::int32_t>(finished_ - number) > 0; }
    Watch watch() const override;

  private:
    /// A part of an operation, in a slot.
    struct Piece {
        void* request = nullptr;
        std::uint32_t operation = 0;
        std::uint64_t first = 0, count = 0;  ///< elements
    };
    struct Open {
        Operation operation;
        std::uint64_t sent = 0, received = 0;              ///< elements
        RegistrationCache::Registration* input = nullptr;  ///< null: it is copied
    };

    std::uintptr_t register_memory(void* memory, std::size_t bytes) override;
    void unregister_memory(std::uintptr_t handle) noexcept override;
    void take_input(Open& open) noexcept;
    void release_input(Open& open) noexcept;
    void forget_registrations() noexcept;

    int agree(int mine) noexcept { return smallest(out_of_band_, rank_, size_, mine); }
    Problem refused(const char* function, int code);
    int begin(const DataDescription& from, std::size_t slot, DataType type, ReduceOp op, std::size_t count,
              void*& request);
    DataDescription in_pool(char* data, std::size_t bytes) const;
    Problem make_pool();
    int try_sum(bool& open) noexcept;
    void fail(Reason reason, const char* what, int code) noexcept;
    void issue() noexcept;
    bool take_finished() noexcept;
    bool drain() noexcept;
    Open& at(std::uint32_t number) { return open_[number % most_outstanding]; }
    std::size_t in_flight() const { return issued_ - taken_; }

    const Library& library_;
    OutOfBand& out_of_band_;
    int rank_, size_;
    bool threads_;
    Context* context_ = nullptr;
    Comm* comm_ = nullptr;
    Combines combines_;
    std::unique_ptr<Pool> pool_;
    std::unique_ptr<RegistrationCache> cache_;
    int registration_error_ = 0;  ///< error of the last registration that was refused
    bool proven_ = false, left_ = false;
    Reason reason_ = Reason::none;
    Detail detail_;

    std::array<Open, most_outstanding> open_{};
    std::uint32_t posted_ = 0, finished_ = 0;
    std::uint32_t sending_ = 0;  ///< the operation whose pieces are issued
    std::array<Piece, slots> pieces_{};
    std::size_t issued_ = 0, taken_ = 0;
    unsigned polls_ = 0;  ///< in vain, since something has finished
};

}  // namespace palmette::aggregate::sharp
