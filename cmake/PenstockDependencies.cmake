# The libraries that Penstock stands on. `make setup` installs them.

find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(tl-expected REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(yaml-cpp REQUIRED)
find_package(CLI11 REQUIRED)
find_package(ZLIB REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(PCAP REQUIRED IMPORTED_TARGET libpcap)
pkg_check_modules(ZSTD REQUIRED IMPORTED_TARGET libzstd)

if(PENSTOCK_TESTS)
  enable_testing()
  include(GoogleTest)
  find_package(GTest REQUIRED)
  find_library(RAPIDCHECK_LIBRARY rapidcheck REQUIRED)
endif()

if(PENSTOCK_BENCH)
  find_package(benchmark REQUIRED)
  # The peers that our benchmarks run beside; each bench that has one leaves it out where it is absent.
  pkg_check_modules(DPDK IMPORTED_TARGET libdpdk)
endif()
