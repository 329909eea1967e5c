# What `cmake --install` installs, for users of Penstock and for programs that are built on it:
#
#   bin/penstock  lib/libpenstock_*.a  include/penstock/  lib/cmake/Penstock/  share/doc/penstock/
#   share/man/  share/bash-completion/  share/zsh/  share/fish/
#
# find_package(Penstock) defines the target Penstock::penstock: everything except the program's main. In
# include/penstock, headers have the same relative paths as in src/, by which they include each other.

include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# Sets `out` to the modules that `module` depends on, including itself.
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

# Headers of network functions, of `control` and of `proxy` are private. Of the commands, only the one for a `main` is public. Helpers for tests of
# functions are part of the package: the packet builder, comparison of stages, access checks.
file(GLOB_RECURSE headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/*.h)
if(PENSTOCK_CUDA)
  file(GLOB_RECURSE cuda_headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/*.cuh)
  list(APPEND headers ${cuda_headers})
endif()
list(FILTER headers EXCLUDE REGEX "/src/(cli|control|proxy|nf/[^/]+)/")
target_sources(penstock_package INTERFACE FILE_SET HEADERS
  BASE_DIRS ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/tests
  FILES ${headers} ${PROJECT_SOURCE_DIR}/src/cli/program_main.h
        ${PROJECT_SOURCE_DIR}/tests/property/access_check.h ${PROJECT_SOURCE_DIR}/tests/property/access_runs.h
        ${PROJECT_SOURCE_DIR}/tests/property/random_packets.h)

penstock_modules_below(cli modules)
list(TRANSFORM modules PREPEND penstock_)
set(package ${CMAKE_INSTALL_LIBDIR}/cmake/Penstock)
install(TARGETS penstock RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
# Not in the bundle, which runs where nothing is installed: it needs DPDK's libraries and drivers.
if(TARGET penstock_dpdk)
  install(TARGETS penstock_dpdk LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()
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
# Of the target `pages`.
set(pages ${PROJECT_BINARY_DIR}/pages)
install(DIRECTORY ${pages}/man/ DESTINATION ${CMAKE_INSTALL_MANDIR} OPTIONAL)
foreach(script penstock:bash-completion/completions _penstock:zsh/site-functions penstock.fish:fish/vendor_completions.d)
  string(REPLACE ":" ";" parts ${script})
  list(GET parts 0 file)
  list(GET parts 1 folder)
  install(FILES ${pages}/completions/${file} DESTINATION ${CMAKE_INSTALL_DATADIR}/${folder} OPTIONAL)
endforeach()
