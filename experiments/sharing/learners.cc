// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "experiments/sharing/learners.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "base/text_file.h"

namespace penstock::experiments {
namespace {

// Its progress is one write of a fixed length at offset 0, so that a reader never sees a part of it. PyTorch's errors
// have several lines, of which the first says what is wrong.
constexpr const char* kScript = R"(import os, signal, sys, time
parent = os.getppid()
gpu, path = int(sys.argv[1]), sys.argv[2]

def explain(kind, error, trace):
    print((str(error).splitlines() or [kind.__name__])[0], file=sys.stderr)

sys.excepthook = explain
try:
    import torch
except ModuleNotFoundError as error:
    sys.exit("PyTorch is not installed" if error.name == "torch" else str(error))
torch.cuda.init()
from torch import nn

class Block(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU(inplace=True),
            nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False), nn.BatchNorm2d(outputs))
        same = stride == 1 and inputs == outputs
        self.short = nn.Identity() if same else nn.Sequential(
            nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x):
        return torch.relu(self.body(x) + self.short(x))

def resnet():
    layers, inputs = [nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True)], 64
    for outputs, stride in ((64, 1), (64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), (512, 1)):
        layers.append(Block(inputs, outputs, stride))
        inputs = outputs
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10))

torch.manual_seed(1)
torch.cuda.set_device(gpu)
model = resnet().cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
images = torch.randn(128, 3, 32, 32, device="cuda")
labels = torch.randint(0, 10, (128,), device="cuda")
file = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
steps, ends = 0, []
signal.signal(signal.SIGTERM, lambda *of: ends.append(of))
while not ends and os.getppid() == parent:
    optimizer.zero_grad(set_to_none=True)
    nn.functional.cross_entropy(model(images), labels).backward()
    optimizer.step()
    torch.cuda.synchronize()
    steps += 1
    os.pwrite(file, b"%20.6f %12d\n" % (time.monotonic(), steps), 0)
)";

}  // namespace

Learners::Progress parse_progress(const std::string& text) {
  Learners::Progress progress;
  if (std::sscanf(text.c_str(), "%lf %lf", &progress.time_s, &progress.steps) != 2) return {};
  return progress;
}

double steps_per_second(const std::vector<Learners::Progress>& begin, const std::vector<Learners::Progress>& end) {
  double all = 0;
  for (std::size_t i = 0; i < std::min(begin.size(), end.size()); ++i) {
    const double time = end[i].time_s - begin[i].time_s;
    if (time > 0) all += (end[i].steps - begin[i].steps) / time;
  }
  return all;
}

Result<std::unique_ptr<Learners>> Learners::start(unsigned count, const Words& before, int gpu, const Workplace& folder,
                                                  const std::atomic<bool>& stop) {
  constexpr std::chrono::seconds kPatience{120};  // of all together, for PyTorch's libraries from a slow disk
  constexpr double kFirstSteps = 5;               // in which PyTorch chooses algorithms
  const std::string script = folder.put("learner.py", kScript);
  if (!is_installed("python3")) return failure({{}, "python3 is not installed", "", ""});
  std::unique_ptr<Learners> learners(new Learners(before, folder.path("")));
  for (unsigned i = 0; i < count; ++i) {
    learners->files_.push_back(folder.put(fmt::format("learner{}", i), ""));
    learners->outputs_.push_back(folder.path(fmt::format("learner{}.txt", i)));
    auto program = Program::start(joined(before, {"python3", script, std::to_string(gpu), learners->files_.back()}),
                                  learners->outputs_.back());
    if (!program) return tl::unexpected(std::move(program.error()));
    learners->programs_.push_back(std::move(*program));
  }
  const auto latest = std::chrono::steady_clock::now() + kPatience;
  for (unsigned i = 0; i < count; ++i) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(latest - std::chrono::steady_clock::now());
    const auto ready = wait_until_ready(
        learners->programs_[i],
        {"a training process", learners->outputs_[i], learners->folder_, std::max(left, {}), &stop}, [&] {
          const auto text = read_input(learners->files_[i]);
          return text && parse_progress(*text).steps >= kFirstSteps;
        });
    if (!ready) return tl::unexpected(ready.error());
  }
  return learners;
}

bool Learners::are(unsigned count, const Words& before) {
  return programs_.size() == count && before_ == before && progress().has_value();
}

Result<std::vector<Learners::Progress>> Learners::progress() {
  std::vector<Progress> all;
  for (std::size_t i = 0; i < programs_.size(); ++i) {
    const auto text = read_input(files_[i]);
    if (!text || programs_[i].ended_within({})) {
      const std::string why = last_line(outputs_[i], folder_);
      return failure({{}, "a training process has ended", why.empty() ? "no message" : why, ""});
    }
    all.push_back(parse_progress(*text));
  }
  return all;
}

}  // namespace penstock::experiments
