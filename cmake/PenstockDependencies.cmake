# The libraries that Penstock stands on. `make setup` installs them.

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
  # A peer of our benchmarks and tests; each that has one leaves it out where it is absent.
  pkg_check_modules(DPDK IMPORTED_TARGET libdpdk)
endif()
