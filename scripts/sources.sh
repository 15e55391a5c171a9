# Sourced by lint.sh and format.sh: the files they process.
mapfile -t cpp_files < <(git ls-files '*.cpp' '*.h' '*.cu' '*.cuh')
mapfile -t core_sources < <(git ls-files 'aimle/*.cpp' ':!aimle/torch' ':!aimle/cuda')
