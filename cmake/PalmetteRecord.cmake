# libpalmette_record_<abi>.so: records every MPI call, for `palmette run --profile` and `--trace`. A library of its own,
# so that only those who record pay for it.
file(GLOB _record_sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/src/palmette/record/*.cpp")

# What the generator writes for an ABI, with `outputs` besides.
function(_palmette_record_generated abi include_dir definitions outputs)
  set(_generated "${PALMETTE_GENERATED_DIR}/${abi}")
  list(TRANSFORM definitions PREPEND "-D" OUTPUT_VARIABLE _flags)
  set(_tool "${CMAKE_CURRENT_SOURCE_DIR}/tools/generate_recorder.py")
  set(_list "${CMAKE_CURRENT_SOURCE_DIR}/src/palmette/mpi/functions.txt")
  add_custom_command(
    OUTPUT "${_generated}/palmette/record/functions.hpp" "${_generated}/recorder_wrappers.cpp" ${outputs}
    COMMAND "${Python_EXECUTABLE}" "${_tool}" "${_list}" "${_generated}" ${abi}
            "${CMAKE_C_COMPILER}" "-I${include_dir}" ${_flags}
    DEPENDS "${_tool}" "${_list}" "${CMAKE_CURRENT_SOURCE_DIR}/tools/counted_messages.py"
            "${CMAKE_CURRENT_SOURCE_DIR}/tools/mpi_functions.py"
            "${CMAKE_CURRENT_SOURCE_DIR}/tools/mpi_prototypes.py"
            "${CMAKE_CURRENT_SOURCE_DIR}/tools/recorded_requests.py"
            "${CMAKE_CURRENT_SOURCE_DIR}/tools/wrappers_header.py"
            "${CMAKE_CURRENT_SOURCE_DIR}/tools/generate_fortran.py" "${include_dir}/mpi.h"
    COMMENT "Wrappers that record calls for the ABI ${abi}"
    VERBATIM)
endfunction()

# The same with planted faults, for the test that tries whether they are found: built by that test, and not installed.
function(_palmette_mutated_record abi exports)
  set(_generated "${PALMETTE_GENERATED_DIR}/${abi}")
  set(_copy "${CMAKE_CURRENT_BINARY_DIR}/mutations")
  set(_tool "${CMAKE_CURRENT_SOURCE_DIR}/tests/mutations/recorder.py")
  file(GLOB _originals CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/src/palmette/record/*")
  set(_copies ${_record_sources})
  list(TRANSFORM _copies REPLACE "^${CMAKE_CURRENT_SOURCE_DIR}/src/" "${_copy}/")
  add_custom_command(
    OUTPUT ${_copies} "${_copy}/oracle_mutation.hpp"
    COMMAND "${Python_EXECUTABLE}" "${_tool}" "${CMAKE_CURRENT_SOURCE_DIR}/src/palmette" "${_copy}"
    DEPENDS "${_tool}" ${_originals}
    COMMENT "The recorder with planted faults"
    VERBATIM)
  add_library(palmette_record_mutated MODULE EXCLUDE_FROM_ALL
    ${_copies} "${CMAKE_CURRENT_SOURCE_DIR}/src/palmette/interpose/fortran.cpp" "${_generated}/recorder_wrappers.cpp")
  target_include_directories(palmette_record_mutated BEFORE PRIVATE "${_copy}")
  target_link_libraries(palmette_record_mutated PRIVATE palmette_mpi_${abi})
  _palmette_includes_symbols(palmette_record_mutated ${abi})
  palmette_in_batches(palmette_record_mutated 8)
  add_dependencies(palmette_record_mutated palmette_record_${abi})
  _palmette_links_as_preload(palmette_record_mutated "${exports}")
  set_target_properties(palmette_record_mutated PROPERTIES
    OUTPUT_NAME palmette_record_${abi} LIBRARY_OUTPUT_DIRECTORY "${_copy}/lib")
endfunction()

function(_palmette_record abi include_dir definitions exports)
  set(_generated "${PALMETTE_GENERATED_DIR}/${abi}")
  _palmette_record_generated(${abi} "${include_dir}" "${definitions}" "")
  add_library(palmette_record_${abi} MODULE
    ${_record_sources} "${CMAKE_CURRENT_SOURCE_DIR}/src/palmette/interpose/fortran.cpp"
    "${_generated}/recorder_wrappers.cpp" "${_generated}/palmette/record/functions.hpp")
  # Hundreds of small functions without loops: -O2 is enough.
  set_source_files_properties("${_generated}/recorder_wrappers.cpp" PROPERTIES
    COMPILE_OPTIONS "-O2;-include;${_generated}/palmette_mpi_symbols.h" SKIP_PRECOMPILE_HEADERS ON)
  target_link_libraries(palmette_record_${abi} PRIVATE palmette_mpi_${abi})
  target_precompile_headers(palmette_record_${abi} PRIVATE "${_generated}/palmette_mpi_symbols.h")
  palmette_precompile(palmette_record_${abi} <mpi.h> "<palmette/record/call.hpp>")
  if(CMAKE_DISABLE_PRECOMPILE_HEADERS)
    _palmette_includes_symbols(palmette_record_${abi} ${abi})
  endif()
  palmette_in_groups(palmette_record_${abi})
  add_dependencies(palmette_record_${abi} palmette_symbols_${abi} palmette_generated)
  _palmette_as_preload(palmette_record_${abi} "${exports}")
  if(PALMETTE_BUILD_MPI_TESTS AND abi STREQUAL "mpich")
    _palmette_mutated_record(${abi} "${exports}")
  endif()
endfunction()
