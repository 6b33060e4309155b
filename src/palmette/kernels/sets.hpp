// One function for each instruction set, which must only be called where the processor has it.
#pragma once

#include "palmette/kernels/kernels.hpp"

namespace palmette::runtime {

Kernel baseline_kernel(Operator op, Element element);
/// Null throughout where the target isn't x86-64.
Kernel avx2_kernel(Operator op, Element element);
Kernel avx512_kernel(Operator op, Element element);

}  // namespace palmette::runtime
