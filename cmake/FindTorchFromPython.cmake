# Defines the target `torch` from the libtorch at Torch_DIR, or otherwise from that of the Python
# given as PYTHON.
if(NOT TARGET torch)
  if(Torch_DIR)
    get_filename_component(AIMLE_TORCH_PREFIX ${Torch_DIR}/../../.. ABSOLUTE)
  else()
    if(SKBUILD)
      set(PYTHON ${Python_EXECUTABLE})
    else()
      set(PYTHON "python3" CACHE STRING "Python whose torch is used")
    endif()
    # In pip's isolated build the environment hides the installed torch; -I ignores the environment.
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
      message(FATAL_ERROR "PYTHON=${PYTHON} has no torch: run `pip install torch` first (2.11 or newer), "
                          "set PYTHON to one that has it, or build the core alone with "
                          "-DAIMLE_TORCH=OFF.")
    endif()
  endif()

  include(aimleTorchTarget)
  if(Torch_VERSION VERSION_LESS 2.11)
    message(FATAL_ERROR "torch ${Torch_VERSION} in ${AIMLE_TORCH_PREFIX} is too old: "
                        "aimle needs 2.11 or newer")
  endif()
  message(STATUS "torch ${Torch_VERSION} in ${AIMLE_TORCH_PREFIX}")
endif()
