# The combined trace hash must not depend on the process or on how seeds are shared out.
foreach(jobs IN ITEMS 1 3)
  execute_process(COMMAND ${DST} --seeds 60 --first 900000 --hash --jobs ${jobs}
                  OUTPUT_VARIABLE output RESULT_VARIABLE status)
  string(REGEX MATCH "combined hash [0-9a-f]+" hash_${jobs} "${output}")
  if(NOT status EQUAL 0 OR hash_${jobs} STREQUAL "")
    message(FATAL_ERROR "dst failed:\n${output}")
  endif()
endforeach()
if(NOT hash_1 STREQUAL hash_3)
  message(FATAL_ERROR "traces differ: ${hash_1} and ${hash_3}")
endif()
message(STATUS "${hash_1}")
