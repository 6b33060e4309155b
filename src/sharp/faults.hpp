// Failures that the twin pretends, by SHARP_TWIN_FAULT: "PLACE:CODE[@RANK][*TIMES][+AFTER]", several joined by commas.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace palmette::sharp_twin {

/// Places: init and comm_init fail before they have spoken with other ranks, init_end and comm_init_end after that;
/// oob, as if the caller's function had failed; register; operation, when it is begun; wait, when it is complete; sum
/// (any code), a result with one bit wrong. RANK of the job alone, TIMES (without it always) after AFTER times without.
class Faults {
  public:
    static Faults from_environment();
    /// 0, or the code to return there on this rank.
    int at(std::string_view place, int rank);

  private:
    struct Fault {
        std::string place;
        int code = 0, rank = -1, times = -1, after = 0;
    };
    std::vector<Fault> all_;
};

}  // namespace palmette::sharp_twin
