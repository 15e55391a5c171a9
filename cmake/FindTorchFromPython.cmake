# Finds the libtorch inside the Python given as PYTHON (or the one on the PATH) when the caller has
# not pointed CMake at one.
if(NOT Torch_DIR AND NOT "$ENV{Torch_DIR}")
  set(PYTHON "python3" CACHE STRING "Python whose torch is used")
  execute_process(
    COMMAND ${PYTHON} -c "import torch; print(torch.utils.cmake_prefix_path)"
    OUTPUT_VARIABLE torch_prefix OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE failed)
  if(failed)
    message(FATAL_ERROR "PYTHON=${PYTHON} has no torch. Point PYTHON at one with torch >= 2.11, "
                        "or build the core alone with -DAIMLE_TORCH=OFF.")
  endif()
  list(APPEND CMAKE_PREFIX_PATH ${torch_prefix})
endif()
find_package(Torch REQUIRED)
if(Torch_VERSION VERSION_LESS 2.11)
  message(FATAL_ERROR "torch ${Torch_VERSION} is too old: aimle needs 2.11 or newer")
endif()
