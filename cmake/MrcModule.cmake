# mrc_module(<name> [NO_EXCEPTIONS] [DEPENDS <module>...] [LINK <target>...] [REPLACE <file>...])
#
# NO_EXCEPTIONS: neither throws nor catches. The code can be unwound all the same, since operator new
# throws in its set-up: what was half built is released, and callers keep their clean-up.
#
# REPLACE: each file of these, given by its path, takes the place of the one of the same name.
#
# Declares the library mrc_<name> from all .cc files under src/<name>/. A new file needs no change
# here. Without any .cc file the target is an interface library, so header-only and future modules
# can be linked all the same.
function(mrc_module name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "NO_EXCEPTIONS" "" "DEPENDS;LINK;REPLACE")
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/${name}/*.cc")
  foreach(replacement IN LISTS arg_REPLACE)
    get_filename_component(file "${replacement}" NAME)
    list(FILTER sources EXCLUDE REGEX "/${file}$")
    list(APPEND sources "${replacement}")
  endforeach()
  if(sources)
    add_library(mrc_${name} STATIC ${sources})
    set(scope PUBLIC)
    target_compile_options(mrc_${name} PRIVATE
      $<$<CXX_COMPILER_ID:GNU>:$<$<COMPILE_LANGUAGE:CXX>:-Wmissing-declarations>>)
    if(arg_NO_EXCEPTIONS)
      target_compile_options(mrc_${name} PRIVATE
        $<$<COMPILE_LANGUAGE:CXX>:-fno-rtti>)
    endif()
  else()
    add_library(mrc_${name} INTERFACE)
    set(scope INTERFACE)
  endif()
  target_include_directories(mrc_${name} ${scope} "${PROJECT_SOURCE_DIR}/src")
  list(TRANSFORM arg_DEPENDS PREPEND mrc_)
  target_link_libraries(mrc_${name} ${scope} mrc_options ${arg_DEPENDS} ${arg_LINK})
endfunction()

# Declares mrc_test_support from tests/support; `#include "support/..."` finds its headers.
function(mrc_test_support)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/support/*.cc")
  if(sources)
    add_library(mrc_test_support STATIC ${sources})
    set(scope PUBLIC)
  else()
    add_library(mrc_test_support INTERFACE)
    set(scope INTERFACE)
  endif()
  target_include_directories(mrc_test_support ${scope} "${PROJECT_SOURCE_DIR}/tests")
  target_link_libraries(mrc_test_support ${scope} mrc_core GTest::gtest GTest::gmock)
endfunction()

# Declares the test program <module>_unit_test from tests/unit/<module>/**/*_test.cc, if any exist.
function(mrc_unit_tests module)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS
       "${PROJECT_SOURCE_DIR}/tests/unit/${module}/*_test.cc")
  if(NOT sources)
    return()
  endif()
  set(test ${module}_unit_test)
  add_executable(${test} ${sources})
  set_target_properties(${test} PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/tests/unit")
  target_link_libraries(${test} PRIVATE mrc_${module} mrc_test_support GTest::gtest_main)
  mrc_link_quickly(${test})
  add_test(NAME ${test} COMMAND ${test})
  set_tests_properties(${test} PROPERTIES LABELS unit)
endfunction()
