# The libraries that Penstock depends on. `make setup` installs them.

include(PenstockLibraries)
find_package(spdlog REQUIRED)

if(PENSTOCK_TESTS)
  enable_testing()
  include(GoogleTest)
  find_package(GTest REQUIRED)
  find_library(RAPIDCHECK_LIBRARY rapidcheck REQUIRED)
  find_package(OpenSSL REQUIRED)
endif()

if(PENSTOCK_BENCH)
  find_package(benchmark REQUIRED)
endif()

if(PENSTOCK_TESTS OR PENSTOCK_BENCH)
  # Used for comparison by benchmarks and tests, which are left out if it is not installed.
  pkg_check_modules(DPDK IMPORTED_TARGET libdpdk)
endif()
