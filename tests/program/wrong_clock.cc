// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Preloaded library: the time of day stands still, on a day long ago. Other clocks are not affected.

#include <dlfcn.h>
#include <sys/time.h>
#include <time.h>  // NOLINT(modernize-deprecated-headers): clock_gettime

extern "C" {

int clock_gettime(clockid_t clock, struct timespec* time) noexcept {
  using Original = int (*)(clockid_t, struct timespec*);
  static const auto original = reinterpret_cast<Original>(::dlsym(RTLD_NEXT, "clock_gettime"));
  if (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE) return original(clock, time);
  *time = {86'400, 0};
  return 0;
}

time_t time(time_t* into) noexcept {
  if (into != nullptr) *into = 86'400;
  return 86'400;
}

int gettimeofday(struct timeval* time, void* /*zone*/) noexcept {
  *time = {86'400, 0};
  return 0;
}
}
