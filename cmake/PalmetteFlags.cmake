# palmette_flags: the warnings and sanitizers that every target of ours is compiled with.

add_library(palmette_flags INTERFACE)
target_include_directories(palmette_flags INTERFACE "${CMAKE_CURRENT_SOURCE_DIR}/src")
# -Wconversion stays on because byte counts meet MPI's int counts here; -Wsign-conversion would only add casts.
target_compile_options(palmette_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow $<$<COMPILE_LANGUAGE:CXX>:-Wconversion;-Wno-sign-conversion>
  $<$<BOOL:${PALMETTE_WERROR}>:-Werror>)
# GCC collects its garbage at 128 MB; a source takes up to 400.
target_compile_options(palmette_flags INTERFACE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:--param=ggc-min-heapsize=524288>)
if(PALMETTE_SANITIZE)
  target_compile_options(palmette_flags INTERFACE
    "-fsanitize=${PALMETTE_SANITIZE}" -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(palmette_flags INTERFACE "-fsanitize=${PALMETTE_SANITIZE}")
endif()

# Headers of the standard library take more time to compile than most sources: read once for a target, or for those that
# share its flags. ccache needs -fpch-preprocess and CCACHE_SLOPPINESS (tools/launch) for that.
set(PALMETTE_STANDARD_HEADERS <algorithm> <array> <map> <memory> <optional> <string> <string_view> <vector>)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(palmette_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-fpch-preprocess>)
endif()

# Of `Release`, by `level` instead of -O3: what a repeated call doesn't come through. Most of the compile time is
# optimization. By GCC alone, for Clang refuses precompiled headers of another level.
function(palmette_optimize target level)
  target_compile_options(${target} PRIVATE $<$<AND:$<CONFIG:Release>,$<COMPILE_LANG_AND_ID:CXX,GNU>>:${level}>)
endfunction()

# With PALMETTE_BATCHES `size` sources are compiled as one; names in unnamed namespaces must differ within a target for
# that. Sources with flags of their own stay alone.
function(palmette_in_batches target size)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${PALMETTE_BATCHES} UNITY_BUILD_BATCH_SIZE ${size})
  # GCC takes what isn't in the batch's own file for a header.
  target_compile_options(${target} PRIVATE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-subobject-linkage>)
endfunction()

# The same for those of its sources alone that have a group, as one each.
function(palmette_in_groups target)
  palmette_in_batches(${target} 0)
  set_target_properties(${target} PROPERTIES UNITY_BUILD_MODE GROUP)
endfunction()

# The same for the sources of each folder, so that a change to one compiles those of its subject again.
function(palmette_in_folders target)
  palmette_in_groups(${target})
  get_target_property(_sources ${target} SOURCES)
  foreach(source IN LISTS _sources)
    get_filename_component(_folder "${source}" DIRECTORY)
    string(MAKE_C_IDENTIFIER "${_folder}" _group)
    set_property(SOURCE "${source}" PROPERTY UNITY_GROUP "${_group}")
  endforeach()
endfunction()

# Headers of the standard library and, with PALMETTE_BATCHES, `ARGN`, our own ones that most of its sources include.
function(palmette_precompile target)
  set(_headers ${PALMETTE_STANDARD_HEADERS})
  if(PALMETTE_BATCHES)
    list(APPEND _headers ${ARGN})
  endif()
  target_precompile_headers(${target} PRIVATE ${_headers})
endfunction()
