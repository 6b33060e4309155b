# How the reduction kernels are compiled, in every build type and under every MPI ABI.

file(GLOB _kernels CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/src/palmette/kernels/*.cpp")
# A fused multiply-add rounds once where two instructions round twice: without -ffp-contract=off the processor's
# instruction set would show in the results. -mno-fma holds also where CXXFLAGS name a processor that has it.
set_property(SOURCE ${_kernels} APPEND PROPERTY COMPILE_OPTIONS -O3 -ffp-contract=off)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
  set(_folder "${CMAKE_CURRENT_SOURCE_DIR}/src/palmette/kernels")
  set_property(SOURCE "${_folder}/baseline.cpp" APPEND PROPERTY COMPILE_OPTIONS -mno-avx512f -mno-fma)
  set_property(SOURCE "${_folder}/avx2.cpp" APPEND PROPERTY COMPILE_OPTIONS -mavx2 -mf16c -mno-avx512f -mno-fma)
  set_property(SOURCE "${_folder}/avx512.cpp" APPEND PROPERTY COMPILE_OPTIONS
               -mavx2 -mf16c -mavx512f -mavx512bw -mavx512dq -mavx512vl)
endif()
