# Several sources of a target are compiled as one, as scripts/batches.py says which. Cold, two
# processors build and link everything in about half of the time.
#
# Off by itself: where every file is compiled alone, as in the preset `clang`, a missing #include shows.
option(MRC_UNITY "Compile several sources at once" OFF)

set(mrc_unity_files 8)

# Adds a line for each source of each target in this folder and below to the variable `out`.
function(mrc_unity_lines folder out)
  set(lines "${${out}}")
  get_property(targets DIRECTORY "${folder}" PROPERTY BUILDSYSTEM_TARGETS)
  foreach(target IN LISTS targets)
    get_target_property(type ${target} TYPE)
    if(NOT type MATCHES "EXECUTABLE|LIBRARY" OR type STREQUAL "INTERFACE_LIBRARY")
      continue()
    endif()
    get_target_property(sources ${target} SOURCES)
    get_target_property(base ${target} SOURCE_DIR)
    list(FILTER sources INCLUDE REGEX "\\.cc$")
    list(LENGTH sources count)
    if(count LESS 2)
      continue()
    endif()
    foreach(source IN LISTS sources)
      get_filename_component(path "${source}" ABSOLUTE BASE_DIR "${base}")
      get_source_file_property(generated "${path}" TARGET_DIRECTORY ${target} GENERATED)
      if(EXISTS "${path}" AND NOT generated)
        string(APPEND lines "${target}\t${path}\n")
      endif()
    endforeach()
  endforeach()
  get_property(folders DIRECTORY "${folder}" PROPERTY SUBDIRECTORIES)
  foreach(inner IN LISTS folders)
    mrc_unity_lines("${inner}" lines)
  endforeach()
  set(${out} "${lines}" PARENT_SCOPE)
endfunction()

# To be called when all targets are there.
function(mrc_unity)
  if(NOT MRC_UNITY)
    return()
  endif()
  find_package(Python3 REQUIRED COMPONENTS Interpreter)
  set(lines "")
  mrc_unity_lines("${PROJECT_SOURCE_DIR}" lines)
  set(list "${PROJECT_BINARY_DIR}/unity.txt")
  file(WRITE "${list}" "${lines}")
  execute_process(COMMAND "${Python3_EXECUTABLE}" "${PROJECT_SOURCE_DIR}/scripts/batches.py"
                          ${mrc_unity_files}
                  INPUT_FILE "${list}" OUTPUT_VARIABLE batches RESULT_VARIABLE status)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "scripts/batches.py failed")
  endif()
  # It takes what is not the main file of a compilation for a header.
  target_compile_options(mrc_options INTERFACE
    $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-subobject-linkage>)
  string(REGEX MATCHALL "[^\n]+" batches "${batches}")
  foreach(batch IN LISTS batches)
    string(REGEX MATCH "^([^\t]+)\t([^\t]+)\t([0-9]+)$" fields "${batch}")
    set_source_files_properties("${CMAKE_MATCH_2}" TARGET_DIRECTORY ${CMAKE_MATCH_1}
                                PROPERTIES UNITY_GROUP "${CMAKE_MATCH_1}${CMAKE_MATCH_3}")
    set_target_properties(${CMAKE_MATCH_1} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  endforeach()
endfunction()
