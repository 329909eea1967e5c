// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include <cmath>
#include <iterator>

#include "base/error.h"
#include "experiments/plot/chart.h"

namespace penstock::experiments {
namespace {

constexpr const char* kInk = "#000000";
constexpr const char* kReferenceInk = "#555555";
constexpr const char* kBarColour = "#0072b2";

/// Rounded to a tenth of a pixel: higher precision would enlarge the file without a visible difference.
std::string coordinate(double value) {
  const double tenths = std::round(value * 10) / 10;
  return fmt::format("{:g}", tenths == 0 ? 0 : tenths);
}

std::string pixel(const Pixel& at) { return coordinate(at.x) + ' ' + coordinate(at.y); }

std::string escaped(std::string_view text) {
  std::string escaped;
  for (const char c : printable(text)) {
    switch (c) {
      case '&': escaped += "&amp;"; break;
      case '<': escaped += "&lt;"; break;
      case '>': escaped += "&gt;"; break;
      case '"': escaped += "&quot;"; break;
      default: escaped += c;
    }
  }
  return escaped;
}

std::string polyline(const Polyline& line) {
  std::string path;
  for (const Pixel& at : line) path += (path.empty() ? 'M' : 'L') + pixel(at);
  return path;
}

/// A closed path through corners relative to `middle`, in units of the radius.
std::string polygon(const Pixel& middle, std::initializer_list<Pixel> corners) {
  Polyline line;
  for (const Pixel& c : corners) line.push_back({middle.x + c.x * kMarkRadius, middle.y + c.y * kMarkRadius});
  return polyline(line) + 'Z';
}

std::string strokes(const Pixel& middle, std::initializer_list<std::pair<Pixel, Pixel>> ends) {
  std::string path;
  for (const auto& [from, to] : ends) {
    path += polyline({{middle.x + from.x * kReferenceRadius, middle.y + from.y * kReferenceRadius},
                      {middle.x + to.x * kReferenceRadius, middle.y + to.y * kReferenceRadius}});
  }
  return path;
}

/// No marker extends beyond its radius. Plus, cross and star are for references.
std::string marker_path(Marker marker, const Pixel& at) {
  switch (marker) {
    case Marker::circle: return fmt::format("M{}a4 4 0 1 0 8 0a4 4 0 1 0-8 0Z", pixel({at.x - 4, at.y}));
    case Marker::square: return polygon(at, {{-.75, -.75}, {.75, -.75}, {.75, .75}, {-.75, .75}});
    case Marker::triangle: return polygon(at, {{0, -1}, {.9, .7}, {-.9, .7}});
    case Marker::diamond: return polygon(at, {{0, -1}, {.8, 0}, {0, 1}, {-.8, 0}});
    case Marker::down: return polygon(at, {{0, 1}, {.9, -.7}, {-.9, -.7}});
    case Marker::pentagon: return polygon(at, {{0, -1}, {.95, -.3}, {.6, .8}, {-.6, .8}, {-.95, -.3}});
    case Marker::left: return polygon(at, {{-1, 0}, {.7, -.9}, {.7, .9}});
    case Marker::plus: return strokes(at, {{{-1, 0}, {1, 0}}, {{0, -1}, {0, 1}}});
    case Marker::cross: return strokes(at, {{{-.8, -.8}, {.8, .8}}, {{-.8, .8}, {.8, -.8}}});
    case Marker::star: return strokes(at, {{{-1, 0}, {1, 0}}, {{-.5, -.87}, {.5, .87}}, {{-.5, .87}, {.5, -.87}}});
  }
  return "";
}

std::string dash_attribute(std::string_view dash) {
  return dash.empty() ? "" : fmt::format(" stroke-dasharray=\"{}\"", dash);
}

std::string path_element(std::string_view path, std::string_view attributes = "") {
  return path.empty() ? "" : fmt::format("<path d=\"{}\"{}/>\n", path, attributes);
}

std::string curve_element(const CurveStyle& style, const std::vector<Polyline>& lines, const std::vector<Mark>& marks) {
  constexpr double kCap = 3;
  std::string path;
  for (const Polyline& line : lines) path += polyline(line);
  std::string spreads;
  std::string markers;
  for (const Mark& mark : marks) {
    markers += marker_path(style.marker, mark.at);
    if (mark.bottom - mark.top < 1) continue;
    spreads += polyline({{mark.at.x, mark.top}, {mark.at.x, mark.bottom}});
    for (const double y : {mark.top, mark.bottom}) spreads += polyline({{mark.at.x - kCap, y}, {mark.at.x + kCap, y}});
  }
  return fmt::format("<g stroke=\"{}\" fill=\"none\" stroke-width=\"1.6\">\n", style.colour) +
         path_element(path, dash_attribute(style.dash)) + path_element(spreads, " stroke-width=\"1\"") +
         path_element(markers, fmt::format(" fill=\"{}\"", style.filled ? style.colour : "none")) + "</g>\n";
}

std::string references_element(std::size_t style, const std::vector<Pixel>& marks) {
  std::string path;
  for (const Pixel& at : marks) path += marker_path(reference_marker(style), at);
  // With a white outline, since they may overlap a curve's mark.
  return path_element(path, " fill=\"none\" stroke=\"#fff\" stroke-width=\"4.5\"") +
         path_element(path, fmt::format(" fill=\"none\" stroke=\"{}\" stroke-width=\"1.6\"", kInk));
}

std::string box_path(const Box& box) {
  return fmt::format("M{}H{}V{}H{}Z", pixel({box.left, box.top}), coordinate(box.right), coordinate(box.bottom),
                     coordinate(box.left));
}

std::string bars_element(const std::vector<BarBox>& bars) {
  std::string crossing;
  std::string waiting;
  for (const BarBox& bar : bars) (bar.waits ? waiting : crossing) += box_path(bar.box);
  const std::string stroke = fmt::format(" stroke=\"{}\" stroke-width=\"0.7\"", kBarColour);
  return path_element(waiting, " fill=\"#fff\"" + stroke) +
         path_element(crossing, fmt::format(" fill=\"{}\"{}", kBarColour, stroke));
}

std::string panel_element(const Panel& panel) {
  const Box& frame = panel.frame;
  std::string grid;
  for (const double y : panel.y_ticks) grid += polyline({{frame.left, y}, {frame.right, y}});
  std::string ticks;
  for (const double x : panel.x_ticks) ticks += polyline({{x, frame.bottom}, {x, frame.bottom + 4}});
  std::string dividers;
  for (const double x : panel.dividers) dividers += polyline({{x, frame.top}, {x, frame.bottom}});
  for (const double y : panel.bands) dividers += polyline({{frame.left, y}, {frame.right, y}});
  std::string text = path_element(grid, " stroke=\"#ddd\"");
  text += path_element(dividers, " stroke=\"#999\" stroke-dasharray=\"1 3\"");
  text += path_element(ticks, fmt::format(" stroke=\"{}\"", kInk));
  text += path_element(box_path(frame), fmt::format(" fill=\"none\" stroke=\"{}\"", kInk));
  text += bars_element(panel.bars);
  for (const Guide& guide : panel.guides) {
    const GuideStyle style = guide_style(guide.style);
    std::string path;
    for (const Polyline& line : guide.lines) path += polyline(line);
    text +=
        path_element(path, fmt::format(" fill=\"none\" stroke=\"{}\" stroke-width=\"{}\"{}",
                                       guide.is_limit ? kInk : kReferenceInk, style.width, dash_attribute(style.dash)));
  }
  for (const DrawnCurve& curve : panel.curves)
    text += curve_element(curve_style(curve.style), curve.lines, curve.marks);
  for (const References& references : panel.references) text += references_element(references.style, references.marks);
  return text;
}

std::string sample_element(const LegendSample& sample) {
  const Pixel middle{sample.at.x + kSampleWidth / 2, sample.at.y};
  const Box box{sample.at.x + 8, sample.at.y - 5, sample.at.x + kSampleWidth - 8, sample.at.y + 5};
  switch (sample.of) {
    case LegendSample::Of::curve:
      return curve_element(curve_style(sample.style), {{sample.at, {sample.at.x + kSampleWidth, sample.at.y}}},
                           {{middle, middle.y, middle.y}});
    case LegendSample::Of::references: return references_element(sample.style, {middle});
    case LegendSample::Of::bar: return bars_element({{box, false}});
    case LegendSample::Of::waiting_bar: return bars_element({{box, true}});
  }
  return "";
}

std::string text_element(const Text& text) {
  constexpr const char* kAnchors[] = {"", " text-anchor=\"middle\"", " text-anchor=\"end\""};
  const std::string size = text.size == 12 ? "" : fmt::format(" font-size=\"{:g}\"", text.size);
  const std::string turned = text.upwards ? fmt::format(" transform=\"rotate(-90 {})\"", pixel(text.at)) : "";
  return fmt::format("<text x=\"{}\" y=\"{}\"{}{}{}{}>{}</text>\n", coordinate(text.at.x), coordinate(text.at.y),
                     kAnchors[static_cast<std::size_t>(text.anchor)], size, text.bold ? " font-weight=\"bold\"" : "",
                     turned, escaped(text.text));
}

/// The line, with an arrowhead of two strokes at its end.
std::string arrow_path(const Polyline& arrow) {
  const Pixel& head = arrow.back();
  const double back = arrow.front().y > head.y ? 5 : -5;
  return polyline(arrow) + polyline({{head.x - 3, head.y + back}, head, {head.x + 3, head.y + back}});
}

}  // namespace

std::string to_svg(const Chart& chart) {
  const std::string size = fmt::format("{} {}", coordinate(chart.width), coordinate(chart.height));
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\" height=\"{}\" viewBox=\"0 0 {}\" "
      "font-family=\"Helvetica,Arial,'DejaVu Sans',sans-serif\" font-size=\"12\">\n<title>{}</title>\n<rect "
      "width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n",
      coordinate(chart.width), coordinate(chart.height), size, escaped(chart.title));
  for (const Panel& panel : chart.panels) svg += panel_element(panel);
  for (const LegendSample& sample : chart.legend) svg += sample_element(sample);
  std::string lines;
  for (const Polyline& leader : chart.leaders) lines += polyline(leader);
  svg += path_element(lines, " fill=\"none\" stroke=\"#999\" stroke-width=\"0.7\"");
  std::string arrows;
  for (const Polyline& arrow : chart.arrows) arrows += arrow_path(arrow);
  svg += path_element(arrows, fmt::format(" fill=\"none\" stroke=\"{}\" stroke-width=\"1.2\"", kInk));
  for (const Text& text : chart.texts) svg += text_element(text);
  return svg + "</svg>\n";
}

}  // namespace penstock::experiments
