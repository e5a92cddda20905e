# -DMRC_COMMANDS="demo;perf": the program `mrc` with these commands, mrc-training beside it, and nothing
# else: no tests, no libraries, no packages. For who waits for a first look; the preset `demo` has it.
#
# scripts/joined.py finds the sources that they need, and joins them to files that the compiler reads
# in a fraction of the time. Warnings are looked for where everything is built.
find_package(CLI11 REQUIRED)
include("${PROJECT_SOURCE_DIR}/tools/mrc/page.cmake")

set(tool "${PROJECT_SOURCE_DIR}/tools/mrc")
set(few_lines 5000)  # of a joined file: two processors are to end at about the same time

# A command that is left out is made of nothing, and main.cc says so.
file(STRINGS "${tool}/command.h" made REGEX "make_[a-z]+_command")
list(TRANSFORM made REPLACE ".*make_([a-z]+)_command.*" "\\1")
set(left_out "#include \"command.h\"\n\nnamespace mrc::tool {\n")
foreach(command IN LISTS made)
  if(NOT command IN_LIST MRC_COMMANDS)
    string(APPEND left_out
      "std::unique_ptr<Command> make_${command}_command() { return nullptr; }\n")
  endif()
endforeach()
file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/left_out.cc" CONTENT "${left_out}}\n" @ONLY)

# The C API stands behind headers that are not beside it.
file(GLOB roots CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/api/*.cc")
list(APPEND roots "${PROJECT_SOURCE_DIR}/src/collective/collectives.cc"
  "${PROJECT_SOURCE_DIR}/src/collective/placement.cc")
list(TRANSFORM roots PREPEND "library:")
list(APPEND roots "training:${PROJECT_SOURCE_DIR}/examples/training/main.cc" "mrc:${tool}/main.cc")
foreach(command IN LISTS MRC_COMMANDS)
  list(APPEND roots "mrc:${tool}/commands/${command}/${command}_command.cc")
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
add_executable(mrc_training ${few_training})
set_target_properties(mrc_training PROPERTIES OUTPUT_NAME mrc-training)
add_executable(mrc ${few_mrc} "${page_source}" "${PROJECT_BINARY_DIR}/left_out.cc")
target_compile_definitions(mrc PRIVATE MRC_VERSION="${PROJECT_VERSION}" MRC_LIBRARY_FOLDER="../lib")
add_dependencies(mrc mrc_training)
foreach(program IN ITEMS mrc mrc_training)
  target_link_libraries(${program} PRIVATE mrc_few)
  set_target_properties(${program} PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/tools/mrc")
endforeach()
