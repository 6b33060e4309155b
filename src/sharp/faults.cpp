#include "sharp/faults.hpp"

#include <cstdlib>

namespace palmette::sharp_twin {

Faults Faults::from_environment() {
    Faults out;
    const char* text = std::getenv("SHARP_TWIN_FAULT");
    std::string_view left = text ? text : "";
    while (!left.empty()) {
        const std::string one(left.substr(0, left.find(',')));
        left.remove_prefix(one.size() == left.size() ? one.size() : one.size() + 1);
        Fault fault;
        const std::size_t colon = one.find(':');
        fault.place = one.substr(0, colon);
        const auto number = [&](std::size_t at, int without) {
            return at == std::string::npos ? without : std::atoi(one.c_str() + at + 1);
        };
        fault.code = number(colon, -1);
        fault.rank = number(one.find('@'), -1);
        fault.times = number(one.find('*'), -1);
        fault.after = number(one.find('+'), 0);
        out.all_.push_back(fault);
    }
    return out;
}

int Faults::at(std::string_view place, int rank) {
    for (Fault& fault : all_) {
        if (fault.place != place || (fault.rank >= 0 && fault.rank != rank)) continue;
        if (fault.after > 0) {
            --fault.after;
            continue;
        }
        if (fault.times == 0) continue;
        if (fault.times > 0) --fault.times;
        return fault.code;
    }
    return 0;
}

}  // namespace palmette::sharp_twin
