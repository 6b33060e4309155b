# One target for each layer without MPI: palmette_<layer>, alias palmette::<layer>.
# A layer links only the layer below it, so a header of a higher layer can be included by mistake (the include root is
# shared), but its symbols don't link; tests/python/test_layers.py catches the include.

set(PALMETTE_CORE_LAYERS base topology plan compose collectives model select)

set(_below "")
foreach(layer IN LISTS PALMETTE_CORE_LAYERS)
  file(GLOB _sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/src/palmette/${layer}/*.cpp")
  if(_sources)
    add_library(palmette_${layer} STATIC ${_sources})
    target_link_libraries(palmette_${layer} PUBLIC palmette_flags ${_below})
  else()
    add_library(palmette_${layer} INTERFACE)
    target_link_libraries(palmette_${layer} INTERFACE palmette_flags ${_below})
  endif()
  add_library(palmette::${layer} ALIAS palmette_${layer})
  set(_below palmette_${layer})
endforeach()
# The top of the core: linking it gives every layer without MPI.
set(PALMETTE_CORE palmette_select)

# The part of the runtime that knows no MPI: shared memory inside a node, waiting, reduction kernels. Compiled once, for
# the preload libraries of every ABI and for the tests.
file(GLOB PALMETTE_RUNTIME_CORE_SOURCES CONFIGURE_DEPENDS
     "${CMAKE_CURRENT_SOURCE_DIR}/src/palmette/runtime/shared_*.cpp"
     "${CMAKE_CURRENT_SOURCE_DIR}/src/palmette/runtime/giving_way.cpp"
     "${CMAKE_CURRENT_SOURCE_DIR}/src/palmette/runtime/patience.cpp"
     "${CMAKE_CURRENT_SOURCE_DIR}/src/palmette/runtime/kernels*.cpp")
if(PALMETTE_RUNTIME_CORE_SOURCES)
  find_package(Threads REQUIRED)
  add_library(palmette_runtime_core STATIC ${PALMETTE_RUNTIME_CORE_SOURCES})
  target_link_libraries(palmette_runtime_core PUBLIC palmette_flags palmette_base Threads::Threads ${CMAKE_DL_LIBS})
  add_library(palmette::runtime_core ALIAS palmette_runtime_core)
endif()
