#include <fstream>
#include <sstream>

#include "fabric/input_error.h"
#include "sim/flow_sizes.h"

namespace mrc::sim {

using fabric::InputError;

std::vector<FlowSizes::Point> read_flow_sizes(const std::string& path) {
  std::ifstream in(path);
  if (!in) throw InputError(path + ": cannot be read, and is no known distribution (websearch)");
  std::vector<FlowSizes::Point> points;
  std::string text;
  for (unsigned number = 1; std::getline(in, text); ++number) {
    if (text.empty() || text.front() == '#') continue;
    std::istringstream line(text);
    FlowSizes::Point point;
    std::string rest;
    if (!(line >> point.bytes >> point.share) || line >> rest)
      throw InputError(path + ":" + std::to_string(number) + ": 'bytes percent' is expected");
    point.share /= 100;
    points.push_back(point);
  }
  return points;
}

}  // namespace mrc::sim
