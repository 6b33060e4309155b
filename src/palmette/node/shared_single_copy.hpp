// Single copy: reading another process's memory with process_vm_readv.
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace palmette::runtime {

/// Reads `bytes` at `address` of `process` to `to`, in as many calls as it takes. Returns 0 or an errno: EPERM where
/// the kernel's policy forbids it, EFAULT where the memory isn't there, ESRCH where the process isn't.
int read_process(pid_t process, std::uint64_t address, void* to, std::int64_t bytes);

/// Whether `process` is the one that holds `word` at `address`, and may be read. A process of another process namespace
/// with the same number fails here.
bool can_read_process(pid_t process, std::uint64_t address, std::uint64_t word);

/// For tests: from the n-th read on, counted by those that ask, the system is said to refuse. 0: never.
void pretend_refusals_from(std::int64_t nth);
/// Counts a read. Whether it is to be taken for refused.
bool is_pretended_refusal();

/// Where the Yama security module lets only ancestors read a process (ptrace_scope 1, as on Ubuntu), permits the
/// launcher that started this process, and with it its other children, to read it. Returns whether anything was
/// changed. Other settings are left alone.
bool permit_siblings_to_read();

}  // namespace palmette::runtime
