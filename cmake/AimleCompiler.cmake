# Ensures a compiler whose shared libraries use the same C++ library as libtorch.
#
# Some toolchains (of conda and of several GPU images) have libstdc++ only as a static archive. A
# shared library linked with one contains a copy of it, and exceptions that cross between that copy
# and libtorch's end the process. Such a compiler is not used with Torch.

# Whether a shared library linked by `compiler` leaves the C++ library to the process.
function(aimle_shares_cxx_library compiler result)
  string(RANDOM LENGTH 8 name)
  if(DEFINED ENV{TMPDIR})
    set(folder $ENV{TMPDIR})
  else()
    set(folder /tmp)
  endif()
  set(source ${folder}/aimle_${name}.cpp)
  set(library ${folder}/aimle_${name}.so)
  file(WRITE ${source} "#include <stdexcept>\nvoid fail() { throw std::runtime_error(\"\"); }\n")
  separate_arguments(command UNIX_COMMAND "${compiler}")
  execute_process(COMMAND ${command} -shared -fPIC -o ${library} ${source}
                  RESULT_VARIABLE failed OUTPUT_QUIET ERROR_QUIET)
  set(${result} FALSE PARENT_SCOPE)
  if(NOT failed)
    file(STRINGS ${library} needed REGEX "^lib(std)?c\\+\\+\\.so" LIMIT_COUNT 1)
    if(needed)
      set(${result} TRUE PARENT_SCOPE)
    endif()
  endif()
  file(REMOVE ${source} ${library})
endfunction()

# Sets `result` to the first of the candidates that shares its C++ library, or to nothing.
function(aimle_find_sharing_compiler result)
  set(${result} "" PARENT_SCOPE)
  foreach(candidate IN LISTS ARGN)
    find_program(found ${candidate} NO_CACHE)
    if(found)
      aimle_shares_cxx_library(${found} shares)
      if(shares)
        set(${result} ${found} PARENT_SCOPE)
        return()
      endif()
    endif()
    unset(found)
  endforeach()
endfunction()

# Before project(): if the environment names an unsuitable compiler and none was chosen with
# -DCMAKE_CXX_COMPILER, uses the system's.
function(aimle_choose_compiler)
  if(CMAKE_CXX_COMPILER OR NOT DEFINED ENV{CXX})
    return()
  endif()
  aimle_shares_cxx_library("$ENV{CXX}" shares)
  if(shares)
    return()
  endif()
  aimle_find_sharing_compiler(compiler /usr/bin/g++ /usr/bin/c++ /usr/bin/clang++ g++ c++ clang++)
  if(compiler)
    message(STATUS "CXX=$ENV{CXX} links the C++ library statically, which is "
                   "incompatible with libtorch; using ${compiler}")
    set(CMAKE_CXX_COMPILER ${compiler} CACHE FILEPATH "C++ compiler")
  endif()
endfunction()

# After project(): stops if the compiler is still unsuitable.
function(aimle_check_compiler)
  if(NOT UNIX OR APPLE OR DEFINED AIMLE_COMPILER_CHECKED)
    return()
  endif()
  aimle_shares_cxx_library(${CMAKE_CXX_COMPILER} shares)
  if(NOT shares)
    message(FATAL_ERROR
      "${CMAKE_CXX_COMPILER} links the C++ library statically (it has libstdc++.a and no "
      "libstdc++.so). Exceptions would not cross between aimle and libtorch. Choose another "
      "compiler, for example -DCMAKE_CXX_COMPILER=/usr/bin/g++, or build only the core with "
      "-DAIMLE_TORCH=OFF.")
  endif()
  set(AIMLE_COMPILER_CHECKED TRUE CACHE INTERNAL "The C++ compiler shares its library")
endfunction()
