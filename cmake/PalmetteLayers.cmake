# One target for each layer without MPI: palmette_<layer>, alias palmette::<layer>.
# A layer links only the layer below it, so a header of a higher layer can be included by mistake (the include root is
# shared), but its symbols don't link; tests/python/test_layers.py catches the include.

set(PALMETTE_CORE_LAYERS base trace topology plan compose collectives model select)

set(_below "")
foreach(layer IN LISTS PALMETTE_CORE_LAYERS)
  file(GLOB_RECURSE _sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/src/palmette/${layer}/*.cpp")
  list(REMOVE_ITEM _sources "${CMAKE_CURRENT_SOURCE_DIR}/src/palmette/select/built_in.cpp")
  if(_sources)
    add_library(palmette_${layer} STATIC ${_sources})
    target_link_libraries(palmette_${layer} PUBLIC palmette_flags ${_below})
    if(layer MATCHES "^(compose|collectives)$")
      palmette_optimize(palmette_${layer} -O1)
    elseif(NOT layer STREQUAL "base")
      palmette_optimize(palmette_${layer} -O2)
    endif()
    if(layer STREQUAL "base")
      target_precompile_headers(palmette_base PRIVATE ${PALMETTE_STANDARD_HEADERS})
    elseif(layer STREQUAL "collectives")
      palmette_precompile(palmette_collectives "<palmette/collectives/rows.hpp>")
    else()
      target_precompile_headers(palmette_${layer} REUSE_FROM palmette_base)
    endif()
    if(layer STREQUAL "trace")
      palmette_in_batches(palmette_trace 3)  # its sources are long
    elseif(layer STREQUAL "collectives")
      palmette_in_folders(palmette_collectives)
    else()
      palmette_in_batches(palmette_${layer} 7)
    endif()
  else()
    add_library(palmette_${layer} INTERFACE)
    target_link_libraries(palmette_${layer} INTERFACE palmette_flags ${_below})
  endif()
  add_library(palmette::${layer} ALIAS palmette_${layer})
  set(_below palmette_${layer})
endforeach()

add_dependencies(palmette_trace palmette_generated)

# The built-in table: checked by the reader of all tables, and compiled, so that no rank parses it.
set(_table "${CMAKE_CURRENT_SOURCE_DIR}/src/palmette/select/built_in.json")
set(_table_rows "${CMAKE_CURRENT_BINARY_DIR}/generated/built_in_rows.cpp")
add_executable(palmette_table_rows tools/table_rows.cpp)
target_link_libraries(palmette_table_rows PRIVATE palmette_select)
add_custom_command(
  OUTPUT "${_table_rows}"
  COMMAND palmette_table_rows "${_table}" "${_table_rows}"
  DEPENDS "${_table}"
  COMMENT "Rows of the built-in table"
  VERBATIM)
add_library(palmette_built_in STATIC src/palmette/select/built_in.cpp "${_table_rows}")
target_link_libraries(palmette_built_in PUBLIC palmette_select)
add_library(palmette::built_in ALIAS palmette_built_in)
# The top of what plans: linking it gives every layer below.
set(PALMETTE_CORE palmette_built_in)

# What runs plans and knows no MPI, compiled once for the preload libraries of every ABI and for the tests: reduction
# kernels, the aggregation service, the memory of a node and waiting in it, programs bound to memory with their executor
# and transports.
set(PALMETTE_RUN_LAYERS kernels aggregate device node execute)
find_package(Threads REQUIRED)
set(_below palmette_base)
# They have the names of another driver's file.
set_property(SOURCE "${CMAKE_CURRENT_SOURCE_DIR}/src/palmette/device/hip.cpp"
                    "${CMAKE_CURRENT_SOURCE_DIR}/src/palmette/device/nccl.cpp" PROPERTY SKIP_UNITY_BUILD_INCLUSION ON)
foreach(layer IN LISTS PALMETTE_RUN_LAYERS)
  if(layer STREQUAL "execute")
    list(APPEND _below palmette_collectives)
  endif()
  file(GLOB_RECURSE _sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/src/palmette/${layer}/*.cpp")
  add_library(palmette_${layer} STATIC ${_sources})
  # Sources of what a repeated call comes through are compiled one by one.
  if(layer MATCHES "^(aggregate|device)$")
    palmette_in_batches(palmette_${layer} 7)
  endif()
  if(NOT layer STREQUAL "kernels")  # which have flags of their own
    target_precompile_headers(palmette_${layer} REUSE_FROM palmette_base)
  endif()
  target_link_libraries(palmette_${layer} PUBLIC palmette_flags ${_below} Threads::Threads ${CMAKE_DL_LIBS})
  add_library(palmette::${layer} ALIAS palmette_${layer})
  set(_below palmette_${layer})
endforeach()
