# Defines the target `torch` from the libtorch at AIMLE_TORCH_PREFIX, and sets Torch_VERSION (0 if it
# is unknown). Torch's own CMake package is not used: in a CUDA build of torch it requires a
# CUDA toolkit, which neither these ops nor their users need.
set(Torch_VERSION 0)
set(aimle_torch_version_header ${AIMLE_TORCH_PREFIX}/include/torch/headeronly/version.h)
if(EXISTS ${aimle_torch_version_header})
  file(STRINGS ${aimle_torch_version_header} aimle_torch_version_lines
       REGEX "^#define TORCH_VERSION_(MAJOR|MINOR|PATCH) ")
  string(REGEX MATCHALL "[0-9]+" aimle_torch_version_parts "${aimle_torch_version_lines}")
  list(JOIN aimle_torch_version_parts "." Torch_VERSION)
endif()

add_library(torch INTERFACE IMPORTED)
target_include_directories(torch INTERFACE
  ${AIMLE_TORCH_PREFIX}/include ${AIMLE_TORCH_PREFIX}/include/torch/csrc/api/include)
target_link_libraries(torch INTERFACE
  ${AIMLE_TORCH_PREFIX}/lib/libtorch.so
  ${AIMLE_TORCH_PREFIX}/lib/libtorch_cpu.so
  ${AIMLE_TORCH_PREFIX}/lib/libc10.so)
