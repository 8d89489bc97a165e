# CMake builds programs for Everett with this toolchain: cmake -DCMAKE_TOOLCHAIN_FILE=.../everett.cmake
# The tools are the links beside this file.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR x86_64)
set(CMAKE_C_COMPILER "${CMAKE_CURRENT_LIST_DIR}/everett-cc")
set(CMAKE_CXX_COMPILER "${CMAKE_CURRENT_LIST_DIR}/everett-c++")
set(CMAKE_AR "${CMAKE_CURRENT_LIST_DIR}/everett-ar" CACHE FILEPATH "archiver of bitcode")
set(CMAKE_RANLIB "${CMAKE_CURRENT_LIST_DIR}/everett-ranlib" CACHE FILEPATH "indexer of bitcode")
foreach(language C CXX)
  # With link-time optimisation CMake takes these instead.
  set(CMAKE_${language}_COMPILER_AR "${CMAKE_AR}" CACHE FILEPATH "archiver of bitcode")
  set(CMAKE_${language}_COMPILER_RANLIB "${CMAKE_RANLIB}" CACHE FILEPATH "indexer of bitcode")
endforeach()
# Programs are static, and libraries of the machine are not bitcode: neither are looked for outside the project.
set(BUILD_SHARED_LIBS OFF CACHE BOOL "programs are static")
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(CMAKE_FIND_ROOT_PATH "${CMAKE_SOURCE_DIR}" "${CMAKE_BINARY_DIR}")
