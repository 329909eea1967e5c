# penstock::version, declared in base/version.h. The commit is determined in every build, because it changes without
# CMake running; version.cc is only rewritten if its contents change.

if(CMAKE_SCRIPT_MODE_FILE)
  execute_process(COMMAND git -C ${SOURCE_DIR} describe --always --dirty --abbrev=12 --exclude=*
                  OUTPUT_VARIABLE COMMIT OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  if(NOT COMMIT)
    set(COMMIT unknown)
  endif()
  configure_file(${SOURCE_DIR}/cmake/version.cc.in ${OUTPUT} @ONLY)
  return()
endif()

set(cuda "")
if(PENSTOCK_CUDA)
  set(cuda ${CMAKE_CUDA_COMPILER_VERSION})
endif()
set(version_cc ${PROJECT_BINARY_DIR}/version.cc)
add_custom_target(penstock_version_source
  COMMAND ${CMAKE_COMMAND} -DSOURCE_DIR=${PROJECT_SOURCE_DIR} -DOUTPUT=${version_cc} -DVERSION=${PROJECT_VERSION}
          "-DCOMPILER=${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}" "-DCUDA=${cuda}"
          "-DBUILD_TYPE=${CMAKE_BUILD_TYPE}" -P ${PROJECT_SOURCE_DIR}/cmake/PenstockVersion.cmake
  BYPRODUCTS ${version_cc}
  COMMENT "Looking up the commit"
  VERBATIM)

add_library(penstock_version STATIC ${version_cc})
add_dependencies(penstock_version penstock_version_source)
target_include_directories(penstock_version PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src>)
target_link_libraries(penstock_version PRIVATE $<BUILD_INTERFACE:penstock_flags>)
set_target_properties(penstock_version PROPERTIES EXPORT_NAME version)
add_library(penstock::version ALIAS penstock_version)
