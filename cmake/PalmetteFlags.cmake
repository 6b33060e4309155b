# palmette_flags: the warnings and sanitizers that every target of ours is compiled with.

add_library(palmette_flags INTERFACE)
target_include_directories(palmette_flags INTERFACE "${CMAKE_CURRENT_SOURCE_DIR}/src")
# -Wconversion stays on because byte counts meet MPI's int counts here; -Wsign-conversion would only add casts.
target_compile_options(palmette_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow $<$<COMPILE_LANGUAGE:CXX>:-Wconversion;-Wno-sign-conversion>
  $<$<BOOL:${PALMETTE_WERROR}>:-Werror>)
if(PALMETTE_SANITIZE)
  target_compile_options(palmette_flags INTERFACE
    "-fsanitize=${PALMETTE_SANITIZE}" -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(palmette_flags INTERFACE "-fsanitize=${PALMETTE_SANITIZE}")
endif()
