# The libraries that Penstock's own libraries are linked with: found here for the build, and by the installed package
# for programs that link with it.

find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(tl-expected REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(yaml-cpp REQUIRED)
find_package(CLI11 REQUIRED)
find_package(ZLIB REQUIRED)
find_package(Boost REQUIRED CONFIG)
find_package(PkgConfig REQUIRED)
pkg_check_modules(PCAP REQUIRED IMPORTED_TARGET libpcap)
pkg_check_modules(BPF REQUIRED IMPORTED_TARGET libbpf)
pkg_check_modules(MNL REQUIRED IMPORTED_TARGET libmnl)
pkg_check_modules(ZSTD REQUIRED IMPORTED_TARGET libzstd)
# libpcap is linked with it too (by D-Bus), so it is nothing more to install.
pkg_check_modules(SYSTEMD REQUIRED IMPORTED_TARGET libsystemd)
pkg_check_modules(HYPERSCAN REQUIRED IMPORTED_TARGET libhs)
pkg_check_modules(MICROHTTPD REQUIRED IMPORTED_TARGET libmicrohttpd)
pkg_check_modules(PCRE2 REQUIRED IMPORTED_TARGET libpcre2-8)
# Optional: machine code for packet filters.
find_package(asmjit CONFIG QUIET)
# It has no pkg-config file.
if(NOT TARGET penstock_ipsec_mb)
  find_path(IPSEC_MB_INCLUDE_DIR intel-ipsec-mb.h REQUIRED)
  find_library(IPSEC_MB_LIBRARY IPSec_MB REQUIRED)
  add_library(penstock_ipsec_mb INTERFACE IMPORTED)
  target_include_directories(penstock_ipsec_mb INTERFACE ${IPSEC_MB_INCLUDE_DIR})
  target_link_libraries(penstock_ipsec_mb INTERFACE ${IPSEC_MB_LIBRARY})
endif()
