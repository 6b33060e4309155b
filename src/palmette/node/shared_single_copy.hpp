// Single copy by CMA: reading another process's memory with process_vm_readv.
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace palmette::node {

/// Reads `bytes` at `address` of `process` to `to`, in as many calls as it takes. Returns 0 or an errno: EPERM where
/// the kernel's policy forbids it, EFAULT where the memory isn't there, ESRCH where the process isn't.
int read_process(pid_t process, std::uint64_t address, void* to, std::int64_t bytes);

/// Whether `process` may be read and holds `word` at `address`. The word detects a process with the same number in
/// another PID namespace.
bool can_read_process(pid_t process, std::uint64_t address, std::uint64_t word);

/// Fault injection for tests: reads from the n-th on are treated as refused by the system. 0: never.
void inject_refusals_from(std::int64_t nth);
/// Counts a read. Returns whether to treat it as refused.
bool is_injected_refusal();

/// Where the Yama security module lets only ancestors read a process (ptrace_scope 1, as on Ubuntu), permits the
/// launcher that started this process, and with it its other children, to read it. Returns whether it changed anything.
/// Other settings are left alone.
bool permit_siblings_to_read();

}  // namespace palmette::node
