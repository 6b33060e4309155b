// Reduction loops for the target's baseline instruction set: SSE2 on x86-64.
#define PALMETTE_KERNEL_SET kernels_baseline
#include "palmette/kernels/find.hpp"
#include "palmette/kernels/sets.hpp"

namespace palmette::kernels {

Kernel baseline_kernel(Operator op, Element element) { return kernels_baseline::find(op, element); }

}  // namespace palmette::kernels
