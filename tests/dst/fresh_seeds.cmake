# Seeds that nobody chose: the commit decides which. Without a repository the day does.
execute_process(COMMAND git -C ${SOURCE} rev-parse HEAD
                OUTPUT_VARIABLE origin OUTPUT_STRIP_TRAILING_WHITESPACE
                RESULT_VARIABLE status ERROR_QUIET)
if(NOT status EQUAL 0)
  string(TIMESTAMP origin "%Y-%m-%d")
endif()
message(STATUS "derived from ${origin}; the same again: "
               "${DST} --theme mixed --seeds ${SEEDS} --derive ${origin}")
execute_process(COMMAND ${DST} --theme mixed --seeds ${SEEDS} --derive ${origin}
                        --results ${RESULTS}
                RESULT_VARIABLE status)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "dst failed; each line above has the command that replays its seed")
endif()
