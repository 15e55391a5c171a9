# What is installed, and where. In a wheel (scikit-build-core sets SKBUILD): the library of operators
# and the program beside the Python package. Otherwise: headers, libraries, and a CMake package with the components
# `core`, which needs no Torch, and `torch`.

if(SKBUILD)
  install(TARGETS aimle_torch LIBRARY DESTINATION aimle/lib COMPONENT wheel)
  install(FILES ${PROJECT_BINARY_DIR}/_build.json DESTINATION aimle/lib COMPONENT wheel)
  if(TARGET aimle_cli)
    set_target_properties(aimle_cli PROPERTIES INSTALL_RPATH "$ORIGIN/../lib")
    install(TARGETS aimle_cli RUNTIME DESTINATION aimle/bin COMPONENT wheel)
  endif()
  return()
endif()

include(CMakePackageConfigHelpers)
set(AIMLE_CMAKE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/aimle)

install(DIRECTORY aimle/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/aimle
        FILES_MATCHING PATTERN "*.h" PATTERN "torch" EXCLUDE)
set_target_properties(aimle_core PROPERTIES EXPORT_NAME core)
install(TARGETS aimle_core EXPORT aimle_core ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT aimle_core NAMESPACE aimle:: FILE aimle-core.cmake DESTINATION ${AIMLE_CMAKE_DIR})

if(AIMLE_TORCH)
  install(DIRECTORY aimle/torch/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/aimle/torch
          FILES_MATCHING PATTERN "*.h")
  set_target_properties(aimle_torch PROPERTIES EXPORT_NAME torch)
  install(TARGETS aimle_torch EXPORT aimle_torch LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(EXPORT aimle_torch NAMESPACE aimle:: FILE aimle-torch.cmake
          DESTINATION ${AIMLE_CMAKE_DIR})
  install(FILES cmake/aimleTorchTarget.cmake DESTINATION ${AIMLE_CMAKE_DIR})
endif()
if(TARGET aimle_cli)
  set_target_properties(aimle_cli PROPERTIES
    INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR};${AIMLE_TORCH_PREFIX}/lib")
  install(TARGETS aimle_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()

configure_package_config_file(cmake/aimleConfig.cmake.in aimleConfig.cmake
                              INSTALL_DESTINATION ${AIMLE_CMAKE_DIR})
write_basic_package_version_file(aimleConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/aimleConfig.cmake ${PROJECT_BINARY_DIR}/aimleConfigVersion.cmake
        DESTINATION ${AIMLE_CMAKE_DIR})
