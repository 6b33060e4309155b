# Where things are installed to, in three components:
#   (none named)  `cmake --install`: library, headers, CMake and pkg-config files, man pages and completions, in the
#                 GNU directories, for administrators and packagers
#   python        what lies in the Python package beside its own files, for `make build` and the wheel
#   demo          the part of it that `palmette demo` needs, which the target palmette_demo builds

include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

add_custom_target(palmette_demo)
set(_in_demo "^(_core|palmette-lab-.+|palmette_yield_sleep|palmette_mpich|program_collbench_mpich)$")

# Into the Python package. `kind`: LIBRARY or RUNTIME.
function(palmette_install target kind destination)
  install(TARGETS ${target} ${kind} DESTINATION ${destination} COMPONENT python EXCLUDE_FROM_ALL)
  if(target MATCHES "${_in_demo}")
    install(TARGETS ${target} ${kind} DESTINATION ${destination} COMPONENT demo EXCLUDE_FROM_ALL)
    add_dependencies(palmette_demo ${target})
  endif()
endfunction()

function(palmette_install_files files destination)
  install(FILES ${files} DESTINATION ${destination} COMPONENT python EXCLUDE_FROM_ALL)
endfunction()

# All that exists in the end, into the GNU directories.
function(palmette_install_gnu)
  set(PALMETTE_BUILT_ABIS "")
  foreach(abi IN LISTS PALMETTE_ABIS)
    if(TARGET palmette_${abi})
      list(APPEND PALMETTE_BUILT_ABIS ${abi})
      install(TARGETS palmette_${abi} palmette_record_${abi} LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}")
    endif()
  endforeach()
  if(NOT PALMETTE_BUILT_ABIS)
    return()
  endif()
  install(FILES ${PALMETTE_HEADERS} DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")

  set(_config_dir "${CMAKE_INSTALL_LIBDIR}/cmake/palmette")
  configure_package_config_file(cmake/palmetteConfig.cmake.in "${CMAKE_CURRENT_BINARY_DIR}/palmetteConfig.cmake"
    INSTALL_DESTINATION "${_config_dir}" PATH_VARS CMAKE_INSTALL_LIBDIR CMAKE_INSTALL_INCLUDEDIR)
  write_basic_package_version_file("${CMAKE_CURRENT_BINARY_DIR}/palmetteConfigVersion.cmake"
    COMPATIBILITY SameMinorVersion)
  install(FILES "${CMAKE_CURRENT_BINARY_DIR}/palmetteConfig.cmake"
                "${CMAKE_CURRENT_BINARY_DIR}/palmetteConfigVersion.cmake" DESTINATION "${_config_dir}")

  # palmette.pc has the headers alone: which library a program is linked with depends on its MPI.
  _palmette_pc(palmette "headers; link by palmette-mpich, palmette-ompi or palmette-abi" "")
  foreach(abi IN LISTS PALMETTE_BUILT_ABIS)
    _palmette_pc(palmette-${abi} "library for MPIs with the ABI ${abi}" "-lpalmette_${abi}")
  endforeach()
  # One for all: which library it is, a variable says (--define-variable=abi=ompi). It has all functions of the MPI's
  # own, which a linker that leaves out what nobody asks for would leave out.
  list(GET PALMETTE_BUILT_ABIS 0 _abi)
  set(PALMETTE_PC_VARIABLES "abi=${_abi}")
  _palmette_pc(palmette-record "the recorder, linked instead of preloaded"
               "-Wl,--no-as-needed -lpalmette_record_\${abi}")
  unset(PALMETTE_PC_VARIABLES)
endfunction()

function(_palmette_pc name what libs)
  # By the place of the file itself, for `cmake --install` may name another prefix.
  if(IS_ABSOLUTE "${CMAKE_INSTALL_INCLUDEDIR}" OR IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}")
    set(_include "${CMAKE_INSTALL_FULL_INCLUDEDIR}")
  else()
    file(RELATIVE_PATH _include "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/${CMAKE_INSTALL_INCLUDEDIR}")
    set(_include "\${pcfiledir}/${_include}")
  endif()
  configure_file(cmake/palmette.pc.in "${CMAKE_CURRENT_BINARY_DIR}/${name}.pc" @ONLY)
  install(FILES "${CMAKE_CURRENT_BINARY_DIR}/${name}.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
endfunction()
