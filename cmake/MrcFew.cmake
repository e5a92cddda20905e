# -DMRC_COMMANDS="demo;perf;perf/collective": the program `mrc` with these commands and parts of commands,
# mrc-training beside it, and nothing else: no tests, no libraries, no packages. For who waits for a first
# look; the preset `demo` has it.
#
# scripts/joined.py finds the sources that they need, and joins them to files that the compiler reads
# in a fraction of the time. Warnings are looked for where everything is built.
find_package(CLI11 REQUIRED)
include("${PROJECT_SOURCE_DIR}/tools/mrc/page.cmake")

set(tool "${PROJECT_SOURCE_DIR}/tools/mrc")
set(few_lines 5000)  # of a joined file at most

if(NOT page_files)
  list(REMOVE_ITEM MRC_COMMANDS demo/page)
endif()

# What is left out is made of nothing; who asks for it says so.
set(left_out "")
file(GLOB part_headers CONFIGURE_DEPENDS "${tool}/commands/*/parts.h")
foreach(header IN ITEMS "${tool}/command.h" ${part_headers})
  file(READ "${header}" text)
  string(REGEX REPLACE ".*\nnamespace (mrc[a-z:]*) {.*" "\\1" namespace "${text}")
  string(REGEX MATCHALL "std::unique_ptr<[A-Za-z]+> make_[a-z]+_(command|part)\\([^)]*\\)" made "${text}")
  string(APPEND left_out "#include \"${header}\"\nnamespace ${namespace} {\n")
  get_filename_component(folder "${header}" DIRECTORY)
  get_filename_component(folder "${folder}" NAME)
  foreach(make IN LISTS made)
    string(REGEX REPLACE ".* make_([a-z]+)_part.*" "${folder}/\\1" name "${make}")
    string(REGEX REPLACE ".* make_([a-z]+)_command.*" "\\1" name "${name}")
    if(NOT name IN_LIST MRC_COMMANDS)
      string(APPEND left_out "${make} { return nullptr; }\n")
    endif()
  endforeach()
  string(APPEND left_out "}\n")
endforeach()
file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/left_out.cc" CONTENT "${left_out}" @ONLY)

# The C API stands behind headers that are not beside it.
file(GLOB roots CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/api/*.cc")
list(APPEND roots "${PROJECT_SOURCE_DIR}/src/collective/collectives.cc"
  "${PROJECT_SOURCE_DIR}/src/collective/placement.cc")
list(TRANSFORM roots PREPEND "library:")
list(APPEND roots "training:${PROJECT_SOURCE_DIR}/examples/training/main.cc" "mrc:${tool}/main.cc")
foreach(name IN LISTS MRC_COMMANDS)
  string(REGEX REPLACE "^[a-z]+$" "\\0/\\0_command" file "${name}")
  string(REGEX REPLACE "^[a-z]+/[a-z]+$" "\\0_part" file "${file}")
  list(APPEND roots "mrc:${tool}/commands/${file}.cc")
endforeach()
execute_process(COMMAND "${Python3_EXECUTABLE}" -B "${PROJECT_SOURCE_DIR}/scripts/joined.py"
                        "${PROJECT_BINARY_DIR}/joined" ${few_lines} ${roots}
                OUTPUT_VARIABLE joined RESULT_VARIABLE status)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "scripts/joined.py failed")
endif()
string(REGEX MATCHALL "[^\n]+" joined "${joined}")
foreach(line IN LISTS joined)
  string(REGEX MATCH "^([a-z]*)\t(.+)$" fields "${line}")
  if(CMAKE_MATCH_1)
    list(APPEND few_${CMAKE_MATCH_1} "${CMAKE_MATCH_2}")
  else()
    # Which headers it includes says what is needed beside it.
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${CMAKE_MATCH_2}")
  endif()
endforeach()

add_library(mrc_few STATIC ${few_library})
target_compile_options(mrc_few PUBLIC -w)
target_include_directories(mrc_few PUBLIC "${PROJECT_SOURCE_DIR}/src" "${PROJECT_SOURCE_DIR}/include"
  "${tool}" "${PROJECT_SOURCE_DIR}/examples/training")
target_link_libraries(mrc_few PUBLIC mrc_options mrc_format CLI11::CLI11
  nlohmann_json::nlohmann_json Threads::Threads ${CMAKE_DL_LIBS})
# Sources so large fill more than g++ holds before it looks for what it can throw away, again and again.
target_compile_options(mrc_few PUBLIC
  "$<$<CXX_COMPILER_ID:GNU>:SHELL:--param ggc-min-heapsize=262144>")
add_executable(mrc_training ${few_training})
set_target_properties(mrc_training PROPERTIES OUTPUT_NAME mrc-training)
add_executable(mrc ${few_mrc} "${page_source}" "${PROJECT_BINARY_DIR}/left_out.cc")
target_compile_definitions(mrc PRIVATE MRC_VERSION="${PROJECT_VERSION}" MRC_LIBRARY_FOLDER="../lib")
foreach(program IN ITEMS mrc mrc_training)
  target_link_libraries(${program} PRIVATE mrc_few)
  set_target_properties(${program} PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/tools/mrc")
endforeach()
