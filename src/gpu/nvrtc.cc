// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "gpu/nvrtc.h"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <system_error>

#include "base/trusted_folder.h"

namespace penstock::gpu {
namespace {

constexpr const char* kName = "libnvrtc.so.13";

/// The folders in which to look beside the usual places: lib beside the program's folder, as in a bundle; the toolkit's
/// wheel in a folder above the program, as in a source tree; and the toolkit's default folder.
std::vector<std::filesystem::path> folders() {
  namespace fs = std::filesystem;
  std::vector<fs::path> all;
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  if (!error) {
    all.push_back(program.parent_path().parent_path() / "lib");
    for (fs::path above = program.parent_path(); above != above.root_path(); above = above.parent_path()) {
      if (!is_trusted_folder(above / ".venv/lib")) continue;
      for (fs::directory_iterator python(above / ".venv/lib", error), end; !error && python != end;
           python.increment(error)) {
        all.push_back(python->path() / "site-packages/nvidia/cu13/lib");
      }
    }
  }
  all.emplace_back("/usr/local/cuda/lib64");
  return all;
}

/// What dlopen is asked for, in order. A plain name stands for LD_LIBRARY_PATH and the system's libraries.
std::vector<std::string> candidates() {
  std::vector<std::string> all{kName};
  for (const auto& folder : folders()) {
    std::error_code error;
    if (std::filesystem::exists(folder / kName, error)) all.push_back(folder / kName);
  }
  return all;
}

/// The first error of a compiler's log, which has several lines for each; the whole log if there is none.
std::string first_error(const std::string& log) {
  const std::size_t error = log.find("error");
  const std::size_t start = error == std::string::npos ? 0 : log.rfind('\n', error) + 1;
  std::size_t end = log.find('\n', start);
  // The next line is the line of the source.
  if (end != std::string::npos) end = log.find('\n', end + 1);
  std::string lines = log.substr(start, end == std::string::npos ? end : end - start);
  std::ranges::replace(lines, '\n', ' ');
  return lines;
}

/// The function signatures are those of nvrtc.h, which is not in all packages. NVIDIA keeps them stable (0 is success).
class Nvrtc {
 public:
  Nvrtc() {
    for (const std::string& candidate : candidates()) {
      library_ = dlopen(candidate.c_str(), RTLD_NOW | RTLD_LOCAL);
      if (library_ != nullptr) break;
    }
    if (library_ == nullptr) {
      status_.reason =
          "NVIDIA's runtime compiler is not installed: no libnvrtc.so.13 in lib beside the program, in "
          "LD_LIBRARY_PATH, in "
          "the system's libraries or in /usr/local/cuda";
      return;
    }
    link_map* loaded = nullptr;
    if (dlinfo(library_, RTLD_DI_LINKMAP, &loaded) == 0 && loaded != nullptr) status_.path = loaded->l_name;
    find(version_, "nvrtcVersion");
    find(create_, "nvrtcCreateProgram");
    find(compile_, "nvrtcCompileProgram");
    find(code_size_, "nvrtcGetCUBINSize");
    find(code_, "nvrtcGetCUBIN");
    find(log_size_, "nvrtcGetProgramLogSize");
    find(log_, "nvrtcGetProgramLog");
    find(destroy_, "nvrtcDestroyProgram");
    find(describe_, "nvrtcGetErrorString");
    int major = 0;
    int minor = 0;
    if (incomplete_ || version_(&major, &minor) != 0) {
      status_.reason = status_.path + " is not a usable NVRTC library";
      return;
    }
    status_.version = std::to_string(major) + "." + std::to_string(minor);
    // NVRTC opens this by its name alone, which then finds the file that is open already.
    const auto builtins =
        std::filesystem::path(status_.path).parent_path() / ("libnvrtc-builtins.so." + status_.version);
    static_cast<void>(dlopen(builtins.c_str(), RTLD_NOW | RTLD_LOCAL));
    status_.available = true;
  }

  [[nodiscard]] const NvrtcStatus& status() const noexcept { return status_; }

  [[nodiscard]] Result<std::vector<char>> compile(const std::string& source, const std::string& name,
                                                  const std::vector<std::string>& options) const {
    void* raw = nullptr;
    if (const int error = create_(&raw, source.c_str(), name.c_str(), 0, nullptr, nullptr); error != 0) {
      return failed(name, describe_(error));
    }
    const std::unique_ptr<void, Destroy> program(raw, Destroy{destroy_});
    std::vector<const char*> arguments;
    arguments.reserve(options.size());
    for (const std::string& option : options) arguments.push_back(option.c_str());
    if (const int error = compile_(raw, static_cast<int>(arguments.size()), arguments.data()); error != 0) {
      std::size_t size = 0;
      std::string log;
      if (log_size_(raw, &size) == 0 && size > 1) {
        log.resize(size);
        static_cast<void>(log_(raw, log.data()));
        log.resize(size - 1);
      }
      return failed(name, std::string(describe_(error)) + (log.empty() ? "" : ": " + first_error(log)));
    }
    std::size_t size = 0;
    if (const int error = code_size_(raw, &size); error != 0) return failed(name, describe_(error));
    std::vector<char> code(size);
    if (const int error = code_(raw, code.data()); error != 0) return failed(name, describe_(error));
    return code;
  }

 private:
  struct Destroy {
    int (*function)(void**);
    void operator()(void* program) const noexcept { function(&program); }
  };

  template <typename Function>
  void find(Function*& function, const char* name) {
    function = reinterpret_cast<Function*>(dlsym(library_, name));
    incomplete_ = incomplete_ || function == nullptr;
  }

  static tl::unexpected<Errors> failed(const std::string& name, const std::string& reason) {
    return failure(Error{{name, 0, 0}, "NVRTC cannot compile this: " + reason, {}, {}});
  }

  void* library_ = nullptr;  // never closed: NVRTC has threads of its own
  NvrtcStatus status_;
  bool incomplete_ = false;
  int (*version_)(int*, int*) = nullptr;
  int (*create_)(void**, const char*, const char*, int, const char* const*, const char* const*) = nullptr;
  int (*compile_)(void*, int, const char* const*) = nullptr;
  int (*code_size_)(void*, std::size_t*) = nullptr;
  int (*code_)(void*, char*) = nullptr;
  int (*log_size_)(void*, std::size_t*) = nullptr;
  int (*log_)(void*, char*) = nullptr;
  int (*destroy_)(void**) = nullptr;
  const char* (*describe_)(int) = nullptr;
};

const Nvrtc& nvrtc() {
  static Nvrtc loaded;
  return loaded;
}

}  // namespace

NvrtcStatus nvrtc_status() { return nvrtc().status(); }

Result<std::vector<char>> compile_cuda(const std::string& source, const std::string& name, int compute_major,
                                       int compute_minor, const std::vector<std::string>& more_options) {
  const NvrtcStatus& status = nvrtc().status();
  if (!status.available) return failure(Error{{name, 0, 0}, status.reason, {}, {}});
  std::vector<std::string> options{
      "--gpu-architecture=sm_" + std::to_string(compute_major) + std::to_string(compute_minor), "--std=c++20",
      "--minimal"};
  options.insert(options.end(), more_options.begin(), more_options.end());
  return nvrtc().compile(source, name, options);
}

}  // namespace penstock::gpu
