# A prefix of its own with the names and places that public MRC programs expect of a card's vendor:
#
#   include/mrc.h                    with the names of early headers; the others as they are
#   include/infiniband/mlx5dv.h      what programs use of libmlx5, where its header lacks it
#   lib/<triplet>/libnv_mrc.so       lib_mrc.so by that name, and by its own ones
#   lib/<triplet>/libibverbs.so      for the linker: ours first, wherever -libverbs stands
#   lib/<triplet>/libibverbs.so.1    the shadow
#
# In the build tree it is at the same place below lib/, so that its links fit both.
set(compat "${libraries}/mrc/compat")
set(triplet "${CMAKE_LIBRARY_ARCHITECTURE}")
if(NOT triplet)
  set(triplet "${CMAKE_SYSTEM_PROCESSOR}-linux-gnu")
endif()
set(compat_libraries "${compat}/lib/${triplet}")

foreach(header IN ITEMS mrc_api_ver.h mrc_ctl.h mrc_ctl_api_ver.h openmrc_counters.h
        openmrc_dialect.h openmrc_log.h openmrc_security.h)
  configure_file("${PROJECT_SOURCE_DIR}/include/${header}" "${compat}/include/${header}" COPYONLY)
endforeach()
configure_file("${PROJECT_SOURCE_DIR}/include/mrc.h" "${compat}/include/openmrc/mrc.h" COPYONLY)
foreach(header IN ITEMS mrc.h infiniband/mlx5dv.h)
  configure_file(compat/${header} "${compat}/include/${header}" COPYONLY)
endforeach()

file(MAKE_DIRECTORY "${compat_libraries}")
foreach(name IN ITEMS libnv_mrc.so libmrc.so lib_mrc.so lib_mrc.so.1)
  file(CREATE_LINK ../../../../lib_mrc.so.1 "${compat_libraries}/${name}" SYMBOLIC)
endforeach()
if(TARGET mrc_shadow)
  configure_file(compat/libibverbs.so "${compat_libraries}/libibverbs.so" COPYONLY)
  file(CREATE_LINK ../../../verbs/libibverbs.so.1 "${compat_libraries}/libibverbs.so.1" SYMBOLIC)
endif()
install(DIRECTORY "${compat}" DESTINATION "${CMAKE_INSTALL_LIBDIR}/mrc" COMPONENT library)
