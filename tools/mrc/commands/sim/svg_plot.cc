#include "commands/sim/svg_plot.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace mrc::tool::simulator {
namespace {

constexpr double kWidth = 720;
constexpr double kHeight = 300;
constexpr double kLeft = 70;
constexpr double kRight = 16;
constexpr double kTop = 16;
constexpr double kBottom = 44;
constexpr double kHeatLeft = 130;
constexpr double kRowHeight = 11;

// Where a rectangle of data lies on the page.
struct Frame {
  double left = kLeft;
  double height = kHeight;
  double x_end = 1;
  double y_end = 1;

  double x(double value) const { return left + value / x_end * (kWidth - left - kRight); }
  double y(double value) const {
    return height - kBottom - value / y_end * (height - kTop - kBottom);
  }
};

// A round number of steps of a round size: 1, 2 or 5 times a power of ten.
double step_for(double end) {
  const double rough = end / 6;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (factor * power >= rough) return factor * power;
  return 10 * power;
}

double positive(double value) { return value > 0 ? value : 1; }

std::string text(double x, double y, std::string_view anchor, std::string_view content) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", x, y, anchor,
                     escaped(content));
}

std::string x_axis(const Frame& frame, const std::string& label) {
  std::string out;
  const double step = step_for(frame.x_end);
  const double bottom = frame.height - kBottom;
  for (double value = 0; value <= frame.x_end * 1.0001; value += step)
    out += text(frame.x(value), bottom + 16, "middle", fmt::format("{:.6g}", value));
  return out + text((frame.left + kWidth - kRight) / 2, frame.height - 8, "middle", label);
}

std::string y_axis(const Frame& frame, const std::string& label) {
  std::string out;
  const double step = step_for(frame.y_end);
  for (double value = 0; value <= frame.y_end * 1.0001; value += step) {
    const double y = frame.y(value);
    out += fmt::format(
        "<line class=\"grid\" x1=\"{:.1f}\" x2=\"{:.1f}\" y1=\"{:.1f}\" y2=\"{:.1f}\"/>\n",
        frame.left, kWidth - kRight, y, y);
    out += text(frame.left - 6, y + 4, "end", fmt::format("{:.6g}", value));
  }
  return out + fmt::format(
                   "<text transform=\"translate(14 {:.1f}) rotate(-90)\" "
                   "text-anchor=\"middle\">{}</text>\n",
                   (kTop + frame.height - kBottom) / 2, escaped(label));
}

std::string draw_marks(const Frame& frame, const std::vector<PlotMark>& marks) {
  std::string out;
  for (const PlotMark& mark : marks) {
    if (mark.x > frame.x_end) continue;
    const double x = frame.x(mark.x);
    out += fmt::format(
        "<line class=\"mark\" x1=\"{:.1f}\" x2=\"{:.1f}\" y1=\"{:.1f}\" y2=\"{:.1f}\">"
        "<title>{}</title></line>\n",
        x, x, kTop, frame.height - kBottom, escaped(mark.label));
  }
  return out;
}

std::string begin_svg(double height) {
  return fmt::format("<svg viewBox=\"0 0 {:.0f} {:.0f}\" role=\"img\">\n", kWidth, height);
}

std::string draw_line(const Frame& frame, const PlotLine& line) {
  std::string out = fmt::format("<polyline stroke=\"{}\" points=\"", line.colour);
  for (const PlotPoint& point : line.points)
    out += fmt::format("{:.1f},{:.1f} ", frame.x(point.x), frame.y(point.y));
  return out + fmt::format("\"><title>{}</title></polyline>\n", escaped(line.label));
}

std::string legend(const std::vector<PlotLine>& lines) {
  if (lines.size() < 2) return "";
  std::string out = "<p class=\"legend\">";
  for (const PlotLine& line : lines) {
    out += fmt::format("<span><i style=\"background:{}\"></i>{}</span> ", line.colour,
                       escaped(line.label));
  }
  return out + "</p>\n";
}

// From pale to dark red.
std::string heat_colour(double share) {
  const auto channel = [&](double low, double high) {
    return static_cast<int>(std::lround(low + (high - low) * share));
  };
  return fmt::format("#{:02x}{:02x}{:02x}", channel(254, 127), channel(224, 0), channel(180, 20));
}

}  // namespace

std::string escaped(std::string_view content) {
  std::string out;
  for (const char c : content) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string palette(std::size_t index) {
  constexpr std::array<const char*, 8> kColours = {"#2563eb", "#ea580c", "#16a34a", "#9333ea",
                                                   "#dc2626", "#0891b2", "#ca8a04", "#64748b"};
  return kColours[index % kColours.size()];
}

std::vector<PlotPoint> thinned(const std::vector<PlotPoint>& points, std::size_t count) {
  const std::size_t group = (points.size() + count - 1) / std::max<std::size_t>(count, 1);
  if (group <= 1) return points;
  std::vector<PlotPoint> result;
  for (std::size_t first = 0; first < points.size(); first += group) {
    const std::size_t last = std::min(points.size(), first + group);
    PlotPoint mean;
    for (std::size_t i = first; i < last; ++i) {
      mean.x += points[i].x / static_cast<double>(last - first);
      mean.y += points[i].y / static_cast<double>(last - first);
    }
    result.push_back(mean);
  }
  return result;
}

std::string draw(const LinePlot& plot) {
  Frame frame{.x_end = 0, .y_end = 0};
  for (const PlotLine& line : plot.lines) {
    for (const PlotPoint& point : line.points) {
      frame.x_end = std::max(frame.x_end, point.x);
      frame.y_end = std::max(frame.y_end, point.y * 1.05);
    }
  }
  frame.x_end = positive(frame.x_end);
  frame.y_end = positive(frame.y_end);
  std::string out = legend(plot.lines) + begin_svg(frame.height);
  out += y_axis(frame, plot.y_label) + x_axis(frame, plot.x_label);
  for (const PlotLine& line : plot.lines)
    out += draw_line(frame, line);
  return out + draw_marks(frame, plot.marks) + "</svg>\n";
}

std::string draw(const HeatMap& map) {
  const double height = kTop + kBottom + kRowHeight * static_cast<double>(map.rows.size());
  const Frame frame{.left = kHeatLeft,
                    .height = height,
                    .x_end = positive(map.x_end),
                    .y_end = positive(static_cast<double>(map.rows.size()))};
  double largest = 0;
  for (const auto& column : map.columns)
    for (const double value : column)
      largest = std::max(largest, value);
  std::string out = begin_svg(height);
  const double width =
      (kWidth - kHeatLeft - kRight) / positive(static_cast<double>(map.columns.size()));
  for (std::size_t row = 0; row < map.rows.size(); ++row) {
    const double y = kTop + kRowHeight * static_cast<double>(row);
    out += text(kHeatLeft - 6, y + kRowHeight - 2, "end", map.rows[row]);
    for (std::size_t column = 0; column < map.columns.size(); ++column) {
      const double value = map.columns[column][row];
      if (value <= 0) continue;
      out += fmt::format(
          "<rect x=\"{:.2f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"{:.1f}\" fill=\"{}\">"
          "<title>{:.6g} {}</title></rect>\n",
          kHeatLeft + width * static_cast<double>(column), y, width + 0.3, kRowHeight - 1,
          heat_colour(value / largest), value, escaped(map.unit));
    }
  }
  return out +
         x_axis(frame, fmt::format("{} (darkest: {:.6g} {})", map.x_label, largest, map.unit)) +
         draw_marks(frame, map.marks) + "</svg>\n";
}

}  // namespace mrc::tool::simulator
