// Runs a bound program: messages over MPI point to point, exposures through the node's shared memory.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "palmette/base/byte_room.hpp"
#include "palmette/runtime/binding.hpp"
#include "palmette/runtime/operation.hpp"
#include "palmette/runtime/outbox.hpp"
#include "palmette/runtime/patience.hpp"
#include "palmette/runtime/shared_node.hpp"
#include "palmette/runtime/waiting.hpp"

namespace palmette::runtime {

/// Where the buffers of one call begin. Send is read only, whatever its type says.
struct Bases {
    char* send = nullptr;
    char* recv = nullptr;
    char* const* named = nullptr;  ///< further buffers of a composition
};

/// What a program needs to run besides itself. What it points at must live until the end.
struct Environment {
    Bases bases;
    MPI_Comm comm = MPI_COMM_NULL;
    int first_tag = 0;                     ///< added to every message's tag
    int answer_tags = 0;                   ///< added as well where a single copy is acknowledged; twice: sent after all
    const Operation* operation = nullptr;  ///< of reductions; the first, where there are several
    SharedNode* shared = nullptr;          ///< set for all members of a node or for none
    std::int64_t single_copy_from = INT64_MAX;  ///< exposures of so many bytes are read in the owner's memory
    Outbox* outbox = nullptr;                   ///< set where short messages had better be copied
};

/// Work space of one operation at a time. Kept between operations, so that a repeated call allocates nothing.
class Executor {
  public:
    /// `patience`: for waits in shared memory.
    explicit Executor(Waiting waiting, Patience patience = Patience(1, 1)) : waiting_(waiting), patience_(patience) {}

    /// Room for a program. Throws std::bad_alloc; call it before any rank has sent anything.
    void prepare(const BoundProgram& program);

    /// Runs to completion. Starts every step as soon as what it waits for is done. Where only messages are under way it waits inside of the MPI, so that the
    /// MPI's own way of waiting (spin, yield, block) stays in force. Returns the first MPI error, MPI_SUCCESS otherwise.
    int run(const BoundProgram& program, const Environment& environment);

    /// The same in pieces, for nonblocking operations without shared memory: begin, then progress until `done`. Neither blocks. `program`
    /// must live until then; `environment` is copied.
    int begin(const BoundProgram& program, const Environment& environment);
    int progress(bool& done);
    /// What was begun, to its end, waiting inside of the MPI where only messages are under way.
    int finish();

    /// How many pieces of other processes' memory the system hasn't let this one read since the last question; they
    /// came another way.
    std::int64_t take_refused_reads() { return std::exchange(refused_reads_, 0); }

    /// The plan's own blocks, layer by layer, in the order of Program::scratch; valid until the next run.
    const char* scratch() const { return scratch_.data(); }

  private:
    struct Operand {
        const Piece* piece = nullptr;
        std::int64_t used = 0;
        const char* exposed = nullptr;  ///< where pieces of the exposed buffer lie
    };

    char* address(const Piece& piece);
    const char* read_from(const Operand& operand) {
        const char* base =
            operand.piece->buffer == exposed_buffer ? operand.exposed + operand.piece->offset : address(*operand.piece);
        return base + operand.used;
    }
    static void advance(Operand& operand, std::int64_t bytes) {
        operand.used += bytes;
        if (operand.used == operand.piece->bytes) ++operand.piece, operand.used = 0;
    }
    const Piece* piece(std::uint32_t index) const { return program_->pieces.data() + index; }

    int start(std::uint32_t step);
    int start_message(const BoundStep& step, std::uint32_t index, char* data);
    int start_single_copy(const BoundStep& step, std::uint32_t index, char* data);
    int answer(std::uint32_t step);
    int start_pieces(const BoundStep& step, std::uint32_t index, char* data, int tag);
    int go_on_with_single_copy(std::uint32_t step, bool& completed);
    char* message_data(const BoundStep& step);
    int run_last(const BoundStep& step, char* data);
    void collect(const BoundStep& step, bool into_staging);
    void copy(const BoundStep& step, const char* exposed);
    int reduce(const BoundStep& step, const char* exposed);
    void complete(std::uint32_t step);
    int start_ready();
    void abandon();
    int take_finished(int count);
    int poll_messages(bool& any);

    int begin_sharing();
    void expose(const BoundStep& step);
    /// False: not there yet.
    bool pull(const BoundStep& step, int& error);
    int pull_by_copy(const BoundStep& step, const Exposure& exposure);
    int fetch(const BoundStep& step, const Exposure& exposure, std::int64_t offset, char* to, std::int64_t bytes,
              bool& refused);
    int poll_exposures(bool& any);
    int run_in_order();
    int wait_once();
    int let_mpi_progress();

    Waiting waiting_;
    Patience patience_;
    const BoundProgram* program_ = nullptr;
    Environment environment_;
    /// What the sender of a single copy tells of its data. Process 0: nothing to read, the data comes in messages.
    struct Offer {
        std::int64_t process;
        std::uint64_t address;
        std::int32_t
            answer;        ///< the receiver's: 0 when it has read, otherwise why it couldn't; not part of the message
        bool answered;     ///< the receiver has seen the offer
        bool in_messages;  ///< the data itself is under way
    };
    static constexpr int offer_bytes = 16;
    std::vector<Offer> offers_;  ///< by step, where there are single copies
    /// Members of the node that can't be read, and ranks that can't read here: others are tried again, for it may have
    /// been that piece of memory alone.
    std::vector<bool> unreadable_, refused_by_;
    std::int64_t refused_reads_ = 0;
    base::ByteRoom scratch_, staging_, bounce_;
    std::vector<std::uint32_t> waits_, left_, ready_, pending_;
    std::vector<MPI_Request> requests_;
    std::vector<std::uint32_t> step_of_request_;
    std::vector<int> finished_;
    std::size_t next_ready_ = 0, started_ = 0;
    int active_ = 0;
    std::size_t pending_count_ = 0;
    std::size_t done_ = 0;
    bool may_block_ = true;
};

}  // namespace palmette::runtime
