# How the reduction kernels of the runtime are compiled, in every build type and under every MPI ABI.

file(GLOB _kernels CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/src/palmette/runtime/kernels*.cpp")
# A fused multiply-add rounds once where two instructions round twice: without -ffp-contract=off the processor's
# instruction set would show in the results. -mno-fma holds also where CXXFLAGS name a processor that has it.
set_property(SOURCE ${_kernels} APPEND PROPERTY COMPILE_OPTIONS -O3 -ffp-contract=off)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
  set(_runtime "${CMAKE_CURRENT_SOURCE_DIR}/src/palmette/runtime")
  set_property(SOURCE "${_runtime}/kernels_baseline.cpp" APPEND PROPERTY COMPILE_OPTIONS -mno-avx512f -mno-fma)
  set_property(SOURCE "${_runtime}/kernels_avx2.cpp" APPEND PROPERTY COMPILE_OPTIONS -mavx2 -mf16c -mno-avx512f -mno-fma)
  set_property(SOURCE "${_runtime}/kernels_avx512.cpp" APPEND PROPERTY COMPILE_OPTIONS
               -mavx2 -mf16c -mavx512f -mavx512bw -mavx512dq -mavx512vl)
endif()
