// Plots as SVG text that stands on its own inside an HTML page.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace mrc::tool::simulator {

// For text inside HTML and SVG.
std::string escaped(std::string_view text);

struct PlotPoint {
  double x = 0;
  double y = 0;
};

struct PlotLine {
  std::string label;
  std::string colour;
  std::vector<PlotPoint> points;
};

// A moment worth seeing, such as a fault.
struct PlotMark {
  double x = 0;
  std::string label;
};

struct LinePlot {
  std::string x_label;
  std::string y_label;
  std::vector<PlotLine> lines;
  std::vector<PlotMark> marks;
};
std::string draw(const LinePlot& plot);

// Values from nothing to the largest as colours; columns share the x axis.
struct HeatMap {
  std::string x_label;
  std::string unit;
  double x_end = 0;
  std::vector<std::string> rows;
  std::vector<std::vector<double>> columns;  // by column, then by row
  std::vector<PlotMark> marks;
};
std::string draw(const HeatMap& map);

// Colours that can be told apart, again and again from the first.
std::string palette(std::size_t index);

// Joins neighbours until at most `count` remain: means of both coordinates.
std::vector<PlotPoint> thinned(const std::vector<PlotPoint>& points, std::size_t count);

}  // namespace mrc::tool::simulator
