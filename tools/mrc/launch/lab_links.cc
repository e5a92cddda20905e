#include "launch/lab_links.h"

#include <sstream>
#include <stdexcept>
#include <string_view>

#include "lab/forwarding.h"

namespace mrc::tool {
namespace {

[[noreturn]] void other_version() {
  throw std::runtime_error(
      "the lab is of another version; `mrc lab down` and `mrc lab up` start it anew");
}

fabric::TopologySpec read_fabric(std::istringstream& words) {
  fabric::TopologySpec spec;
  words >> spec.planes >> spec.hosts >> spec.t0 >> spec.t1 >> spec.t2 >> spec.pods >> spec.cables;
  for (fabric::LinkClass* c : {&spec.host_link, &spec.t0_t1_link, &spec.t1_t2_link})
    words >> c->bits_per_second >> c->delay_ps;
  if (!words) other_version();
  return spec;
}

LabLinks::Link read_link(std::istringstream& words) {
  LabLinks::Link link;
  words >> link.number >> link.bytes >> link.queued;
  if (!words || link.number >= LabLinks::kMaxLinks) other_version();
  unsigned black_hole = 0;
  unsigned down = 0;
  fabric::LinkCondition condition;
  words >> condition.rate_share >> condition.loss >> condition.corrupt >> black_hole >> down;
  if (!words) return link;
  condition.black_hole = black_hole != 0;
  condition.down = down != 0;
  link.condition = condition;
  return link;
}

LabLinks::Count read_count(std::istringstream& words) {
  LabLinks::Count count;
  words >> count.number >> count.marks >> count.trims >> count.drops;
  if (!words || count.number >= LabLinks::kMaxLinks) other_version();
  return count;
}

}  // namespace

void LabLinks::parse_answer(const std::string& text) {
  std::istringstream lines(text);
  const bool first = !fabric;
  next.reset();
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string kind;
    words >> kind;
    if (kind == "time" && first) words >> time_ps;
    if (kind == "fabric" && first) fabric = read_fabric(words);
    if (kind == "link") links.push_back(read_link(words));
    if (kind == "count") counts.push_back(read_count(words));
    if (kind == "sum" && first)
      for (std::uint64_t value = 0; words >> value;)
        sums.push_back(value);
    if (kind == "next") {
      std::uint32_t number = 0;
      words >> number;
      next = number;
    }
    constexpr std::string_view kActive = "fault\tactive\t";
    if (line.starts_with(kActive) && first) faults.insert(line.substr(kActive.size()));
  }
  if (!fabric || sums.size() != 3 + lab::kDropCauses) other_version();
}

LabLinks ask_links(lab::ControlClient& client) {
  LabLinks all;
  all.next = 0;
  while (all.next) {
    const std::uint32_t from = *all.next;
    const lab::Reply reply = client.ask({"links", std::to_string(from)});
    if (!reply.ok) throw std::runtime_error(reply.text);
    all.parse_answer(reply.text);
    if (all.next && *all.next <= from) other_version();
  }
  return all;
}

}  // namespace mrc::tool
