# Makes the target `torch` from the libtorch at Torch_DIR, or else from the one inside the Python
# given as PYTHON. Torch's own CMake package is not used: in a CUDA build of torch it demands a
# CUDA toolkit, which these ops do not need.
if(NOT TARGET torch)
  if(Torch_DIR)
    get_filename_component(AIMLE_TORCH_PREFIX ${Torch_DIR}/../../.. ABSOLUTE)
  else()
    if(SKBUILD)
      set(PYTHON ${Python_EXECUTABLE})
    else()
      set(PYTHON "python3" CACHE STRING "Python whose torch is used")
    endif()
    # In pip's isolated build the environment hides the torch that is installed; -I looks past that.
    foreach(isolated "" -I)
      execute_process(
        COMMAND ${PYTHON} ${isolated} -c
                "import importlib.util as u; print(u.find_spec('torch').submodule_search_locations[0])"
        OUTPUT_VARIABLE AIMLE_TORCH_PREFIX OUTPUT_STRIP_TRAILING_WHITESPACE
        ERROR_QUIET RESULT_VARIABLE failed)
      if(NOT failed)
        break()
      endif()
    endforeach()
    if(failed)
      message(FATAL_ERROR "PYTHON=${PYTHON} has no torch. Point PYTHON at one with torch >= 2.11, "
                          "or build the core alone with -DAIMLE_TORCH=OFF.")
    endif()
  endif()

  file(STRINGS ${AIMLE_TORCH_PREFIX}/include/torch/headeronly/version.h torch_version_lines
       REGEX "^#define TORCH_VERSION_(MAJOR|MINOR|PATCH) ")
  string(REGEX MATCHALL "[0-9]+" torch_version_parts "${torch_version_lines}")
  list(JOIN torch_version_parts "." Torch_VERSION)
  if(Torch_VERSION VERSION_LESS 2.11)
    message(FATAL_ERROR "torch ${Torch_VERSION} in ${AIMLE_TORCH_PREFIX} is too old: "
                        "aimle needs 2.11 or newer")
  endif()
  message(STATUS "torch ${Torch_VERSION} in ${AIMLE_TORCH_PREFIX}")

  add_library(torch INTERFACE IMPORTED)
  target_include_directories(torch INTERFACE
    ${AIMLE_TORCH_PREFIX}/include ${AIMLE_TORCH_PREFIX}/include/torch/csrc/api/include)
  target_link_libraries(torch INTERFACE
    ${AIMLE_TORCH_PREFIX}/lib/libtorch.so
    ${AIMLE_TORCH_PREFIX}/lib/libtorch_cpu.so
    ${AIMLE_TORCH_PREFIX}/lib/libc10.so)
endif()
