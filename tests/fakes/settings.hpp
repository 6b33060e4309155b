// PALMETTE_FAKE_CUDA="key=value,key,...": how the devices and their driver behave. Read when the library is loaded; an
// unknown key ends the process with one line.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace fake {

/// The call of this number (0: each) of a function fails.
struct Failure {
    std::string function;
    std::uint64_t call = 0;
    int result = 999;
};

struct Settings {
    std::string text;
    std::uint64_t seed = 1;
    int devices = 1;
    /// CUDA_VISIBLE_DEVICES: the physical number of each device.
    std::vector<int> visible;
    /// Longest time until work begins; three quarters of it begin at once.
    unsigned delay_us = 200;
    /// Work begins when somebody waits or asks for it, or after 20 ms: what isn't waited for is late for sure.
    bool lazy = false;
    /// How long a question about a pointer takes.
    unsigned slow_query_us = 0;
    bool not_initialized = false;
    bool no_ipc = false;
    bool no_ipc_open = false;
    bool no_peer = false;
    bool no_pin = false;
    /// A driver of CUDA 11.1: no pools, no attributes behind CU_POINTER_ATTRIBUTE_MAPPED.
    bool old = false;
    /// Whether memory of pools, and mapped memory, says that it's the host's. -1: every second allocation does.
    int pool_says_host = -1;
    int vmm_says_host = -1;
    /// "name=value", "name": fail=FUNCTION:N[:RESULT], fail=FUNCTION:*.
    std::vector<Failure> failures;

    /// From an environment variable; `keys` of other libraries are refused, too.
    static Settings read();
};

/// Splits at each separator.
std::vector<std::string> split(const std::string& text, char separator);
/// "FUNCTION:N[:RESULT]" or "FUNCTION:*"; ends the process when it's neither.
Failure read_failure(const char* variable, const std::string& text);
/// One line, then abort.
[[noreturn]] void refuse(const char* variable, const std::string& what);

}  // namespace fake
