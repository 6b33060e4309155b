// Reduction loops for processors with AVX-512 F, BW, DQ and VL; compiled with those flags
// (cmake/PalmetteKernels.cmake).
#include "palmette/kernels/sets.hpp"

#ifdef __AVX512BW__
#define PALMETTE_KERNEL_SET kernels_avx512
#include "palmette/kernels/find.hpp"
#endif

namespace palmette::kernels {

Kernel avx512_kernel([[maybe_unused]] Operator op, [[maybe_unused]] Element element) {
#ifdef PALMETTE_KERNEL_SET
    const Kernel found = kernels_avx512::find(op, element);
    return found != nullptr ? found : avx2_kernel(op, element);
#else
    return nullptr;
#endif
}

}  // namespace palmette::kernels
