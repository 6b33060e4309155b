# One target for each layer without MPI: palmette_<layer>, alias palmette::<layer>.
# A layer links only the layer below it, so a header of a higher layer can be included by mistake (the include root is
# shared), but its symbols don't link; tests/python/test_layers.py catches the include.

set(PALMETTE_CORE_LAYERS base topology plan collectives model select)

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
