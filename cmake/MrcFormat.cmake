# mrc_format: fmt for whoever formats text, what stands behind its headers compiled once and linked in.
find_package(fmt REQUIRED)
if(fmt_VERSION VERSION_GREATER_EQUAL 9 AND fmt_VERSION VERSION_LESS 10)
  add_library(mrc_format STATIC "${PROJECT_SOURCE_DIR}/cmake/fmt_once.cc")
  target_link_libraries(mrc_format PRIVATE mrc_options)
  target_include_directories(mrc_format SYSTEM PUBLIC
    $<TARGET_PROPERTY:fmt::fmt-header-only,INTERFACE_INCLUDE_DIRECTORIES>)
else()
  # Other releases keep other things behind their headers.
  add_library(mrc_format INTERFACE)
  target_link_libraries(mrc_format INTERFACE fmt::fmt-header-only)
endif()
