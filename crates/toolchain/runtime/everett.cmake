# CMake builds programs for Everett with this toolchain: cmake -DCMAKE_TOOLCHAIN_FILE=.../everett.cmake
# The tools are the links beside this file. Programs run on the machine that builds them, so the name of a system is
# not set: CMake would take this for cross-compiling and not run what it tries (try_run).
set(CMAKE_C_COMPILER "${CMAKE_CURRENT_LIST_DIR}/everett-cc")
set(CMAKE_CXX_COMPILER "${CMAKE_CURRENT_LIST_DIR}/everett-c++")
set(CMAKE_AR "${CMAKE_CURRENT_LIST_DIR}/everett-ar" CACHE FILEPATH "archiver of bitcode")
set(CMAKE_RANLIB "${CMAKE_CURRENT_LIST_DIR}/everett-ranlib" CACHE FILEPATH "indexer of bitcode")
foreach(language C CXX)
  # With link-time optimisation CMake takes these instead.
  set(CMAKE_${language}_COMPILER_AR "${CMAKE_AR}" CACHE FILEPATH "archiver of bitcode")
  set(CMAKE_${language}_COMPILER_RANLIB "${CMAKE_RANLIB}" CACHE FILEPATH "indexer of bitcode")
endforeach()

# Programs are static, and libraries of the machine are not bitcode: they are looked for in the project, and in the
# folders that the user names.
set(BUILD_SHARED_LIBS OFF CACHE BOOL "programs are static")
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
list(APPEND CMAKE_FIND_ROOT_PATH ${CMAKE_PREFIX_PATH} "${CMAKE_SOURCE_DIR}" "${CMAKE_BINARY_DIR}")
list(REMOVE_DUPLICATES CMAKE_FIND_ROOT_PATH)
if(NOT DEFINED ENV{PKG_CONFIG_LIBDIR})
  set(ENV{PKG_CONFIG_LIBDIR} "${CMAKE_BINARY_DIR}/lib/pkgconfig")
endif()

# The bitcode of a program is installed beside it. CMake does not tell where targets are installed, so this is done when
# all else is installed: for the files that have the name of a program.
function(everett_programs folder result)
  get_property(targets DIRECTORY "${folder}" PROPERTY BUILDSYSTEM_TARGETS)
  set(programs)
  foreach(target IN LISTS targets)
    get_target_property(type ${target} TYPE)
    if(type STREQUAL "EXECUTABLE")
      list(APPEND programs "$<TARGET_FILE:${target}>")
    endif()
  endforeach()
  get_property(below DIRECTORY "${folder}" PROPERTY SUBDIRECTORIES)
  foreach(next IN LISTS below)
    everett_programs("${next}" more)
    list(APPEND programs ${more})
  endforeach()
  set(${result} "${programs}" PARENT_SCOPE)
endfunction()

function(everett_install_bitcode)
  cmake_policy(SET CMP0087 NEW)
  everett_programs("${CMAKE_SOURCE_DIR}" programs)
  set(all)
  if(NOT CMAKE_VERSION VERSION_LESS 3.21)
    set(all ALL_COMPONENTS)
  endif()
  install(CODE "
    set(everett_programs \"${programs}\")
    foreach(installed IN LISTS CMAKE_INSTALL_MANIFEST_FILES)
      get_filename_component(name \"\${installed}\" NAME)
      foreach(program IN LISTS everett_programs)
        get_filename_component(built \"\${program}\" NAME)
        if(name STREQUAL built AND EXISTS \"\${program}.bc\")
          get_filename_component(folder \"\${installed}\" DIRECTORY)
          file(INSTALL DESTINATION \"\${folder}\" TYPE FILE FILES \"\${program}.bc\")
        endif()
      endforeach()
    endforeach()" ${all})
endfunction()

get_property(tries GLOBAL PROPERTY IN_TRY_COMPILE)
get_property(installs GLOBAL PROPERTY EVERETT_INSTALLS_BITCODE)
if(NOT tries AND NOT installs AND NOT CMAKE_VERSION VERSION_LESS 3.19)
  set_property(GLOBAL PROPERTY EVERETT_INSTALLS_BITCODE ON)
  # Folders are installed in the order in which they were added, not after all that lies above them.
  cmake_language(DEFER DIRECTORY "${CMAKE_SOURCE_DIR}" CALL cmake_policy SET CMP0082 NEW)
  cmake_language(DEFER DIRECTORY "${CMAKE_SOURCE_DIR}" CALL everett_install_bitcode)
endif()
