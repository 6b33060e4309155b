// Kernel lookup per instruction set; to be called only where the processor supports the set.
#pragma once

#include "palmette/kernels/kernels.hpp"

namespace palmette::kernels {

Kernel baseline_kernel(Operator op, Element element);
/// Always null where the target isn't x86-64.
Kernel avx2_kernel(Operator op, Element element);
Kernel avx512_kernel(Operator op, Element element);

}  // namespace palmette::kernels
