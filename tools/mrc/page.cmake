# page_source: the page of `mrc view`, part of the program. Without tsc (Debian: node-typescript)
# everything else is built, and the command says what is missing (ADR 28).
find_program(MRC_TSC tsc)
set(pages "${PROJECT_SOURCE_DIR}/pages")
set(page_folder "${PROJECT_BINARY_DIR}/tools/mrc/page")
set(page_source "${page_folder}/assets.cc")
file(MAKE_DIRECTORY "${page_folder}")
set(page_files)
if(MRC_TSC)
  file(GLOB page_sources CONFIGURE_DEPENDS "${pages}/*.ts")
  set(page_files "${page_folder}/page.js" "${pages}/loader.js" "${pages}/start.js"
    "${pages}/index.html" "${pages}/page.css")
  add_custom_command(OUTPUT "${page_folder}/page.js"
    COMMAND ${MRC_TSC} -p "${pages}" --outFile "${page_folder}/page.js"
    DEPENDS ${page_sources} "${pages}/tsconfig.json" VERBATIM)
else()
  message(STATUS "tsc (node-typescript) not found: mrc view will have no page")
endif()
add_custom_command(OUTPUT "${page_source}"
  COMMAND ${Python3_EXECUTABLE} -B "${pages}/embed.py" "${page_source}" ${page_files}
  DEPENDS ${page_files} "${pages}/embed.py" VERBATIM)
