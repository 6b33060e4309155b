# The toolchain of the wheels: PyPI's ziglang (clang, libc++ inside, glibc 2.28), by the scripts of tools/zig.
# PALMETTE_ZIG in the environment names the program, PALMETTE_ZIG_TARGET another target than this machine's.
set(_zig "${CMAKE_CURRENT_LIST_DIR}/../../tools/zig")
set(CMAKE_C_COMPILER "${_zig}/cc")
set(CMAKE_CXX_COMPILER "${_zig}/c++")
set(CMAKE_AR "${_zig}/ar" CACHE FILEPATH "")
set(CMAKE_RANLIB "${_zig}/ranlib" CACHE FILEPATH "")
