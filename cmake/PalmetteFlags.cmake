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

# Headers of the standard library take more time to compile than most sources: read once for a target, or for those that
# share its flags. ccache needs -fpch-preprocess and CCACHE_SLOPPINESS (tools/launch) for that.
set(PALMETTE_STANDARD_HEADERS <algorithm> <array> <map> <memory> <optional> <string> <string_view> <vector>)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(palmette_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-fpch-preprocess>)
endif()
