// Reductions on the device, as PTX that every driver compiles for its devices when it is loaded.
#pragma once

#include <string>

#include "palmette/kernels/kernels.hpp"

namespace palmette::device {

/// Whether there is a kernel: sum, product, minimum and maximum of numbers, bitwise operations of integers.
bool has_kernel(kernels::Operator op, kernels::Element element);

/// palmette_<op>_<type>; its parameters are left, right, target (addresses) and the number of elements, 64 bits each.
std::string kernel_name(kernels::Operator op, kernels::Element element);

/// All of them in one module, for compute capability 7.0 and newer.
const std::string& kernels_ptx();

}  // namespace palmette::device
