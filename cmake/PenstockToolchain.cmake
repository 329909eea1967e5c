# Compilers and their flags. Host code needs GCC 12 or newer; GPU code needs CUDA 13.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

if(PENSTOCK_CUDA)
  # A system toolkit takes precedence over the wheels that `make setup` installs.
  if(NOT CMAKE_CUDA_COMPILER AND NOT DEFINED ENV{CUDACXX})
    execute_process(COMMAND ${PROJECT_SOURCE_DIR}/tools/find_nvcc OUTPUT_VARIABLE nvcc OUTPUT_STRIP_TRAILING_WHITESPACE)
    if(NOT nvcc)
      message(FATAL_ERROR "No CUDA 13 compiler found. `make setup` installs one; -DPENSTOCK_CUDA=OFF (make CUDA=off) builds without.")
    endif()
    set(CMAKE_CUDA_COMPILER ${nvcc} CACHE FILEPATH "nvcc" FORCE)
  endif()
  set(CMAKE_CUDA_STANDARD 20)
  set(CMAKE_CUDA_STANDARD_REQUIRED ON)
  # The runtime is static, and the driver is found at run time: one program runs with and without a GPU. No file uses
  # another file's device functions, so each .cu is device-linked separately.
  set(CMAKE_CUDA_RUNTIME_LIBRARY Static)
  set(CMAKE_CUDA_SEPARABLE_COMPILATION OFF)
  # Machine code for Ampere and Hopper, PTX for later architectures.
  if(NOT CMAKE_CUDA_ARCHITECTURES)
    set(CMAKE_CUDA_ARCHITECTURES 80-real 90)
  endif()
  enable_language(CUDA)
  if(CMAKE_CUDA_COMPILER_VERSION VERSION_LESS 13)
    message(FATAL_ERROR "${CMAKE_CUDA_COMPILER} is CUDA ${CMAKE_CUDA_COMPILER_VERSION}; Penstock needs CUDA 13.")
  endif()
endif()

add_library(penstock_flags INTERFACE)
target_compile_options(penstock_flags INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror>
  # GCC 12 has false positives for unused members of temporary strings and for concatenated strings that it takes to
  # overlap (its bugs 105562 and 105651, and similar ones).
  $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-maybe-uninitialized -Wno-restrict>
  # Clang's warnings of these names include more: parameters named like a member, int as an unsigned loop count.
  $<$<COMPILE_LANG_AND_ID:CXX,Clang>:-Wno-shadow -Wno-sign-conversion>
  $<$<COMPILE_LANGUAGE:CUDA>:--expt-relaxed-constexpr -Xcompiler=-Wall,-Wextra -Werror=all-warnings>)

if(PENSTOCK_SANITIZE)
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fsanitize=${PENSTOCK_SANITIZE}>
                      $<$<COMPILE_LANGUAGE:CXX>:-fno-sanitize-recover=all>
                      $<$<COMPILE_LANGUAGE:CXX>:-fno-omit-frame-pointer>)
  add_link_options(-fsanitize=${PENSTOCK_SANITIZE})
endif()

if(PENSTOCK_FUZZ)
  # Coverage of all our code, so that libFuzzer sees the effect of inputs.
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()

find_program(PENSTOCK_CCACHE ccache)
if(PENSTOCK_CCACHE)
  # As its manual demands for precompiled headers.
  set(CMAKE_CXX_COMPILER_LAUNCHER env CCACHE_SLOPPINESS=pch_defines,time_macros ${PENSTOCK_CCACHE})
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${PENSTOCK_CCACHE})
endif()

find_program(PENSTOCK_MOLD mold)
if(PENSTOCK_MOLD)
  add_link_options(-fuse-ld=mold)
endif()

# The libraries' folder in a bundle (PenstockBundle). RPATH instead of RUNPATH, so that it also applies to dependencies
# of libraries.
set(CMAKE_INSTALL_RPATH $ORIGIN/../lib)
set(CMAKE_INSTALL_MESSAGE NEVER)
add_link_options(-Wl,--disable-new-dtags)
