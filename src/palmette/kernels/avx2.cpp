// Reduction loops for processors with AVX2 and F16C; compiled with those flags (cmake/PalmetteKernels.cmake).
#include "palmette/kernels/sets.hpp"

#ifdef __AVX2__
#define PALMETTE_KERNEL_SET kernels_avx2
#include "palmette/kernels/find.hpp"
#endif

namespace palmette::kernels {

Kernel avx2_kernel([[maybe_unused]] Operator op, [[maybe_unused]] Element element) {
#ifdef PALMETTE_KERNEL_SET
    return kernels_avx2::find(op, element);
#else
    return nullptr;
#endif
}

}  // namespace palmette::kernels
