# -DMRC_BARE=ON: the library, the NCCL plug-in and what examples/pytorch needs, on a machine with a
# C++20 compiler, CMake 3.20 and no packages. compat/ stands in for what is not installed.

include(CheckIncludeFileCXX)
include(CheckIPOSupported)

# Only the libibverbs that stands before the real one, and the tests, need it.
find_package(Python3 QUIET COMPONENTS Interpreter)

# As in the preset `release`: a fifth of the time per packet.
if(NOT DEFINED CMAKE_INTERPROCEDURAL_OPTIMIZATION)
  check_ipo_supported(RESULT has_ipo OUTPUT ignored LANGUAGES CXX)
  set(CMAKE_INTERPROCEDURAL_OPTIMIZATION ${has_ipo})
endif()

check_include_file_cxx(infiniband/verbs.h MRC_HAVE_VERBS_HEADER)
if(NOT MRC_HAVE_VERBS_HEADER)
  target_include_directories(mrc_options INTERFACE "${PROJECT_SOURCE_DIR}/compat")
endif()
check_include_file_cxx(toml++/toml.h MRC_HAVE_TOML)
if(NOT MRC_HAVE_TOML)
  set(MRC_REPLACED "${PROJECT_SOURCE_DIR}/compat/config_toml.cc")
endif()
