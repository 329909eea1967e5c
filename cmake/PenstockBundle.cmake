# The target `bundle`: the program, the GPU tests and the benches, with the shared libraries that they need, in a folder
# that runs on a machine with nothing installed. The C and C++ runtimes are not included: any newer system has
# compatible ones. A plain `cmake --install` does not install the bundle.
#
#   dist/penstock-<version>-<arch>/
#     bin/penstock  gpu-tests/  benches/  lib/  examples/  tests/{golden,interop/live}/  gpu-test  bench  bench-reload
#     LICENSE

get_property(gpu_tests GLOBAL PROPERTY PENSTOCK_GPU_TESTS)
get_property(benches GLOBAL PROPERTY PENSTOCK_BENCHES)
get_property(fuzzers GLOBAL PROPERTY PENSTOCK_FUZZERS)
get_property(unit_tests GLOBAL PROPERTY PENSTOCK_UNIT_TESTS)

# Lists of tests and benches for the scripts in tools/: as files, and as targets of the build.
foreach(kind gpu_tests benches)
  set(paths "")
  foreach(target ${${kind}})
    string(APPEND paths "$<TARGET_FILE:${target}>\n")
  endforeach()
  file(GENERATE OUTPUT ${PROJECT_BINARY_DIR}/${kind}.txt CONTENT "${paths}")
endforeach()
foreach(kind unit_tests fuzzers)
  list(JOIN ${kind} "\n" names)
  file(WRITE ${PROJECT_BINARY_DIR}/${kind}.txt "${names}\n")
endforeach()

add_custom_target(gpu_tests DEPENDS ${gpu_tests})
add_custom_target(benches DEPENDS ${benches})

set(bundled ${gpu_tests} ${benches})
if(TARGET penstock)
  list(APPEND bundled penstock)
  install(TARGETS penstock RUNTIME_DEPENDENCY_SET bundle RUNTIME DESTINATION bin COMPONENT bundle EXCLUDE_FROM_ALL)
endif()
if(gpu_tests)
  install(TARGETS ${gpu_tests} RUNTIME_DEPENDENCY_SET bundle RUNTIME DESTINATION gpu-tests COMPONENT bundle EXCLUDE_FROM_ALL)
endif()
if(benches)
  install(TARGETS ${benches} RUNTIME_DEPENDENCY_SET bundle RUNTIME DESTINATION benches COMPONENT bundle EXCLUDE_FROM_ALL)
endif()
if(bundled)
  install(RUNTIME_DEPENDENCY_SET bundle
    PRE_EXCLUDE_REGEXES "^ld-linux" "^lib(c|m|dl|rt|pthread|gcc_s|stdc\\+\\+)\\.so" "^libcuda\\.so"
    LIBRARY DESTINATION lib COMPONENT bundle EXCLUDE_FROM_ALL)
endif()

# NVRTC, which compiles generated code on the GPU machine. It is loaded at run time, so it is no dependency that CMake
# sees. It doubles the size of the bundle; without it, programs look for it in the usual places (gpu/nvrtc.cc).
option(PENSTOCK_BUNDLE_NVRTC "include NVIDIA's runtime compiler in the bundle" ON)
if(PENSTOCK_CUDA AND PENSTOCK_BUNDLE_NVRTC)
  get_filename_component(toolkit ${CMAKE_CUDA_COMPILER} REALPATH)
  get_filename_component(toolkit ${toolkit}/../.. ABSOLUTE)
  foreach(folder lib64 lib)
    file(GLOB nvrtc ${toolkit}/${folder}/libnvrtc.so.1[0-9] ${toolkit}/${folder}/libnvrtc-builtins.so.1[0-9].[0-9])
    if(nvrtc)
      break()
    endif()
  endforeach()
  if(nvrtc)
    list(JOIN nvrtc " " nvrtc)
    install(CODE "file(INSTALL ${nvrtc} DESTINATION \"\${CMAKE_INSTALL_PREFIX}/lib\" FOLLOW_SYMLINK_CHAIN)"
            COMPONENT bundle EXCLUDE_FROM_ALL)
  else()
    message(WARNING "The bundle will have no NVRTC: there is none in ${toolkit}. Generated filters need one on the GPU machine.")
  endif()
endif()
install(PROGRAMS tools/gpu_test DESTINATION . RENAME gpu-test COMPONENT bundle EXCLUDE_FROM_ALL)
install(PROGRAMS tools/bench DESTINATION . RENAME bench COMPONENT bundle EXCLUDE_FROM_ALL)
install(PROGRAMS bench/reload DESTINATION . RENAME bench-reload COMPONENT bundle EXCLUDE_FROM_ALL)
install(PROGRAMS tools/machine_name DESTINATION . COMPONENT bundle EXCLUDE_FROM_ALL)
install(FILES LICENSE DESTINATION . COMPONENT bundle EXCLUDE_FROM_ALL)
install(DIRECTORY examples DESTINATION . COMPONENT bundle EXCLUDE_FROM_ALL
        PATTERN "out*" EXCLUDE PATTERN "eve.json" EXCLUDE PATTERN "alerts.log" EXCLUDE)
# The chains that the GPU tests run, with the same paths as in the sources.
install(DIRECTORY tests/golden DESTINATION tests COMPONENT bundle EXCLUDE_FROM_ALL
  PATTERN "out*" EXCLUDE
  PATTERN "*.cc" EXCLUDE
  PATTERN "*.h" EXCLUDE
  PATTERN "*.py" EXCLUDE
  PATTERN "__pycache__" EXCLUDE
  PATTERN "make" EXCLUDE)
# The scenarios of live_gpu_test.
install(DIRECTORY tests/interop/live DESTINATION tests/interop COMPONENT bundle EXCLUDE_FROM_ALL
  PATTERN "__pycache__" EXCLUDE)

set(name penstock-${PROJECT_VERSION}-${CMAKE_SYSTEM_PROCESSOR})
set(dist ${PROJECT_SOURCE_DIR}/dist)
add_custom_target(bundle
  COMMAND ${CMAKE_COMMAND} -E rm -rf ${dist}/${name}
  COMMAND ${CMAKE_COMMAND} --install ${PROJECT_BINARY_DIR} --prefix ${dist}/${name} --component bundle --strip
  COMMAND ${CMAKE_COMMAND} -E chdir ${dist} ${CMAKE_COMMAND} -E tar czf ${name}.tar.gz ${name}
  DEPENDS ${bundled}
  COMMENT "Bundling dist/${name}.tar.gz"
  VERBATIM)
