# libpalmette_matrix_<abi>.so: counts messages point to point, for `palmette run --matrix`. A library of its own, so that only who asks for a
# matrix pays for it.
file(GLOB _matrix_sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/src/palmette/matrix/*.cpp")

function(_palmette_matrix abi include_dir definitions exports)
  set(_generated "${PALMETTE_GENERATED_DIR}/${abi}")
  set(_flags "")
  foreach(_definition IN LISTS definitions)
    list(APPEND _flags "-D${_definition}")
  endforeach()
  set(_list "${CMAKE_CURRENT_SOURCE_DIR}/src/palmette/matrix/functions.txt")
  set(_tool "${CMAKE_CURRENT_SOURCE_DIR}/tools/generate_matrix.py")
  add_custom_command(
    OUTPUT "${_generated}/palmette/matrix/wrappers.hpp" "${_generated}/matrix_wrappers.cpp"
    COMMAND "${Python_EXECUTABLE}" "${_tool}" "${_list}" "${_generated}" ${abi} "${CMAKE_C_COMPILER}" "-I${include_dir}" ${_flags}
    DEPENDS "${_tool}" "${CMAKE_CURRENT_SOURCE_DIR}/tools/mpi_prototypes.py"
            "${CMAKE_CURRENT_SOURCE_DIR}/tools/wrappers_header.py"
            "${CMAKE_CURRENT_SOURCE_DIR}/tools/generate_fortran.py" "${_list}" "${include_dir}/mpi.h"
    COMMENT "Wrappers that count messages for the ABI ${abi}"
    VERBATIM)
  add_library(palmette_matrix_${abi} MODULE
    ${_matrix_sources} "${CMAKE_CURRENT_SOURCE_DIR}/src/palmette/interpose/fortran.cpp"
    "${_generated}/matrix_wrappers.cpp" "${_generated}/palmette/matrix/wrappers.hpp")
  target_link_libraries(palmette_matrix_${abi} PRIVATE palmette_mpi_${abi})
  add_dependencies(palmette_matrix_${abi} palmette_symbols_${abi} palmette_generated)
  _palmette_as_preload(palmette_matrix_${abi} "${exports}")
endfunction()
