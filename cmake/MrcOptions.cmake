# Compiler flags for everything we build. They hang on the interface target `mrc_options`, which
# mrc_module() and the test functions link; a folder with its own CMakeLists.txt gets them by
# linking any mrc_<module>, or mrc_options itself.

include(CheckCXXCompilerFlag)
include(CheckPIESupported)

option(MRC_BARE "The library and the NCCL plug-in alone, from a compiler and CMake alone" OFF)
# Machines without packages have compilers that we never tried.
set(werror ON)
if(MRC_BARE)
  set(werror OFF)
endif()
set(MRC_SANITIZE "" CACHE STRING "Value for -fsanitize=, for example address,undefined")
option(MRC_FUZZ "Instrument for libFuzzer; fuzz/ links with -fsanitize=fuzzer (clang only)" OFF)
option(MRC_COVERAGE "Instrument for gcov" OFF)
option(MRC_PLANTED_BUGS "Compile the planted bugs that the simulator tests must find" OFF)
option(MRC_WERROR "Treat warnings as errors" ${werror})

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 11)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
# The static libraries end up in a shared library as well.
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
check_pie_supported()

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "Build type" FORCE)
endif()
# NDEBUG is not defined in any build: what we assert holds in production too.
set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O2 -g1")
set(CMAKE_C_FLAGS_RELWITHDEBINFO "-O2 -g1")
set(CMAKE_CXX_FLAGS_DEBUG "-O0 -g")
set(CMAKE_C_FLAGS_DEBUG "-O0 -g")

add_library(mrc_options INTERFACE)
# One seed, one result, whatever the compiler: no fused multiply-add where the source has two steps.
target_compile_options(mrc_options INTERFACE -ffp-contract=off)
target_compile_definitions(mrc_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:_GLIBCXX_ASSERTIONS>)
if(MRC_PLANTED_BUGS)
  target_compile_definitions(mrc_options INTERFACE MRC_PLANTED_BUGS=1)
endif()

# Adds each C++ flag that this compiler knows to the given list variable.
function(mrc_known_flags out)
  set(known ${${out}})
  foreach(flag IN LISTS ARGN)
    string(MAKE_C_IDENTIFIER "MRC_HAS${flag}" var)
    set(CMAKE_REQUIRED_FLAGS "-Werror")
    check_cxx_compiler_flag(${flag} ${var})
    if(${var})
      list(APPEND known ${flag})
    endif()
  endforeach()
  set(${out} ${known} PARENT_SCOPE)
endfunction()
set(CMAKE_REQUIRED_QUIET ON)

set(warnings -Wall -Wextra -Wpedantic -Wshadow -Wcast-align -Wundef -Wformat=2 -Wvla
    -Wimplicit-fallthrough -Wpointer-arith)
# Designated initialisers leave members at their defaults on purpose.
list(APPEND warnings -Wno-missing-field-initializers)
if(MRC_WERROR)
  list(APPEND warnings -Werror)
endif()
set(cxx_warnings -Wold-style-cast -Wnon-virtual-dtor -Woverloaded-virtual -Wextra-semi)
mrc_known_flags(cxx_warnings -Wduplicated-cond -Wlogical-op -Wcast-qual -Wredundant-decls
                -Wmismatched-tags)
target_compile_options(mrc_options INTERFACE
  $<$<COMPILE_LANGUAGE:C,CXX>:${warnings}> $<$<COMPILE_LANGUAGE:CXX>:${cxx_warnings}>)

if(MRC_SANITIZE OR MRC_FUZZ)
  set(sanitize "")
  if(MRC_SANITIZE)
    # The core has no type information, which the vptr check needs.
    list(APPEND sanitize -fsanitize=${MRC_SANITIZE} -fno-sanitize-recover=all -fno-sanitize=vptr)
  endif()
  target_link_options(mrc_options INTERFACE ${sanitize})
  if(MRC_FUZZ)
    list(APPEND sanitize -fsanitize=fuzzer-no-link)
  endif()
  target_compile_options(mrc_options INTERFACE ${sanitize} -fno-omit-frame-pointer)
elseif(MRC_COVERAGE)
  target_compile_options(mrc_options INTERFACE --coverage)
  target_link_options(mrc_options INTERFACE --coverage)
elseif(CMAKE_BUILD_TYPE STREQUAL "RelWithDebInfo")
  set(hardening "")
  mrc_known_flags(hardening -fstack-protector-strong -fstack-clash-protection
                  -ftrivial-auto-var-init=zero)
  target_compile_options(mrc_options INTERFACE ${hardening})
  # Position-independent code must not keep g++ from inlining our own functions.
  set(inlining "")
  mrc_known_flags(inlining -fno-semantic-interposition)
  target_compile_options(mrc_options INTERFACE ${inlining})
  set(fortify 3)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 12)
    set(fortify 2)
  endif()
  target_compile_options(mrc_options INTERFACE -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=${fortify})
  target_link_options(mrc_options INTERFACE -Wl,-z,relro -Wl,-z,now)
endif()

# For programs that replace operator new: ThreadSanitizer's own, which clang++ links and clang does
# not, would stand in their way.
function(mrc_replaces_operator_new target)
  if(MRC_SANITIZE MATCHES "thread")
    set_target_properties(${target} PROPERTIES LINKER_LANGUAGE C)
  endif()
endfunction()

# Link-time optimisation takes 12 s of a processor for each program. So only what is shipped or
# measured has it; the objects hold machine code as well, and tests are linked from that.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  set(CMAKE_C_COMPILE_OPTIONS_IPO -flto=auto -ffat-lto-objects)
  set(CMAKE_CXX_COMPILE_OPTIONS_IPO -flto=auto -ffat-lto-objects)
endif()

# Objects of nothing but a program that is linked so need no machine code of their own: those of `mrc`
# take half of the time to compile without.
function(mrc_compile_at_link_time)
  foreach(target IN LISTS ARGN)
    get_target_property(optimised ${target} INTERPROCEDURAL_OPTIMIZATION)
    if(optimised)
      target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-fno-fat-lto-objects>)
    endif()
  endforeach()
endfunction()

function(mrc_link_quickly)
  foreach(target IN LISTS ARGN)
    get_target_property(type ${target} TYPE)
    if(type STREQUAL "EXECUTABLE")
      set_target_properties(${target} PROPERTIES INTERPROCEDURAL_OPTIMIZATION OFF)
      target_link_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-fno-lto>)
    endif()
  endforeach()
endfunction()

# All programs of a folder and of those in it.
function(mrc_link_folder_quickly folder)
  get_property(targets DIRECTORY "${folder}" PROPERTY BUILDSYSTEM_TARGETS)
  mrc_link_quickly(${targets})
  get_property(folders DIRECTORY "${folder}" PROPERTY SUBDIRECTORIES)
  foreach(inner IN LISTS folders)
    mrc_link_folder_quickly("${inner}")
  endforeach()
endfunction()
