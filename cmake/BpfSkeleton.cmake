# ringside_bpf_skeleton(NAME SOURCE): compiles a BPF program, strips its DWARF (BTF stays), turns it
# into a C++ skeleton header and offers it as the INTERFACE library NAME_skel (#include "NAME.skel.h").
#
# Sets RINGSIDE_HAVE_LIVE; when it is false RINGSIDE_LIVE_WHY says why and no skeleton can be built.

find_program(RINGSIDE_CLANG NAMES clang clang-19 clang-16 clang-15 clang-14)
find_program(RINGSIDE_LLVM_STRIP NAMES llvm-strip llvm-strip-19 llvm-strip-16 llvm-strip-15 llvm-strip-14)
find_program(RINGSIDE_BPFTOOL bpftool PATHS /usr/sbin /sbin)

set(RINGSIDE_HAVE_LIVE TRUE)
set(RINGSIDE_LIVE_WHY "")
if(RINGSIDE_LIVE STREQUAL OFF)
    set(RINGSIDE_HAVE_LIVE FALSE)
    set(RINGSIDE_LIVE_WHY "RINGSIDE_LIVE is OFF")
else()
    foreach(tool RINGSIDE_CLANG RINGSIDE_LLVM_STRIP RINGSIDE_BPFTOOL)
        if(NOT ${tool})
            string(REPLACE "RINGSIDE_" "" tool_name ${tool})
            string(TOLOWER ${tool_name} tool_name)
            string(REPLACE "_" "-" tool_name ${tool_name})
            set(RINGSIDE_HAVE_LIVE FALSE)
            set(RINGSIDE_LIVE_WHY "${tool_name} was not found")
        endif()
    endforeach()
    if(RINGSIDE_LIVE STREQUAL ON AND NOT RINGSIDE_HAVE_LIVE)
        message(FATAL_ERROR "RINGSIDE_LIVE is ON, but ${RINGSIDE_LIVE_WHY}")
    endif()
endif()

# The kernel's own name of the architecture, for bpf_tracing.h.
string(TOLOWER "${CMAKE_SYSTEM_PROCESSOR}" _processor)
if(_processor MATCHES "x86_64|amd64")
    set(RINGSIDE_BPF_ARCH x86)
elseif(_processor MATCHES "aarch64|arm64")
    set(RINGSIDE_BPF_ARCH arm64)
else()
    set(RINGSIDE_BPF_ARCH ${_processor})
endif()

function(ringside_bpf_skeleton name source)
    set(source_path ${CMAKE_CURRENT_SOURCE_DIR}/${source})
    set(raw ${CMAKE_CURRENT_BINARY_DIR}/${name}.raw.bpf.o)
    set(object ${CMAKE_CURRENT_BINARY_DIR}/${name}.bpf.o)
    set(header ${CMAKE_CURRENT_BINARY_DIR}/${name}.skel.h)

    # <linux/types.h> needs <asm/types.h>, which Debian keeps in the multiarch folder (cross
    # compilers: in a folder of their own) that clang's bpf target does not search.
    add_custom_command(
        OUTPUT ${raw}
        COMMAND ${RINGSIDE_CLANG} -target bpf -mcpu=v3 -O2 -g -std=gnu11
                -Wall -Wextra -Wno-unused-parameter -Werror
                -D__TARGET_ARCH_${RINGSIDE_BPF_ARCH}
                -I${PROJECT_SOURCE_DIR}
                -idirafter /usr/include/${CMAKE_LIBRARY_ARCHITECTURE}
                -idirafter /usr/${CMAKE_LIBRARY_ARCHITECTURE}/include
                -MD -MF ${raw}.d -MT ${raw}
                -c ${source_path} -o ${raw}
        DEPENDS ${source_path}
        DEPFILE ${raw}.d
        COMMENT "BPF ${source}"
        VERBATIM)
    add_custom_command(
        OUTPUT ${object}
        COMMAND ${RINGSIDE_LLVM_STRIP} -g ${raw} -o ${object}
        DEPENDS ${raw}
        VERBATIM)
    add_custom_command(
        OUTPUT ${header}
        COMMAND ${RINGSIDE_BPFTOOL} gen skeleton ${object} name ${name} > ${header}.tmp
        COMMAND ${CMAKE_COMMAND} -E rename ${header}.tmp ${header}
        DEPENDS ${object}
        COMMENT "BPF skeleton ${name}.skel.h"
        VERBATIM)
    add_custom_target(${name}_skel_header DEPENDS ${header})
    add_library(${name}_skel INTERFACE)
    add_dependencies(${name}_skel ${name}_skel_header)
    target_include_directories(${name}_skel SYSTEM INTERFACE ${CMAKE_CURRENT_BINARY_DIR})
    target_link_libraries(${name}_skel INTERFACE PkgConfig::libbpf)
endfunction()
