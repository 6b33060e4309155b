# The benchmark on simulated clusters: bin/simbench.smpi, palmette's runtime and wrappers inside of an SMPI program
# (SimGrid). Only where SimGrid is there, and only as the target `simbench`: `make simulate` installs and builds both.
#
# What smpicxx does to a program is done here with CMake's own compiler: the paths, smpi_helpers.h in front of the
# program, and a shared object instead of an executable. smpirun loads one copy of it for each simulated rank, which
# gives each its own globals; so the runtime goes in whole and binds to its own names (docs/decisions/0011-simgrid.md).
# Beside it bin/simbench-start.so, which is preloaded into the simulator itself.

find_path(PALMETTE_SMPI_INCLUDE mpi.h PATH_SUFFIXES smpi NO_DEFAULT_PATH
          PATHS /usr/include /usr/local/include ENV SIMGRID_PREFIX)
find_library(PALMETTE_SIMGRID_LIBRARY simgrid)
if(NOT PALMETTE_SMPI_INCLUDE OR NOT PALMETTE_SIMGRID_LIBRARY)
  message(STATUS "SimGrid: not found, simulated clusters are left out")
  return()
endif()
message(STATUS "SimGrid: ${PALMETTE_SIMGRID_LIBRARY}")

set(_generated "${PALMETTE_GENERATED_DIR}/smpi")
get_filename_component(_simgrid_include "${PALMETTE_SMPI_INCLUDE}" DIRECTORY)
add_library(palmette_mpi_flags_smpi INTERFACE)
target_include_directories(palmette_mpi_flags_smpi SYSTEM INTERFACE "${PALMETTE_SMPI_INCLUDE}" "${_simgrid_include}")
target_compile_definitions(palmette_mpi_flags_smpi INTERFACE
  PALMETTE_ABI_SMPI=1 SMPI_NO_OVERRIDE_MALLOC PALMETTE_ABI_NAME="smpi")
target_link_libraries(palmette_mpi_flags_smpi INTERFACE ${PALMETTE_CORE} Threads::Threads ${CMAKE_DL_LIBS})

add_library(palmette_runtime_smpi STATIC EXCLUDE_FROM_ALL ${_runtime_sources} ${_mpi_library_sources})
target_link_libraries(palmette_runtime_smpi PUBLIC palmette_mpi_flags_smpi palmette_execute)
add_dependencies(palmette_runtime_smpi palmette_generated)

set(abi smpi)
set(include_dir "${PALMETTE_SMPI_INCLUDE}")
set(definitions "")
set(PALMETTE_INTERPOSE_GENERATED "")
include("${CMAKE_CURRENT_SOURCE_DIR}/src/palmette/interpose/generate.cmake")
add_library(palmette_smpi STATIC EXCLUDE_FROM_ALL ${_interpose_sources} ${PALMETTE_INTERPOSE_GENERATED})
target_link_libraries(palmette_smpi PUBLIC palmette_runtime_smpi)
add_dependencies(palmette_smpi palmette_generated)
# All rooms as few: simulated time doesn't depend on it.
palmette_in_batches(palmette_runtime_smpi 8)
palmette_precompile(palmette_runtime_smpi <mpi.h> "<palmette/runtime/call/call.hpp>")
palmette_in_batches(palmette_smpi 8)
palmette_optimize(palmette_runtime_smpi -O2)
palmette_optimize(palmette_smpi -O2)

# The recorder, for `palmette-lab simulate --profile` and `--trace`. The program's calls go to it by their names.
_palmette_record_generated(smpi "${PALMETTE_SMPI_INCLUDE}" "" "${_generated}/recorded_names.h")
add_library(palmette_record_smpi STATIC EXCLUDE_FROM_ALL ${_record_sources} "${_generated}/recorder_wrappers.cpp")
target_link_libraries(palmette_record_smpi PUBLIC palmette_runtime_smpi)
palmette_in_batches(palmette_record_smpi 8)
add_dependencies(palmette_record_smpi palmette_generated)
set_source_files_properties("${_generated}/recorder_wrappers.cpp" PROPERTIES COMPILE_OPTIONS "-O1")

set(_simbench "${CMAKE_CURRENT_SOURCE_DIR}/src/programs/simbench")
# Two programs: `simbench` with palmette, and `simbench-alone` for its rivals. One copy a rank is loaded, and without
# the runtime, and without symbols, a copy is small.
foreach(_program simbench simbench-alone)
  add_library(${_program} MODULE EXCLUDE_FROM_ALL
    "${_simbench}/simbench.c" "${_simbench}/costs.cpp" "${_simbench}/folded.cpp")
  target_compile_options(${_program} PRIVATE -include smpi_helpers.h)
  target_link_options(${_program} PRIVATE -Wl,-Bsymbolic -Wl,--gc-sections -Wl,-z,defs -s)
  set_target_properties(${_program} PROPERTIES
    PREFIX "" SUFFIX ".smpi" LIBRARY_OUTPUT_DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}/bin")
endforeach()
target_sources(simbench PRIVATE "${_generated}/recorded_names.h" "${_simbench}/services.cpp")
set_source_files_properties("${_simbench}/simbench.c" TARGET_DIRECTORY simbench PROPERTIES
  OBJECT_DEPENDS "${_generated}/recorded_names.h")
target_compile_options(simbench PRIVATE "$<$<COMPILE_LANGUAGE:C>:SHELL:-include ${_generated}/recorded_names.h>")
target_link_libraries(simbench PRIVATE palmette_flags "$<LINK_LIBRARY:WHOLE_ARCHIVE,palmette_smpi>"
                                       "$<LINK_LIBRARY:WHOLE_ARCHIVE,palmette_record_smpi>"
                                       "${PALMETTE_SIMGRID_LIBRARY}" m)
target_link_libraries(simbench-alone PRIVATE palmette_flags palmette_mpi_flags_smpi "${PALMETTE_SIMGRID_LIBRARY}" m)
target_compile_definitions(simbench-alone PRIVATE SIMBENCH_ALONE=1)

# Scenarios whose waits are known (tests/python/simulate/test_planted.py), and steps of which other plans and placements
# are expected, then simulated (test_what_if.py), recorded in simulated time. Lines come from debug information, and of
# the runtime's thousands of symbols none stays, so that reading it is quick.
if(PALMETTE_BUILD_MPI_TESTS)
  foreach(_name planted steps)
    set(_program mpi_test_${_name}_smpi)
    add_library(${_program} MODULE EXCLUDE_FROM_ALL
      "${CMAKE_CURRENT_SOURCE_DIR}/tests/mpi/${_name}.cpp" "${_generated}/recorded_names.h")
    target_compile_options(${_program} PRIVATE -include smpi_helpers.h -O1 -g1)
    target_link_options(${_program} PRIVATE
      -Wl,-Bsymbolic -Wl,--gc-sections -Wl,-z,defs -Wl,--retain-symbols-file=/dev/null)
    target_link_libraries(${_program} PRIVATE palmette_flags "$<LINK_LIBRARY:WHOLE_ARCHIVE,palmette_smpi>"
                                              "$<LINK_LIBRARY:WHOLE_ARCHIVE,palmette_record_smpi>"
                                              "${PALMETTE_SIMGRID_LIBRARY}" m)
    set_target_properties(${_program} PROPERTIES
      OUTPUT_NAME ${_name} PREFIX "" SUFFIX ".smpi" LIBRARY_OUTPUT_DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}/tests/mpi")
  endforeach()
endif()

# studies/neighbours.py
add_library(neighbours_simulated MODULE EXCLUDE_FROM_ALL
  "${CMAKE_CURRENT_SOURCE_DIR}/studies/neighbours.c" "${CMAKE_CURRENT_SOURCE_DIR}/studies/neighbours_simulated.cpp"
  "${_simbench}/costs.cpp" "${_generated}/recorded_names.h")
target_include_directories(neighbours_simulated PRIVATE "${_simbench}")
target_compile_options(neighbours_simulated PRIVATE -include smpi_helpers.h
  "$<$<COMPILE_LANGUAGE:C>:SHELL:-include ${_generated}/recorded_names.h>")
target_link_options(neighbours_simulated PRIVATE -Wl,-Bsymbolic -Wl,--gc-sections -Wl,-z,defs -s)
target_link_libraries(neighbours_simulated PRIVATE palmette_flags "$<LINK_LIBRARY:WHOLE_ARCHIVE,palmette_smpi>"
                                                   "$<LINK_LIBRARY:WHOLE_ARCHIVE,palmette_record_smpi>"
                                                   "${PALMETTE_SIMGRID_LIBRARY}" m)
set_target_properties(neighbours_simulated PROPERTIES
  OUTPUT_NAME neighbours PREFIX "" SUFFIX ".smpi" LIBRARY_OUTPUT_DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}/studies")

add_library(simbench-start MODULE EXCLUDE_FROM_ALL "${_simbench}/start.cpp")
target_link_libraries(simbench-start PRIVATE palmette_flags ${CMAKE_DL_LIBS})
set_target_properties(simbench-start PROPERTIES
  PREFIX "" LIBRARY_OUTPUT_DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}/bin")
add_dependencies(simbench simbench-alone simbench-start)
if(TARGET mpi_test_planted_smpi)
  add_dependencies(simbench mpi_test_planted_smpi mpi_test_steps_smpi)
endif()
install(TARGETS simbench simbench-alone simbench-start
  LIBRARY DESTINATION palmette/bin COMPONENT simulate EXCLUDE_FROM_ALL)
