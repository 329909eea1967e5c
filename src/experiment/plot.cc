// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "base/text_file.h"
#include "experiment/bars.h"
#include "experiment/curves.h"
#include "experiment/figure.h"

extern "C" char** environ;

namespace penstock::experiment {
namespace {

/// A text of gnuplot's that means itself, whatever it holds. In single quotes it would have to double them, which its
/// scanner mistakes at the beginning; in double quotes these characters end the text, escape, or run a command.
std::string quoted(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : printable(text)) {
    if (std::string_view("\"\\`@").find(c) != std::string_view::npos) {
      quoted += fmt::format("\\{:03o}", c);
    } else {
      quoted += c;
    }
  }
  return quoted + '"';
}

bool has_log_x(const Figure& figure, const Curves& curves) { return figure.x.logarithmic && !curves.x_is_text; }

/// What no logarithm exists of is left out.
bool can_show(const Figure& figure, const Curves& curves, double x, double y) {
  return !(has_log_x(figure, curves) && x <= 0) && !(figure.y.logarithmic && y <= 0);
}

double x_of(const Curves& curves, std::size_t index) {
  return curves.x_is_text ? static_cast<double>(index) : std::get<double>(curves.xs[index]);
}

/// `name` and the lines "x y min max".
std::string data_block(const std::string& name, const Figure& figure, const Curves& curves, const Curve& curve) {
  std::string text = name + " << END\n";
  for (const CurvePoint& point : curve.points) {
    const double x = x_of(curves, point.x);
    if (!can_show(figure, curves, x, point.y)) continue;
    const double min = figure.y.logarithmic && point.min <= 0 ? point.y : point.min;
    text += fmt::format("{} {} {} {}\n", x, point.y, min, point.max);
  }
  return text + "END\n";
}

/// Texts, and the numbers of a logarithmic axis, as they are; else gnuplot's own.
std::string x_ticks(const Figure& figure, const Curves& curves) {
  std::string ticks;
  for (std::size_t i = 0; i < curves.xs.size(); ++i) {
    if (!curves.x_is_text && !(figure.x.logarithmic && can_show(figure, curves, x_of(curves, i), 1))) continue;
    ticks += fmt::format("{}{} {}", ticks.empty() ? "" : ", ", quoted(to_text(curves.xs[i])), x_of(curves, i));
  }
  return ticks.empty() ? "" : fmt::format("set xtics rotate by -45 ({})\n", ticks);
}

constexpr const char* kColours[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00",
                                    "#56b4e9", "#7a5195", "#8c564b", "#1b7837", "#444444"};

std::string drawing(const Figure& figure, const Curves& curves) {
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < curves.series.size(); ++i) {
    parts.push_back(fmt::format("$series{} using 1:2:3:4 with yerrorlines lc rgb '{}' pt {} ps 0.6 lw 1.5 title {}", i,
                                kColours[i % std::size(kColours)], 4 + i % 10, quoted(curves.series[i].label())));
  }
  for (std::size_t i = 0; i < curves.limits.size(); ++i) {
    parts.push_back(fmt::format("$limit{} using 1:2 with lines lc rgb '#000000' dt 2 lw 1.5 title {}", i,
                                quoted(curves.limits[i].label())));
  }
  std::size_t lines = 0;
  for (const Reference& reference : figure.references) {
    if (figure.y.logarithmic && reference.y <= 0) continue;
    const std::string title = quoted(reference.label);
    if (!reference.x) {
      parts.push_back(
          fmt::format("{} with lines lc rgb '#999999' dt {} title {}", reference.y, 3 + lines++ % 3, title));
    } else if (!curves.x_is_text && can_show(figure, curves, *reference.x, reference.y)) {
      parts.push_back(
          fmt::format("$points using ($1 == {0} && $2 == {1} ? $1 : 1/0):2 with points lc rgb '#999999' pt "
                      "3 ps 1.2 title {2}",
                      *reference.x, reference.y, title));
    }
  }
  return parts.empty() ? "" : fmt::format("plot {}\n", fmt::join(parts, ", \\\n     "));
}

std::string box(double from, double to, double bottom) {
  return fmt::format("{:.1f} {:.1f} {:.1f} {:.1f}\n", from, to, bottom + 0.1, bottom + 0.9);
}

/// A band for each row of each point's bars, from the top, as high as bars overlap there; what waits in grey.
std::string bar_drawing(const Figure& figure, const Record& record) {
  struct Band {
    std::string boxes, label;
    double bottom = 0, height = 1;
  };
  std::vector<Band> bands;
  std::string waits;
  double bottom = 0;
  for (const Point& point : record.points) {
    if (!satisfies(point, figure.where)) continue;
    const auto rows = parse_bars(point.text(figure.bars->key));
    if (!rows) continue;
    for (const BarRow& row : *rows) {
      Band& band = bands.emplace_back();
      const std::vector<std::size_t> lanes = lanes_of_bars(row.bars);
      if (!lanes.empty()) band.height = static_cast<double>(std::ranges::max(lanes) + 1);
      bottom -= band.height;
      band.bottom = bottom;
      band.label = point.text(figure.x.key) + ": " + row.name;
      for (std::size_t i = 0; i < lanes.size(); ++i) {
        const Bar& bar = row.bars[i];
        const double at = bottom + static_cast<double>(lanes[i]);
        if (bar.waits > 0) waits += box(bar.begin, bar.begin + bar.waits, at);
        if (bar.waits < bar.length) band.boxes += box(bar.begin + bar.waits, bar.begin + bar.length, at);
      }
    }
  }
  std::string text;
  std::string ticks;
  std::vector<std::string> parts;
  const auto draw = [&](const std::string& boxes, const std::string& name, std::string_view colour,
                        const std::string& title) {
    if (boxes.empty()) return;
    text += name + " << END\n" + boxes + "END\n";
    parts.push_back(fmt::format("{} using (($1+$2)/2):(($3+$4)/2):1:2:3:4 with boxxyerror lc rgb '{}' fs solid {}",
                                name, colour, title.empty() ? "notitle" : "title " + quoted(title)));
  };
  for (std::size_t i = 0; i < bands.size(); ++i) {
    const Band& band = bands[i];
    draw(band.boxes, fmt::format("$bars{}", i), kColours[i % std::size(kColours)],
         parts.empty() ? figure.bars->legend : "");
    ticks += fmt::format("{}{} {}", ticks.empty() ? "" : ", ", quoted(band.label), band.bottom + band.height / 2);
    if (i + 1 < bands.size()) {
      text +=
          fmt::format("set arrow from graph 0, first {0} to graph 1, first {0} nohead lc rgb '#999999'\n", band.bottom);
    }
  }
  draw(waits, "$waits", "#bbbbbb", figure.bars->waits);
  if (parts.empty()) return text;
  return text +
         fmt::format("set ytics ({})\nset yrange [{}:0]\nplot {}\n", ticks, bottom, fmt::join(parts, ", \\\n     "));
}

struct CloseFile {
  void operator()(std::FILE* file) const noexcept { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, CloseFile>;

tl::unexpected<Errors> failed(const std::string& what, int error) {
  return failure({{}, what, std::strerror(error), ""});
}

std::string text_of(std::FILE* file) {
  std::string text;
  std::rewind(file);
  std::array<char, 4096> part;
  for (std::size_t n; (n = std::fread(part.data(), 1, part.size(), file)) > 0;) text.append(part.data(), n);
  return text;
}

constexpr int kNotFound = 127;

/// What gnuplot draws for the script, or nothing where it is not installed. Files stand behind its streams, so that
/// neither side waits for the other.
Result<std::string> run_gnuplot(const std::string& script, bool& found) {
  const File in(std::tmpfile());
  const File out(std::tmpfile());
  const File err(std::tmpfile());
  if (!in || !out || !err) return failed("gnuplot: cannot make a temporary file", errno);
  std::fwrite(script.data(), 1, script.size(), in.get());
  if (std::fflush(in.get()) != 0) return failed("gnuplot: cannot write a temporary file", errno);
  std::rewind(in.get());

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  const std::unique_ptr<posix_spawn_file_actions_t, int (*)(posix_spawn_file_actions_t*)> owner(
      &actions, posix_spawn_file_actions_destroy);
  posix_spawn_file_actions_adddup2(&actions, ::fileno(in.get()), STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, ::fileno(out.get()), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, ::fileno(err.get()), STDERR_FILENO);
  std::string name = "gnuplot";
  std::string default_session = "--default-settings";  // not the user's own
  char* const arguments[] = {name.data(), default_session.data(), nullptr};
  pid_t child = 0;
  const int error = ::posix_spawnp(&child, "gnuplot", &actions, nullptr, arguments, environ);
  found = error != ENOENT;
  if (!found) return std::string();
  if (error != 0) return failed("gnuplot does not start", error);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return failed("gnuplot", errno);
  }
  found = !(WIFEXITED(status) && WEXITSTATUS(status) == kNotFound);
  if (!found) return std::string();
  if (status == 0) return text_of(out.get());
  // The command that it fails at comes first, and why comes last.
  std::string said = text_of(err.get());
  said.erase(said.find_last_not_of(" \n") + 1);
  const std::size_t last = said.rfind('\n');
  return failure({{}, "gnuplot fails", in_quotes(last == said.npos ? said : said.substr(last + 1), 200), ""});
}

}  // namespace

std::string plot_script(const Figure& figure, const Record& record, std::string_view output) {
  const Curves curves = curves_of(figure, record);
  std::string text =
      fmt::format("# {}: {}\n# {}\n", printable(record.experiment), printable(figure.title), printable(record.command));
  text +=
      "set encoding utf8\nset terminal svg size 960,600 dynamic noenhanced font 'sans-serif,13' background '#ffffff'\n";
  if (!output.empty()) text += "set output " + quoted(output) + '\n';
  text += "set title " + quoted(figure.title) + " noenhanced\n";
  if (figure.bars) {
    return text + "set xlabel \"microseconds\"\nset key outside center bottom horizontal samplen 2\nset grid xtics\n" +
           bar_drawing(figure, record);
  }
  text += "set xlabel " + quoted(figure.x.label) + "\nset ylabel " + quoted(figure.y.label) + '\n';
  text += "set key outside right top\nset grid\n";
  if (has_log_x(figure, curves)) text += "set logscale x 2\n";
  text += figure.y.logarithmic ? "set logscale y 10\n" : "set yrange [0:*]\n";
  if (curves.x_is_text) text += fmt::format("set xrange [-0.5:{}]\n", static_cast<double>(curves.xs.size()) - 0.5);
  text += x_ticks(figure, curves);
  for (std::size_t i = 0; i < curves.series.size(); ++i) {
    text += data_block(fmt::format("$series{}", i), figure, curves, curves.series[i]);
  }
  for (std::size_t i = 0; i < curves.limits.size(); ++i) {
    text += data_block(fmt::format("$limit{}", i), figure, curves, curves.limits[i]);
  }
  text += "$points << END\n";
  for (const Reference& reference : figure.references) {
    if (reference.x) text += fmt::format("{} {}\n", *reference.x, reference.y);
  }
  return text + "END\n" + drawing(figure, curves);
}

Result<Plot> write_plot(const Figure& figure, const Record& record, const std::string& folder) {
  const std::string stem = fmt::format("{}-{}", record.experiment, figure.id);
  const std::string path = folder + '/' + stem;
  bool found = false;
  auto svg = run_gnuplot(plot_script(figure, record, ""), found);
  if (!svg) return tl::unexpected(std::move(svg.error()));
  Plot plot{path + (found ? ".svg" : ".gp"), !found};
  const auto written = write_text_file(plot.path, found ? *svg : plot_script(figure, record, stem + ".svg"));
  if (!written) return tl::unexpected(written.error());
  return plot;
}

}  // namespace penstock::experiment
