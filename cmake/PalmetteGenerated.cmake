# Headers made at build time from the one declaration of a thing:
#   palmette/base/version.hpp            from the project's version and the commit
#   palmette/interpose/settings_list.hpp from python/palmette/settings.json
#   palmette/trace/function_rows.hpp,
#   palmette/select/functions.hpp        from src/palmette/mpi/functions.txt

if(PALMETTE_BUILD_PYTHON)
  find_package(Python 3.10 REQUIRED COMPONENTS Interpreter Development.Module
               OPTIONAL_COMPONENTS Development.SABIModule)
else()
  find_package(Python 3.10 REQUIRED COMPONENTS Interpreter)
endif()

set(PALMETTE_GENERATED_DIR "${CMAKE_CURRENT_BINARY_DIR}/generated")
target_include_directories(palmette_flags INTERFACE "${PALMETTE_GENERATED_DIR}")

configure_file("${CMAKE_CURRENT_SOURCE_DIR}/cmake/version.hpp.in"
               "${PALMETTE_GENERATED_DIR}/palmette/base/version.hpp" @ONLY)

set(_settings_header "${PALMETTE_GENERATED_DIR}/palmette/interpose/settings_list.hpp")
set(_settings_source "${CMAKE_CURRENT_SOURCE_DIR}/python/palmette/settings.json")
set(_settings_tool "${CMAKE_CURRENT_SOURCE_DIR}/tools/generate_settings_header.py")
add_custom_command(
  OUTPUT "${_settings_header}"
  COMMAND "${Python_EXECUTABLE}" "${_settings_tool}" "${_settings_source}" "${_settings_header}"
  DEPENDS "${_settings_source}" "${_settings_tool}"
  COMMENT "Settings header from settings.json"
  VERBATIM)
set(_functions_headers "${PALMETTE_GENERATED_DIR}/palmette/trace/function_rows.hpp"
                       "${PALMETTE_GENERATED_DIR}/palmette/select/functions.hpp")
set(_functions_source "${CMAKE_CURRENT_SOURCE_DIR}/src/palmette/mpi/functions.txt")
set(_functions_tool "${CMAKE_CURRENT_SOURCE_DIR}/tools/mpi_functions.py")
add_custom_command(
  OUTPUT ${_functions_headers}
  COMMAND "${Python_EXECUTABLE}" "${_functions_tool}" "${_functions_source}" ${_functions_headers}
  DEPENDS "${_functions_source}" "${_functions_tool}"
  COMMENT "Headers from the table of MPI's functions"
  VERBATIM)
add_custom_target(palmette_generated DEPENDS "${_settings_header}" ${_functions_headers})
