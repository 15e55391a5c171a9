# Settings shared by all targets of the project.

# No contraction and no fast-math: the same bits on every machine.
function(aimle_configure target)
  target_compile_features(${target} PUBLIC cxx_std_20)
  target_include_directories(${target} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_compile_options(${target} PRIVATE
    "$<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Wno-missing-field-initializers;-Wno-psabi>"
    "$<$<COMPILE_LANGUAGE:CXX>:-ffp-contract=off>"
    "$<$<COMPILE_LANGUAGE:CUDA>:-fmad=false;-Xcompiler=-ffp-contract=off>")
  if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")  # false alarms of GCC are disabled by name
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-Wno-unknown-warning-option>)
  endif()
  if(AIMLE_WERROR)
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-Werror>)
  endif()
  if(CMAKE_BUILD_TYPE STREQUAL "Release")
    target_compile_options(${target} PRIVATE -O3)
  endif()
  if(AIMLE_SANITIZE)
    set(sanitizers address,undefined)
    if(AIMLE_SANITIZE STREQUAL "THREAD")
      set(sanitizers thread)
    endif()
    target_compile_options(${target} PUBLIC -fsanitize=${sanitizers} -fno-sanitize-recover=all
                                            -fno-omit-frame-pointer)
    target_link_options(${target} PUBLIC -fsanitize=${sanitizers})
  endif()
  get_target_property(type ${target} TYPE)
  if(type STREQUAL "EXECUTABLE")
    aimle_own_stdlib_first(${target})
  endif()
endfunction()

# libtorch exports the std::filesystem of the C++ library that it was built with. Found before this
# compiler's own, it crashed programs built by GCC 13. So a program looks there first.
function(aimle_own_stdlib_first target)
  if(CMAKE_SYSTEM_NAME STREQUAL "Linux" AND NOT AIMLE_SANITIZE)
    target_link_options(${target} PRIVATE
      "SHELL:LINKER:--push-state,--no-as-needed -lstdc++ LINKER:--pop-state")
  endif()
endfunction()

# How fuzzing counts branches: clang has libFuzzer, which needs its own instrumentation.
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  set(AIMLE_COUNT_BRANCHES -fsanitize=fuzzer-no-link)
else()
  set(AIMLE_COUNT_BRANCHES -fsanitize-coverage=trace-pc)
endif()

# For targets that are slow to compile but need little optimisation: they call libtorch, or read
# options.
function(aimle_glue target)
  if(CMAKE_BUILD_TYPE STREQUAL "Release")
    target_compile_options(${target} PRIVATE -O1)
  endif()
endfunction()

# Sources compiled for an instruction set; they run only after isa() has checked the processor. errno
# and the flags of floating-point exceptions do not matter there, and keeping them would prevent
# vectorisation.
function(aimle_vector_sources target options)
  if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    return()
  endif()
  foreach(source IN LISTS ARGN)
    set_source_files_properties(${source} PROPERTIES COMPILE_OPTIONS
                                "${options};-fno-math-errno;-fno-trapping-math")
    target_sources(${target} PRIVATE ${source})
  endforeach()
endfunction()

function(aimle_avx2_sources target)
  aimle_vector_sources(${target} "-mavx2;-mfma;-mbmi2" ${ARGN})
endfunction()

function(aimle_avx512_sources target)
  # The warnings are false alarms of GCC 12 inside its own header.
  aimle_vector_sources(${target}
    "-mavx512f;-mavx512bw;-mavx512dq;-mavx512vl;-mfma;-mbmi2;-Wno-maybe-uninitialized"
    ${ARGN})
endfunction()

# Compiles the sources of each folder as one unit, because most of the time goes into Torch's headers.
# Names in anonymous namespaces must therefore be unique within a folder. CMake's own unity builds
# name the sources by absolute path, which a compiler cache cannot share between checkouts.
function(aimle_compile_by_folder target)
  if(NOT AIMLE_UNITY)
    return()
  endif()
  # A class may have members from the anonymous namespace of its own file.
  target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
  # At the end of the folder's CMakeLists.txt, when the properties of all sources are known.
  cmake_language(EVAL CODE "cmake_language(DEFER CALL aimle_write_units ${target})")
endfunction()

# Replaces the sources of a target by one unit per folder. Sources with compiler settings of their own
# stay as they are.
function(aimle_write_units target)
  get_target_property(sources ${target} SOURCES)
  set(folders)
  foreach(source IN LISTS sources)
    if(source MATCHES "\\$<")
      continue()
    endif()
    foreach(property COMPILE_DEFINITIONS COMPILE_OPTIONS INCLUDE_DIRECTORIES)
      get_source_file_property(own ${source} ${property})
      if(own)
        break()
      endif()
    endforeach()
    if(own)
      continue()
    endif()
    get_filename_component(folder ${source} DIRECTORY)
    if(folder STREQUAL "")
      set(folder top)
    endif()
    string(MAKE_C_IDENTIFIER ${folder} folder)
    list(APPEND folders ${folder})
    list(APPEND sources_of_${folder} ${source})
  endforeach()
  list(REMOVE_DUPLICATES folders)
  foreach(folder IN LISTS folders)
    set(includes "// Generated by CMake.\n")
    foreach(source IN LISTS sources_of_${folder})
      file(RELATIVE_PATH path ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR}/${source})
      string(APPEND includes "#include \"${path}\"\n")
      set_source_files_properties(${source} PROPERTIES HEADER_FILE_ONLY ON)
    endforeach()
    set(unit ${CMAKE_CURRENT_BINARY_DIR}/units/${target}/${folder}.cpp)
    file(CONFIGURE OUTPUT ${unit} CONTENT "${includes}" @ONLY)
    target_sources(${target} PRIVATE ${unit})
  endforeach()
endfunction()
