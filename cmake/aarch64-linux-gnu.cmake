# Cross compilation for arm64 with Debian's compiler (g++-aarch64-linux-gnu). The libraries come from
# RINGSIDE_SYSROOT, a folder with unpacked arm64 packages, which `tests/lab/run --build` makes: Debian 12
# cannot install all of them beside those of the host (libfdt-dev is not multiarch).
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)

if(NOT RINGSIDE_SYSROOT)
    set(RINGSIDE_SYSROOT "$ENV{RINGSIDE_SYSROOT}" CACHE PATH "Folder with the arm64 libraries")
endif()
# try_compile() reads this file again, without the cache.
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES RINGSIDE_SYSROOT)
if(NOT RINGSIDE_SYSROOT)
    message(FATAL_ERROR "RINGSIDE_SYSROOT names no folder with arm64 libraries: "
                        "tests/lab/run --build makes it and builds")
endif()

# Libraries of the sysroot only; headers and CMake packages without code also from the host.
set(CMAKE_FIND_ROOT_PATH ${RINGSIDE_SYSROOT})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE BOTH)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE BOTH)
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${RINGSIDE_SYSROOT})
set(ENV{PKG_CONFIG_LIBDIR} ${RINGSIDE_SYSROOT}/usr/lib/aarch64-linux-gnu/pkgconfig)
