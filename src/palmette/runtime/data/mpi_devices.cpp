#include "palmette/runtime/data/mpi_devices.hpp"

#include <algorithm>
#include <atomic>
#include <initializer_list>
#include <string_view>

#include "palmette/mpi/library.hpp"

namespace palmette::runtime {
namespace {

enum class Answer : std::uint8_t { not_asked, no, yes };

constinit std::atomic<Answer> said{Answer::not_asked};

bool ask(std::initializer_list<const char*> names, std::atomic<Answer>& kept) {
    if (const Answer known = kept.load(std::memory_order_relaxed); known != Answer::not_asked)
        return known == Answer::yes;
    const bool yes = std::any_of(names.begin(), names.end(), [](const char* name) {
        void* const function = mpi::find(name);
        return function && reinterpret_cast<int (*)()>(function)() == 1;
    });
    kept.store(yes ? Answer::yes : Answer::no, std::memory_order_relaxed);
    return yes;
}

}  // namespace

bool mpi_takes(const device::Driver& driver) {
    if (const Answer answer = said.load(std::memory_order_relaxed); answer != Answer::not_asked)
        return answer == Answer::yes;
    static constinit std::atomic<Answer> cuda{Answer::not_asked}, hip{Answer::not_asked};
    return std::string_view(driver.name()) == "cuda" ? ask({"MPIX_Query_cuda_support"}, cuda)
                                                     : ask({"MPIX_Query_rocm_support", "MPIX_Query_hip_support"}, hip);
}

bool mpi_takes_devices() {
    const auto drivers = device::all_drivers();
    return std::all_of(drivers.begin(), drivers.end(), [](const device::Driver* one) { return mpi_takes(*one); });
}

void set_mpi_takes_devices(std::optional<bool> takes) {
    said.store(!takes ? Answer::not_asked : *takes ? Answer::yes : Answer::no, std::memory_order_relaxed);
}

}  // namespace palmette::runtime
