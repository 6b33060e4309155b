# palmette._core from src/palmette/bindings/*.cpp, with its stub _core.pyi.

execute_process(COMMAND "${Python_EXECUTABLE}" -m nanobind --cmake_dir
                OUTPUT_VARIABLE nanobind_ROOT OUTPUT_STRIP_TRAILING_WHITESPACE
                RESULT_VARIABLE _nanobind_missing ERROR_QUIET)
if(_nanobind_missing)
  message(FATAL_ERROR "nanobind is missing for ${Python_EXECUTABLE}: run `make build`, or `pip install nanobind`, "
                      "or configure with -DPALMETTE_BUILD_PYTHON=OFF")
endif()
find_package(nanobind CONFIG REQUIRED)

file(GLOB _sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/src/palmette/bindings/*.cpp")
if(NOT _sources)
  message(FATAL_ERROR "src/palmette/bindings holds no .cpp file, so there is nothing to build palmette._core from")
endif()
# From Python 3.12 on one extension for all newer ones.
nanobind_add_module(_core STABLE_ABI NB_STATIC NB_DOMAIN palmette ${_sources})
target_link_libraries(_core PRIVATE palmette_flags ${PALMETTE_CORE})
palmette_in_batches(_core 9)
set_target_properties(nanobind-static PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 0)
# As system headers, so that our warnings don't apply to them.
target_include_directories(_core SYSTEM PRIVATE "${NB_DIR}/include" ${Python_INCLUDE_DIRS})

nanobind_add_stub(_core_stub MODULE _core
  OUTPUT "${CMAKE_CURRENT_BINARY_DIR}/_core.pyi"
  PYTHON_PATH "$<TARGET_FILE_DIR:_core>"
  DEPENDS _core)

palmette_install(_core LIBRARY palmette)
palmette_install_files("${CMAKE_CURRENT_BINARY_DIR}/_core.pyi" palmette)
