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

if(PENSTOCK_DPDK OR PENSTOCK_TESTS OR PENSTOCK_BENCH)
  # For the port `dpdk`, and for comparison by benchmarks and tests. All are left out if it is not installed.
  pkg_check_modules(DPDK IMPORTED_TARGET libdpdk)
endif()
