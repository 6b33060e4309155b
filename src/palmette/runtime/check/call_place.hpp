// Where the program makes a collective, in words: the line of Python, or of C, C++ or Fortran.
#pragma once

#include <string>

namespace palmette::runtime {

/// The place of the call that this thread is in: the innermost line of Python outside of mpi4py where an interpreter
/// runs it, else the innermost return address outside of palmette and the MPI, as module and offset. Takes the
/// interpreter's lock. Microseconds.
std::string place_of_call();

/// What `place_of_call` has returned, on this or another rank, in words: "solver.c:12", "step.py:7 (advance)"; without
/// debug information "main+0x1f in solver". Empty where it is. Starts addr2line, for at most 1.5 seconds.
std::string place_text(const std::string& place);

}  // namespace palmette::runtime
