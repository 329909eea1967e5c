# A module is a folder of src/: a static library `penstock_<name>`, with its tests and benches in the same folder.

# penstock_library(<name> SOURCES ... [ALONE ...] [CUDA_SOURCES ...] [NO_CUDA_SOURCES ...] [DEPENDS ...])
#   ALONE           SOURCES that are compiled by themselves. With PENSTOCK_UNITY, several of the others are compiled as one,
#                   in half the time: they must not define the same names in their unnamed namespaces
#   CUDA_SOURCES    are compiled if the build has CUDA
#   NO_CUDA_SOURCES replace them if it has not
function(penstock_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;ALONE;CUDA_SOURCES;NO_CUDA_SOURCES;DEPENDS" ${ARGN})
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
    set_target_properties(penstock_${name} PROPERTIES UNITY_BUILD ${PENSTOCK_UNITY} UNITY_BUILD_BATCH_SIZE 8)
    set_source_files_properties(${ARG_ALONE} ${ARG_CUDA_SOURCES} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
    if(PENSTOCK_UNITY)  # GCC then sees types of unnamed namespaces in an included file
      target_compile_options(penstock_${name} PRIVATE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-subobject-linkage>)
    endif()
  else()
    add_library(penstock_${name} INTERFACE)
    target_include_directories(penstock_${name} INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src>)
    target_link_libraries(penstock_${name} INTERFACE ${ARG_DEPENDS})
  endif()
  set_target_properties(penstock_${name} PROPERTIES EXPORT_NAME ${name})
  add_library(penstock::${name} ALIAS penstock_${name})
endfunction()

# penstock_test(<name> SOURCES ... [DEPENDS ...] [LABEL unit|oracle|golden|interop|property|fuzz])
# Properties (RapidCheck) get the same random cases in every run of ctest; outside ctest, RC_PARAMS is the caller's.
# With sanitizers there are fewer cases (base/testing/rounds.h does the same for other tests).
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
  penstock_compile_test(${name})
  if(ARG_LABEL STREQUAL unit AND CMAKE_CURRENT_SOURCE_DIR MATCHES "^${PROJECT_SOURCE_DIR}/src/")
    set_property(GLOBAL APPEND PROPERTY PENSTOCK_UNIT_TESTS ${name})
  endif()
  set(properties "RC_PARAMS=seed=20261")
  if(PENSTOCK_SANITIZE)
    target_compile_definitions(${name} PRIVATE PENSTOCK_SANITIZED)
    string(APPEND properties " max_success=10")
  endif()
  gtest_discover_tests(${name} PROPERTIES LABELS ${ARG_LABEL} ENVIRONMENT "${properties}" TIMEOUT 600
                       DISCOVERY_TIMEOUT 60)
endfunction()

# With PENSTOCK_UNITY, what many tests include is precompiled once, by the target `common_headers`.
function(penstock_compile_test name)
  penstock_compile_quickly(${name})
  if(PENSTOCK_FUZZ)  # the coverage of tests is not used
    target_compile_options(${name} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-fno-sanitize=fuzzer-no-link>)
  endif()
  if(NOT PENSTOCK_UNITY)
    return()
  endif()
  # So that ccache can use them: GCC says which header it has read, Clang does not keep when it was written. GCC warns of
  # strings' own code once it does not see that it is the system's.
  target_compile_options(${name} PRIVATE
    "$<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fpch-preprocess;-Wno-array-bounds;-Wno-stringop-overflow;-Wno-stringop-overread>"
    "$<$<COMPILE_LANG_AND_ID:CXX,Clang>:SHELL:-Xclang -fno-pch-timestamp>")
  target_link_libraries(${name} PRIVATE fmt::fmt)
  if(NOT name STREQUAL common_headers)
    target_precompile_headers(${name} REUSE_FROM common_headers)
  endif()
endfunction()

# For tests, and for code that runs once per command: compile time matters more than speed.
function(penstock_compile_quickly name)
  if(PENSTOCK_SANITIZE)
    target_compile_options(${name} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-O0>)
  else()
    target_compile_options(${name} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-O1>)
  endif()
endfunction()

# penstock_gpu_test(<name> SOURCES ... [DEPENDS ...])
# A test that needs a GPU. `make gpu-test` builds and runs it, and `make dist` bundles it. ctest does not run it,
# because build machines have no GPU.
function(penstock_gpu_test name)
  if(NOT PENSTOCK_TESTS OR NOT PENSTOCK_CUDA)
    return()
  endif()
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS" ${ARGN})
  add_executable(${name} EXCLUDE_FROM_ALL ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_DEPENDS} penstock_flags GTest::gmock GTest::gtest_main ${RAPIDCHECK_LIBRARY})
  target_compile_definitions(${name} PRIVATE PENSTOCK_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  penstock_compile_test(${name})
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
#   One LLVMFuzzerTestOneInput. With PENSTOCK_FUZZ, it is a libFuzzer program; without, a test that replays the corpus.
#   Both fail on an input that takes 10 s or allocates more than 256 MiB at once (tests/fuzz/cost_limits.h).
#   As a test, the fuzzer always starts with the saved corpus and the same seed, saves only an input that fails, and ends
#   after its number of runs or its time.
function(penstock_fuzz name)
  if(NOT PENSTOCK_TESTS)
    return()
  endif()
  cmake_parse_arguments(ARG "" "CORPUS" "SOURCES;DEPENDS" ${ARGN})
  penstock_fuzz_program(${name} SOURCES ${ARG_SOURCES} DEPENDS ${ARG_DEPENDS})
  if(PENSTOCK_FUZZ)
    file(GLOB corpus CONFIGURE_DEPENDS ${ARG_CORPUS}/*)
    list(JOIN corpus "," corpus)
    set(list ${CMAKE_CURRENT_BINARY_DIR}/${name}.corpus)
    file(WRITE ${list} "${corpus}")
    add_test(NAME ${name} COMMAND ${name} -seed=20261 -seed_inputs=@${list} -runs=20000 -max_total_time=20 -timeout=10
                                          -malloc_limit_mb=256 -rss_limit_mb=0
                                          -artifact_prefix=${CMAKE_CURRENT_BINARY_DIR}/${name}.)
    # Limits memory that is mapped without malloc.
    set_tests_properties(${name} PROPERTIES ENVIRONMENT "ASAN_OPTIONS=hard_rss_limit_mb=2048")
  else()
    add_test(NAME ${name} COMMAND ${name} ${ARG_CORPUS})
  endif()
  set_tests_properties(${name} PROPERTIES LABELS fuzz TIMEOUT 120)
  set_property(GLOBAL APPEND PROPERTY PENSTOCK_FUZZERS ${name})
endfunction()

# Builds only the program. Allocations are counted in a way that depends on the allocator.
function(penstock_fuzz_program name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS" ${ARGN})
  set(folder ${PROJECT_SOURCE_DIR}/tests/fuzz)
  set(counter count_by_libc.cc)
  if(PENSTOCK_SANITIZE)
    set(counter count_by_sanitizer.cc)
  endif()
  add_executable(${name} ${ARG_SOURCES} ${folder}/cost_limits.cc ${folder}/${counter})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  target_link_libraries(${name} PRIVATE ${ARG_DEPENDS} penstock_flags)
  if(PENSTOCK_FUZZ)
    target_sources(${name} PRIVATE ${folder}/fuzzer_limits.cc)
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  else()
    target_sources(${name} PRIVATE ${folder}/replay_main.cc)
  endif()
endfunction()

if(PENSTOCK_TESTS AND PENSTOCK_UNITY)
  add_executable(common_headers EXCLUDE_FROM_ALL tests/common_headers.cc)
  target_link_libraries(common_headers PRIVATE penstock_flags GTest::gmock nlohmann_json::nlohmann_json tl::expected)
  target_precompile_headers(common_headers PRIVATE tests/common_headers.h)
  penstock_compile_test(common_headers)
endif()
