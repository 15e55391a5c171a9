# Installation: headers, libraries, the program, and a CMake package with the
# components `core`, which needs no Torch, and `torch`. A wheel (scikit-build-core sets SKBUILD) has
# the same inside the Python package, so that `find_package(aimle)` works against it too.
include(CMakePackageConfigHelpers)
set(AIMLE_CMAKE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/aimle)

install(DIRECTORY aimle/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/aimle COMPONENT wheel
        FILES_MATCHING PATTERN "*.h" PATTERN "*.cuh" PATTERN "torch" EXCLUDE)
set_target_properties(aimle_core PROPERTIES EXPORT_NAME core)
install(TARGETS aimle_core EXPORT aimle_core
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT wheel)
install(EXPORT aimle_core NAMESPACE aimle:: FILE aimle-core.cmake DESTINATION ${AIMLE_CMAKE_DIR}
        COMPONENT wheel)

if(AIMLE_TORCH)
  install(DIRECTORY aimle/torch/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/aimle/torch
          COMPONENT wheel FILES_MATCHING PATTERN "*.h")
  set_target_properties(aimle_torch PROPERTIES EXPORT_NAME torch)
  install(TARGETS aimle_torch EXPORT aimle_torch
          LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT wheel)
  install(EXPORT aimle_torch NAMESPACE aimle:: FILE aimle-torch.cmake
          DESTINATION ${AIMLE_CMAKE_DIR} COMPONENT wheel)
  install(FILES cmake/aimleTorchTarget.cmake DESTINATION ${AIMLE_CMAKE_DIR} COMPONENT wheel)
endif()
if(TARGET aimle_cli)
  set(aimle_program_path "$ORIGIN")
  set(aimle_library_path "$ORIGIN/../lib")
  if(NOT SKBUILD)
    set(aimle_program_path "$ORIGIN;${AIMLE_TORCH_PREFIX}/lib")
    set(aimle_library_path "$ORIGIN/../${CMAKE_INSTALL_LIBDIR};${AIMLE_TORCH_PREFIX}/lib")
  endif()
  set_target_properties(aimle_program PROPERTIES INSTALL_RPATH "${aimle_program_path}")
  set_target_properties(aimle_cli PROPERTIES INSTALL_RPATH "${aimle_library_path}")
  install(TARGETS aimle_program LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT program)
  install(TARGETS aimle_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT program)
endif()
if(SKBUILD)  # the Python package compares it with the installed torch
  install(FILES ${PROJECT_BINARY_DIR}/_build.json DESTINATION ${CMAKE_INSTALL_LIBDIR}
          COMPONENT wheel)
endif()

configure_package_config_file(cmake/aimleConfig.cmake.in aimleConfig.cmake
                              INSTALL_DESTINATION ${AIMLE_CMAKE_DIR})
write_basic_package_version_file(aimleConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/aimleConfig.cmake ${PROJECT_BINARY_DIR}/aimleConfigVersion.cmake
        DESTINATION ${AIMLE_CMAKE_DIR} COMPONENT wheel)
