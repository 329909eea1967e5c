// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The program: its commands, and the one place where exceptions end.

#include <fmt/format.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <csignal>
#include <cstdio>
#include <exception>
#include <new>

#include "base/version.h"
#include "cli/chain_arguments.h"
#include "cli/check.h"
#include "cli/classify.h"
#include "cli/devices.h"
#include "cli/doctor.h"
#include "cli/plan.h"
#include "cli/route.h"
#include "cli/run.h"

namespace penstock::cli {
namespace {

std::string version_text() {
  const BuildInfo& build = build_info();
  return fmt::format("penstock {} ({}, {}, {}, {})", build.version, build.commit, build.compiler,
                     build.cuda.empty() ? std::string("without CUDA") : fmt::format("CUDA {}", build.cuda),
                     build.build_type);
}

int main_function(int argc, char** argv) {
  CLI::App app("Penstock runs chains of network functions on a GPU, and on CPUs with the same results.", "penstock");
  app.require_subcommand(1);
  app.set_version_flag("--version", version_text());
  int exit_code = kDone;
  add_run(app, exit_code);
  add_check(app, exit_code);
  add_plan(app, exit_code);
  add_route(app, exit_code);
  add_classify(app, exit_code);
  add_devices(app, exit_code);
  add_doctor(app, exit_code);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kDone : kWrongUsage;
  }
  // A full disk behind stdout must not pass for success.
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    fmt::print(stderr, "penstock: cannot write to the standard output\n");
    return kFailed;
  }
  return exit_code;
}

}  // namespace
}  // namespace penstock::cli

int main(int argc, char** argv) {
  // A reader that goes away (`| head`) is an error of the output like others, and ends no run without its report.
  std::signal(SIGPIPE, SIG_IGN);
  try {
    return penstock::cli::main_function(argc, argv);
  } catch (const std::bad_alloc&) {
    std::fputs("penstock: out of memory\n", stderr);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "penstock: %s\n", error.what());
  }
  return penstock::cli::kFailed;
}
