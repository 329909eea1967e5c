# One module is one folder of src/, one static library `penstock_<name>`, and its tests and benches beside it.

# penstock_library(<name> SOURCES ... [CUDA_SOURCES ...] [NO_CUDA_SOURCES ...] [DEPENDS ...])
#   CUDA_SOURCES    are compiled where the build has CUDA
#   NO_CUDA_SOURCES stand in for them where it has not
function(penstock_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;CUDA_SOURCES;NO_CUDA_SOURCES;DEPENDS" ${ARGN})
  set(sources ${ARG_SOURCES})
  if(PENSTOCK_CUDA)
    list(APPEND sources ${ARG_CUDA_SOURCES})
  else()
    list(APPEND sources ${ARG_NO_CUDA_SOURCES})
  endif()
  if(sources)
    add_library(penstock_${name} STATIC ${sources})
    target_include_directories(penstock_${name} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src>)
    target_link_libraries(penstock_${name} PUBLIC ${ARG_DEPENDS} PRIVATE $<BUILD_INTERFACE:penstock_flags>)
  else()
    add_library(penstock_${name} INTERFACE)
    target_include_directories(penstock_${name} INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src>)
    target_link_libraries(penstock_${name} INTERFACE ${ARG_DEPENDS})
  endif()
  set_target_properties(penstock_${name} PROPERTIES EXPORT_NAME ${name})
  add_library(penstock::${name} ALIAS penstock_${name})
endfunction()

# penstock_test(<name> SOURCES ... [DEPENDS ...] [LABEL unit|oracle|golden|interop|property|fuzz])
#   Properties (RapidCheck) see the same random cases in every run of ctest; without it, RC_PARAMS is the caller's.
function(penstock_test name)
  if(NOT PENSTOCK_TESTS)
    return()
  endif()
  cmake_parse_arguments(ARG "" "LABEL" "SOURCES;DEPENDS" ${ARGN})
  if(NOT ARG_LABEL)
    set(ARG_LABEL unit)
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_DEPENDS} penstock_flags GTest::gmock GTest::gtest_main ${RAPIDCHECK_LIBRARY})
  target_compile_definitions(${name} PRIVATE PENSTOCK_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  gtest_discover_tests(${name} PROPERTIES LABELS ${ARG_LABEL} ENVIRONMENT "RC_PARAMS=seed=20261" TIMEOUT 600
                       DISCOVERY_TIMEOUT 60)
endfunction()

# penstock_gpu_test(<name> SOURCES ... [DEPENDS ...])
#   A test that needs a GPU. It is built and bundled wherever there is CUDA, and runs by `make gpu-test` alone: ctest does
#   not know it, because the machines that build have no GPU.
function(penstock_gpu_test name)
  if(NOT PENSTOCK_TESTS OR NOT PENSTOCK_CUDA)
    return()
  endif()
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_DEPENDS} penstock_flags GTest::gmock GTest::gtest_main ${RAPIDCHECK_LIBRARY})
  target_compile_definitions(${name} PRIVATE PENSTOCK_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  set_property(GLOBAL APPEND PROPERTY PENSTOCK_GPU_TESTS ${name})
endfunction()

# penstock_bench(<name> SOURCES ... [DEPENDS ...])
function(penstock_bench name)
  if(NOT PENSTOCK_BENCH)
    return()
  endif()
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_DEPENDS} penstock_flags benchmark::benchmark)
  set_property(GLOBAL APPEND PROPERTY PENSTOCK_BENCHES ${name})
endfunction()

# penstock_fuzz(<name> SOURCES x_fuzz.cc CORPUS <folder> [DEPENDS ...])
#   One LLVMFuzzerTestOneInput. With PENSTOCK_FUZZ it is a libFuzzer program; without, a test that replays the corpus.
#   As a test the fuzzer begins with the kept corpus and the same seed each time, keeps nothing that it finds but the input
#   that fails, and ends by itself: after its runs or its time, at an input that takes 10 s, or at 2 GiB of memory.
function(penstock_fuzz name)
  if(NOT PENSTOCK_TESTS)
    return()
  endif()
  cmake_parse_arguments(ARG "" "CORPUS" "SOURCES;DEPENDS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_DEPENDS} penstock_flags)
  if(PENSTOCK_FUZZ)
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
    file(GLOB corpus CONFIGURE_DEPENDS ${ARG_CORPUS}/*)
    list(JOIN corpus "," corpus)
    set(list ${CMAKE_CURRENT_BINARY_DIR}/${name}.corpus)
    file(WRITE ${list} "${corpus}")
    add_test(NAME ${name} COMMAND ${name} -seed=20261 -seed_inputs=@${list} -runs=20000 -max_total_time=20 -timeout=10
                                          -malloc_limit_mb=2048 -rss_limit_mb=0
                                          -artifact_prefix=${CMAKE_CURRENT_BINARY_DIR}/${name}.)
    # Not libFuzzer's limit of memory: before it names the input it prints a profile of the heap, for hours where the
    # stacks of millions of blocks differ.
    set_tests_properties(${name} PROPERTIES ENVIRONMENT "ASAN_OPTIONS=hard_rss_limit_mb=2048")
  else()
    target_sources(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests/fuzz/replay_main.cc)
    add_test(NAME ${name} COMMAND ${name} ${ARG_CORPUS})
  endif()
  set_tests_properties(${name} PROPERTIES LABELS fuzz TIMEOUT 120)
  set_property(GLOBAL APPEND PROPERTY PENSTOCK_FUZZERS ${name})
endfunction()
