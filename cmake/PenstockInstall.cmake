# What `cmake --install` lays out, for those who run Penstock and those who build on it:
#
#   bin/penstock  lib/libpenstock_*.a  include/penstock/  lib/cmake/Penstock/  share/doc/penstock/
#
# find_package(Penstock) gives the target Penstock::penstock: all but the programs' main. Below include/penstock, headers
# lie as in src/, whose paths they include each other by.

include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# The modules that `module` stands on, itself included, into `out`.
function(penstock_modules_below module out)
  set(found ${module})
  get_target_property(links penstock_${module} INTERFACE_LINK_LIBRARIES)
  string(REGEX MATCHALL "penstock::[a-z_]+" links "${links}")
  foreach(link ${links})
    string(REPLACE "penstock::" "" name ${link})
    penstock_modules_below(${name} below)
    list(APPEND found ${below})
  endforeach()
  list(REMOVE_DUPLICATES found)
  set(${out} ${found} PARENT_SCOPE)
endfunction()

add_library(penstock_package INTERFACE)
set_target_properties(penstock_package PROPERTIES EXPORT_NAME penstock)
target_link_libraries(penstock_package INTERFACE penstock::cli)
target_compile_features(penstock_package INTERFACE cxx_std_20)
target_compile_options(penstock_package INTERFACE $<$<COMPILE_LANGUAGE:CUDA>:--expt-relaxed-constexpr>)

# A network function's headers are its own. Of the commands, a `main` is all that others call. What
# tests of functions need is part of the package: packets to build, ways to compare stages, checks of accesses.
file(GLOB_RECURSE headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/*.h)
if(PENSTOCK_CUDA)
  file(GLOB_RECURSE cuda_headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/*.cuh)
  list(APPEND headers ${cuda_headers})
endif()
list(FILTER headers EXCLUDE REGEX "/src/(cli|nf/[^/]+)/")
target_sources(penstock_package INTERFACE FILE_SET HEADERS
  BASE_DIRS ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/tests
  FILES ${headers} ${PROJECT_SOURCE_DIR}/src/cli/program_main.h
        ${PROJECT_SOURCE_DIR}/tests/property/access_check.h ${PROJECT_SOURCE_DIR}/tests/property/access_runs.h
        ${PROJECT_SOURCE_DIR}/tests/property/random_packets.h)

penstock_modules_below(cli modules)
list(TRANSFORM modules PREPEND penstock_)
set(package ${CMAKE_INSTALL_LIBDIR}/cmake/Penstock)
install(TARGETS penstock RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(TARGETS penstock_package ${modules} EXPORT penstock
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
  FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/penstock)
install(EXPORT penstock NAMESPACE Penstock:: FILE PenstockTargets.cmake DESTINATION ${package})
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/PenstockConfig.cmake.in ${PROJECT_BINARY_DIR}/PenstockConfig.cmake
  INSTALL_DESTINATION ${package} NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/PenstockConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/PenstockConfig.cmake ${PROJECT_BINARY_DIR}/PenstockConfigVersion.cmake
              ${CMAKE_CURRENT_LIST_DIR}/PenstockLibraries.cmake
  DESTINATION ${package})
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
