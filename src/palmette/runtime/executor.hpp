// Runs a bound program over MPI point to point.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <vector>

#include "palmette/runtime/binding.hpp"
#include "palmette/runtime/waiting.hpp"

namespace palmette::runtime {

/// Where the buffers of one call begin. Send is read only, whatever its type says.
struct Bases {
    char* send = nullptr;
    char* recv = nullptr;
};

/// Work space that one communicator keeps between calls, so that a repeated call allocates nothing.
class Executor {
  public:
    explicit Executor(Waiting waiting) : waiting_(waiting) {}

    /// Room for a program. Throws std::bad_alloc; call it before any rank has sent anything.
    void prepare(const BoundProgram& program);

    /// Runs to completion. Starts every step as soon as what it waits for is done, then waits inside of the MPI, so that
    /// the MPI's own way of waiting (spin, yield, block) stays in force. Returns the first MPI error, MPI_SUCCESS otherwise.
    int run(const BoundProgram& program, Bases bases, MPI_Comm comm);

    /// The plan's own blocks, in the order of Program::scratch; valid until the next run.
    const char* scratch() const { return scratch_.data(); }

  private:
    char* address(const Piece& piece, const Bases& bases);
    int start(const BoundProgram& program, std::uint32_t step, const Bases& bases, MPI_Comm comm);
    int start_message(const BoundStep& step, std::uint32_t index, char* data, MPI_Comm comm);
    int run_last(const BoundStep& step, char* data, MPI_Comm comm);
    void collect(const BoundProgram& program, const BoundStep& step, const Bases& bases, bool into_staging);
    void copy(const BoundProgram& program, const BoundStep& step, const Bases& bases);
    void complete(const BoundProgram& program, std::uint32_t step, const Bases& bases);

    Waiting waiting_;
    std::vector<char> scratch_, staging_;
    std::vector<std::uint32_t> waits_, left_, ready_;
    std::vector<MPI_Request> requests_;
    std::vector<std::uint32_t> step_of_request_;
    std::vector<int> finished_;
    std::size_t next_ready_ = 0;
    int active_ = 0;
    std::size_t done_ = 0;
};

}  // namespace palmette::runtime
