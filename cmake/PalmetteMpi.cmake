# The layers that know mpi.h, once for each MPI ABI that the build is pointed at:
#   libpalmette_<abi>.so          the preload library: runtime, interpose and the core in one file
#   bin/<program>.<abi>           programs of src/programs, installed into palmette/bin
#   tests/mpi/<test>.<abi>        programs of tests/mpi, with PALMETTE_BUILD_MPI_TESTS
#
# ABIs: mpich (libmpi.so.12: MPICH, Intel MPI, MVAPICH), ompi (libmpi.so.40: Open MPI 4 and 5), abi (libmpi_abi.so.1:
# the standard ABI of MPI 5). PALMETTE_MPI_<ABI> names the prefix of an MPI with that ABI; empty skips it. PALMETTE_ABIS
# names those that are wanted.

set(PALMETTE_ABIS "mpich;ompi;abi" CACHE STRING "MPI ABIs to build for, of those whose MPI is there")

set(_mpi_dir "${CMAKE_CURRENT_SOURCE_DIR}/.mpi")
function(_palmette_mpi_option abi variable wheel)
  set(_default "")
  if(EXISTS "${_mpi_dir}/${wheel}/include/mpi.h")
    set(_default "${_mpi_dir}/${wheel}")
  endif()
  set(${variable} "${_default}" CACHE PATH "Prefix of an MPI with the ABI `${abi}`; empty skips it")
endfunction()
_palmette_mpi_option(mpich PALMETTE_MPI_MPICH mpich)
_palmette_mpi_option(ompi PALMETTE_MPI_OMPI openmpi)
_palmette_mpi_option(abi PALMETTE_MPI_ABI mpich)

find_package(Threads REQUIRED)
file(GLOB_RECURSE _runtime_sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/src/palmette/runtime/*.cpp")
file(GLOB _mpi_library_sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/src/palmette/mpi/*.cpp")
file(GLOB _interpose_sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/src/palmette/interpose/*.cpp")
file(GLOB _programs CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/src/programs/*.c"
                                      "${CMAKE_CURRENT_SOURCE_DIR}/src/programs/*.cpp")
file(GLOB _mpi_tests CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/tests/mpi/*.c"
                                       "${CMAKE_CURRENT_SOURCE_DIR}/tests/mpi/*.cpp")

# The table through which the preload calls the process's MPI (tools/generate_mpi_symbols.py), and what finds that MPI.
# The preload names no MPI library in its DT_NEEDED and leaves no symbol of one to the loader, so that it loads without
# error into the launcher's programs, which bring none.
function(_palmette_mpi_symbols abi include_dir definitions out_dir)
  set(_tool "${CMAKE_CURRENT_SOURCE_DIR}/tools/generate_mpi_symbols.py")
  set(_flags "")
  foreach(definition IN LISTS definitions)
    list(APPEND _flags "-D${definition}")
  endforeach()
  add_custom_command(
    OUTPUT "${out_dir}/palmette_mpi_symbols.h" "${out_dir}/mpi_symbols.cpp"
    COMMAND "${Python_EXECUTABLE}" "${_tool}" "${out_dir}" "${CMAKE_C_COMPILER}" "-I${include_dir}" ${_flags}
    DEPENDS "${_tool}" "${include_dir}/mpi.h"
    COMMENT "Symbols of the MPI for the ABI ${abi}"
    VERBATIM)
  add_custom_target(palmette_symbols_${abi} DEPENDS "${out_dir}/palmette_mpi_symbols.h")
endfunction()

# The MPI itself, as an imported target mpi_<abi>.
function(_palmette_import_mpi abi prefix soname definitions)
  set(_library "_palmette_library_${abi}")
  find_file(${_library} NAMES ${soname} PATHS "${prefix}/lib" "${prefix}/lib64" NO_DEFAULT_PATH NO_CACHE)
  if(NOT ${_library})
    message(FATAL_ERROR "${prefix}/lib holds no ${soname}, which the ABI `${abi}` needs: correct PALMETTE_MPI_* or "
                        "leave it empty")
  endif()
  add_library(mpi_${abi} SHARED IMPORTED)
  set_target_properties(mpi_${abi} PROPERTIES
    IMPORTED_LOCATION "${${_library}}"
    IMPORTED_SONAME "${soname}"
    INTERFACE_COMPILE_DEFINITIONS "${definitions}"
    INTERFACE_INCLUDE_DIRECTORIES "${prefix}/include")
endfunction()

# What every library has that is preloaded: the C++ library inside, nothing of it visible, for the program may bring
# another one. -z defs turns a call that is neither PMPI_ nor ours into an error of the build.
function(_palmette_as_preload target exports)
  set_target_properties(${target} PROPERTIES
    PREFIX lib OUTPUT_NAME ${target} LINK_DEPENDS "${exports}"
    LIBRARY_OUTPUT_DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}/lib")
  set(_no_undefined -Wl,-z,defs)
  if(PALMETTE_SANITIZE)
    set(_no_undefined "")
  endif()
  target_link_options(${target} PRIVATE
    -static-libstdc++ -static-libgcc "-Wl,--version-script=${exports}" -Wl,--exclude-libs,ALL
    ${_no_undefined})
  install(TARGETS ${target} LIBRARY DESTINATION palmette/lib COMPONENT python)
endfunction()

include(PalmetteRecord)

function(_palmette_preload abi include_dir definitions)
  set(_generated "${PALMETTE_GENERATED_DIR}/${abi}")
  _palmette_mpi_symbols(${abi} "${include_dir}" "${definitions}" "${_generated}")

  add_library(palmette_mpi_flags_${abi} INTERFACE)
  target_include_directories(palmette_mpi_flags_${abi} SYSTEM INTERFACE "${include_dir}")
  target_compile_definitions(palmette_mpi_flags_${abi} INTERFACE ${definitions} "PALMETTE_ABI_NAME=\"${abi}\"")
  target_compile_options(palmette_mpi_flags_${abi} INTERFACE -include "${_generated}/palmette_mpi_symbols.h")
  # The preload is there from the start, so a thread's variables need no call to be found: 5 ns for each collective.
  target_compile_options(palmette_mpi_flags_${abi} INTERFACE -ftls-model=initial-exec)
  target_link_libraries(palmette_mpi_flags_${abi} INTERFACE ${PALMETTE_CORE} Threads::Threads ${CMAKE_DL_LIBS})

  add_library(palmette_mpi_${abi} STATIC ${_mpi_library_sources} "${_generated}/mpi_symbols.cpp")
  target_link_libraries(palmette_mpi_${abi} PUBLIC palmette_mpi_flags_${abi})
  add_dependencies(palmette_mpi_${abi} palmette_symbols_${abi} palmette_generated)

  if(_runtime_sources)
    add_library(palmette_runtime_${abi} STATIC ${_runtime_sources})
    target_link_libraries(palmette_runtime_${abi} PUBLIC palmette_mpi_${abi} palmette_execute)
    add_dependencies(palmette_runtime_${abi} palmette_symbols_${abi} palmette_generated)
    target_precompile_headers(palmette_runtime_${abi} PRIVATE ${PALMETTE_STANDARD_HEADERS} <mpi.h>)
    add_library(palmette::runtime_${abi} ALIAS palmette_runtime_${abi})
  endif()
  if(NOT _interpose_sources)
    return()
  endif()

  # generate.cmake may add generated wrappers: it sees abi, include_dir, definitions and _generated, and appends to
  # PALMETTE_INTERPOSE_GENERATED.
  set(PALMETTE_INTERPOSE_GENERATED "")
  include("${CMAKE_CURRENT_SOURCE_DIR}/src/palmette/interpose/generate.cmake" OPTIONAL)
  add_library(palmette_interpose_${abi} OBJECT ${_interpose_sources} ${PALMETTE_INTERPOSE_GENERATED})
  target_link_libraries(palmette_interpose_${abi} PUBLIC palmette_mpi_flags_${abi})
  if(TARGET palmette_runtime_${abi})
    target_link_libraries(palmette_interpose_${abi} PUBLIC palmette_runtime_${abi})
    target_precompile_headers(palmette_interpose_${abi} REUSE_FROM palmette_runtime_${abi})
  endif()
  add_dependencies(palmette_interpose_${abi} palmette_symbols_${abi} palmette_generated)

  set(_exports "${CMAKE_CURRENT_SOURCE_DIR}/src/palmette/interpose/exports.map")
  if(NOT EXISTS "${_exports}")
    set(_exports "${CMAKE_CURRENT_SOURCE_DIR}/cmake/exports.map")
  endif()
  add_library(palmette_${abi} MODULE $<TARGET_OBJECTS:palmette_interpose_${abi}>)
  target_link_libraries(palmette_${abi} PRIVATE palmette_interpose_${abi})
  _palmette_as_preload(palmette_${abi} "${_exports}")
  _palmette_record(${abi} "${include_dir}" "${definitions}" "${_exports}")
endfunction()

# What programs that compose communication include and link (docs/guide/compose.md).
install(FILES "${CMAKE_CURRENT_SOURCE_DIR}/src/palmette/interpose/palmette.h"
              "${CMAKE_CURRENT_SOURCE_DIR}/src/palmette/interpose/palmette.hpp"
        DESTINATION palmette/include COMPONENT python)

# An MPI program as a user would build it: no rpath, no knowledge of palmette.
function(_palmette_programs abi)
  foreach(source IN LISTS _programs)
    get_filename_component(name "${source}" NAME_WE)
    add_executable(program_${name}_${abi} "${source}")
    set_target_properties(program_${name}_${abi} PROPERTIES
      OUTPUT_NAME ${name}.${abi} RUNTIME_OUTPUT_DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}/bin")
    target_link_libraries(program_${name}_${abi} PRIVATE palmette_flags mpi_${abi} Threads::Threads m)
    if(name STREQUAL heat)
      target_compile_options(program_${name}_${abi} PRIVATE -g)  # what it shows are lines
    endif()
    install(TARGETS program_${name}_${abi} RUNTIME DESTINATION palmette/bin COMPONENT python)
  endforeach()
  if(PALMETTE_BUILD_MPI_TESTS)
    foreach(source IN LISTS _mpi_tests)
      get_filename_component(name "${source}" NAME_WE)
      add_executable(mpi_test_${name}_${abi} "${source}")
      set_target_properties(mpi_test_${name}_${abi} PROPERTIES
        OUTPUT_NAME ${name}.${abi} RUNTIME_OUTPUT_DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}/tests/mpi")
      target_link_libraries(mpi_test_${name}_${abi} PRIVATE palmette_flags mpi_${abi} Threads::Threads m)
      target_compile_options(mpi_test_${name}_${abi} PRIVATE -O1)  # quicker to compile, and nothing in them is timed
      if(TARGET palmette_runtime_${abi})
        target_link_libraries(mpi_test_${name}_${abi} PRIVATE palmette_runtime_${abi})
        target_compile_definitions(mpi_test_${name}_${abi} PRIVATE PALMETTE_LINKED_WITH_MPI=1)
      endif()
    endforeach()
  endif()
endfunction()

function(_palmette_abi abi prefix soname)
  set(_definitions ${ARGN})
  if(NOT abi IN_LIST PALMETTE_ABIS)
    return()
  endif()
  if(NOT prefix)
    message(STATUS "MPI ABI ${abi} (${soname}): skipped, its prefix is empty")
    return()
  endif()
  message(STATUS "MPI ABI ${abi} (${soname}): ${prefix}")
  _palmette_import_mpi(${abi} "${prefix}" ${soname} "${_definitions}")
  _palmette_preload(${abi} "${prefix}/include" "${_definitions}")
  _palmette_programs(${abi})
endfunction()

_palmette_abi(mpich "${PALMETTE_MPI_MPICH}" libmpi.so.12 PALMETTE_ABI_MPICH=1)
_palmette_abi(ompi "${PALMETTE_MPI_OMPI}" libmpi.so.40 PALMETTE_ABI_OMPI=1)
_palmette_abi(abi "${PALMETTE_MPI_ABI}" libmpi_abi.so.1 PALMETTE_ABI_STANDARD=1 MPI_ABI)
