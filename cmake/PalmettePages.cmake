# Man pages and shell completions, from the declarations of the command line (tools/generate_man.py). In a wheel they go
# to share/ of the environment that it is installed into; else `cmake --install` brings them.

execute_process(COMMAND "${Python_EXECUTABLE}" -c "import click" RESULT_VARIABLE _click_missing ERROR_QUIET)
if(_click_missing)
  message(STATUS "man pages and completions skipped: click is missing for ${Python_EXECUTABLE}")
  return()
endif()

set(_pages "${CMAKE_CURRENT_BINARY_DIR}/pages")
set(_pages_tool "${CMAKE_CURRENT_SOURCE_DIR}/tools/generate_man.py")
file(GLOB_RECURSE _declarations CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/python/palmette/*.py"
     "${CMAKE_CURRENT_SOURCE_DIR}/python/palmette_lab/*.py")
add_custom_command(
  OUTPUT "${_pages}/stamp"
  COMMAND "${CMAKE_COMMAND}" -E rm -rf "${_pages}"
  COMMAND "${Python_EXECUTABLE}" "${_pages_tool}" "${_pages}"
  COMMAND "${CMAKE_COMMAND}" -E touch "${_pages}/stamp"
  DEPENDS ${_declarations} "${_pages_tool}" "${CMAKE_CURRENT_SOURCE_DIR}/tools/command_pages.py" "${_settings_source}"
          CHANGELOG.md CMakeLists.txt
  COMMENT "Man pages and shell completions"
  VERBATIM)
add_custom_target(palmette_pages ALL DEPENDS "${_pages}/stamp")

set(_component "")
set(_share "${CMAKE_INSTALL_DATADIR}")
if(SKBUILD)
  set(_component COMPONENT python)
  set(_share "${SKBUILD_DATA_DIR}/share")
endif()
install(DIRECTORY "${_pages}/man1" DESTINATION "${_share}/man" ${_component})
foreach(_place bash:bash-completion/completions zsh:zsh/site-functions fish:fish/vendor_completions.d)
  string(REPLACE ":" ";" _place "${_place}")
  list(GET _place 0 _shell)
  list(GET _place 1 _folder)
  install(DIRECTORY "${_pages}/completions/${_shell}/" DESTINATION "${_share}/${_folder}" ${_component})
endforeach()
