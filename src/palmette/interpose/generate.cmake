# Wrappers for the hooks and collectives of mpi/functions.txt, from the prototypes in this ABI's mpi.h. Included by cmake/PalmetteMpi.cmake with abi, include_dir,
# definitions and _generated set.
list(TRANSFORM definitions PREPEND "-D" OUTPUT_VARIABLE _wrapper_flags)
set(_wrapper_list "${CMAKE_CURRENT_SOURCE_DIR}/src/palmette/mpi/functions.txt")
set(_functions_tool "${CMAKE_CURRENT_SOURCE_DIR}/tools/mpi_functions.py")
set(_wrapper_tool "${CMAKE_CURRENT_SOURCE_DIR}/tools/generate_wrappers.py")
set(_header_tool "${CMAKE_CURRENT_SOURCE_DIR}/tools/wrappers_header.py")
set(_prototypes_tool "${CMAKE_CURRENT_SOURCE_DIR}/tools/mpi_prototypes.py")
add_custom_command(
  OUTPUT "${_generated}/palmette/interpose/wrappers.hpp" "${_generated}/wrappers.cpp"
  COMMAND "${Python_EXECUTABLE}" "${_wrapper_tool}" "${_wrapper_list}" "${_generated}" "${CMAKE_C_COMPILER}" "-I${include_dir}" ${_wrapper_flags}
  DEPENDS "${_wrapper_tool}" "${_header_tool}" "${_prototypes_tool}" "${_functions_tool}" "${_wrapper_list}" "${include_dir}/mpi.h"
  COMMENT "Wrappers for the ABI ${abi}"
  VERBATIM)
set(_fortran_tool "${CMAKE_CURRENT_SOURCE_DIR}/tools/generate_fortran.py")
add_custom_command(
  OUTPUT "${_generated}/fortran.cpp"
  COMMAND "${Python_EXECUTABLE}" "${_fortran_tool}" "${_wrapper_list}" "${_generated}/fortran.cpp" ${abi} "${CMAKE_C_COMPILER}" "-I${include_dir}" ${_wrapper_flags}
  DEPENDS "${_fortran_tool}" "${_wrapper_tool}" "${_prototypes_tool}" "${_functions_tool}" "${_wrapper_list}" "${include_dir}/mpi.h"
  COMMENT "Fortran entry points for the ABI ${abi}"
  VERBATIM)
list(APPEND PALMETTE_INTERPOSE_GENERATED "${_generated}/fortran.cpp" "${_generated}/wrappers.cpp" "${_generated}/palmette/interpose/wrappers.hpp")
target_include_directories(palmette_mpi_flags_${abi} INTERFACE "${_generated}")
