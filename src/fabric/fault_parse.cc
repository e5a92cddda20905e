// The text form of faults, see fault_plan.h.
#include <algorithm>
#include <optional>

#include "base/one_line.h"
#include "base/quantity.h"
#include "fabric/fault_plan.h"
#include "fabric/input_error.h"
#include "fabric/node_text.h"

namespace mrc::fabric {
namespace {

[[noreturn]] void fail(const std::string& why) { throw InputError(why); }

std::vector<std::string_view> split_words(std::string_view text) {
  std::vector<std::string_view> words;
  std::size_t at = 0;
  while (true) {
    at = text.find_first_not_of(" \t\r", at);
    if (at == std::string_view::npos) return words;
    const std::size_t end = std::min(text.find_first_of(" \t\r", at), text.size());
    words.push_back(text.substr(at, end - at));
    at = end;
  }
}

// What stands before the verb.
struct Target {
  NodeSet first;
  std::optional<NodeSet> second;
  bool one_way = false;
  std::optional<unsigned> cable;  // none: all
  std::optional<unsigned> plane;  // none: all
  std::string_view text;

  bool in_plane(const Node& node) const { return !plane || *plane == node.plane; }
};

Target read_target(std::string_view text, const Topology& topology) {
  Target target;
  target.text = text;
  bool have_first = false;
  bool have_cable = false;
  bool have_plane = false;
  char separator = '/';
  for (std::string_view rest = text; !rest.empty();) {
    const std::size_t end = std::min(rest.find_first_of("/>"), rest.size());
    const std::string_view part = rest.substr(0, end);
    if (have_plane) fail("nothing may follow the plane in " + quoted(text));
    if (part.starts_with("plane:") && have_first && separator == '/') {
      target.plane = parse_plane(part, topology);
      have_plane = true;
    } else if (part.starts_with("cable:") && target.second && !have_cable && separator == '/') {
      target.cable = parse_cable(part, topology);
      have_cable = true;
    } else if (have_cable) {
      fail("only the plane may follow the cable in " + quoted(text));
    } else if (!have_first) {
      target.first = parse_node_set(part, topology);
      have_first = true;
    } else if (!target.second) {
      target.second = parse_node_set(part, topology);
      target.one_way = separator == '>';
    } else {
      fail(quoted(text) + " names more than two devices");
    }
    if (end + 1 == rest.size()) fail(quoted(text) + " ends too early");
    separator = end < rest.size() ? rest[end] : '\0';
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  if (!have_plane && topology.planes() > 1)
    fail(quoted(text) + " names no plane; add /plane:N or /plane:*");
  return target;
}

// Every link that `wanted` accepts, in the order of the numbers.
template <typename Wanted>
std::vector<LinkId> select_links(const Topology& topology, const Wanted& wanted) {
  std::vector<LinkId> links;
  for (std::uint32_t i = 0; i < topology.link_count(); ++i) {
    const Link link = topology.describe(LinkId{i});
    if (wanted(link)) links.push_back(LinkId{i});
  }
  return links;
}

std::vector<LinkId> links_of(const Target& target, const Topology& topology) {
  std::vector<LinkId> links = select_links(topology, [&target](const Link& link) {
    const NodeSet& a = target.first;
    if (!target.in_plane(link.from)) return false;
    if (target.cable && *target.cable != link.cable) return false;
    if (!target.second) return a.contains(link.from) || a.contains(link.to);
    const NodeSet& b = *target.second;
    return (a.contains(link.from) && b.contains(link.to)) ||
           (!target.one_way && b.contains(link.from) && a.contains(link.to));
  });
  if (links.empty() && target.second) {
    fail("no cable joins " + std::string(target.first.text) + " and " +
         std::string(target.second->text));
  }
  return links;
}

std::vector<LinkId> black_hole_links(const Target& target, const NodeSet& neighbour,
                                     const Topology& topology) {
  if (target.second || target.first.kind == NodeKind::kHost)
    fail("only a switch can be a black hole, " + quoted(target.text) + " is none");
  std::vector<LinkId> links = select_links(topology, [&](const Link& link) {
    return target.in_plane(link.from) && target.first.contains(link.from) &&
           neighbour.contains(link.to);
  });
  if (links.empty())
    fail(std::string(neighbour.text) + " is no neighbour of " + std::string(target.first.text));
  return links;
}

// The words behind the target, taken one by one.
class Words {
 public:
  explicit Words(std::vector<std::string_view> words) : words_(std::move(words)) {}

  bool empty() const { return at_ == words_.size(); }
  std::string_view take(const char* expected) {
    if (empty()) fail(std::string("the line ends where ") + expected + " should stand");
    return words_[at_++];
  }

 private:
  std::vector<std::string_view> words_;
  std::size_t at_ = 0;
};

Picoseconds read_span(std::string_view text, const char* what) {
  const std::optional<Picoseconds> time = parse_time(text);
  if (!time || *time == 0)
    fail(quoted(text) + " is no " + what + "; write a time above zero such as 2ms or 1.5us");
  return *time;
}

double read_share(std::string_view text, const char* what) {
  const std::optional<double> share = parse_share(text);
  if (!share || *share == 0.0)
    fail(quoted(text) + " is no " + what +
         "; write a share above 0% and up to 100%, such as 1% or 0.01");
  return *share;
}

void read_flap(std::string_view text, Fault& fault) {
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos)
    fail(quoted(text) + " is no flap; write the time down and the time up, such as 100us/300us");
  fault.flap_down_ps = read_span(text.substr(0, slash), "time down");
  fault.flap_up_ps = read_span(text.substr(slash + 1), "time up");
}

// The verb with its argument, and with it the links.
void read_what(Words& words, const Target& target, const Topology& topology, Fault& fault) {
  const std::string_view verb = words.take("down, rate, loss, corrupt, flap or blackhole");
  if (verb == "blackhole") {
    fault.kind = FaultKind::kBlackHole;
    const NodeSet neighbour = parse_node_set(words.take("the neighbour, such as t1:5,"), topology);
    fault.links = black_hole_links(target, neighbour, topology);
    fault.link_state_visible = false;
    return;
  }
  fault.links = links_of(target, topology);
  if (verb == "down") {
    fault.kind = FaultKind::kDown;
  } else if (verb == "flap") {
    fault.kind = FaultKind::kFlap;
    read_flap(words.take("the flap's times, such as 100us/300us,"), fault);
  } else if (verb == "rate" || verb == "loss" || verb == "corrupt") {
    fault.kind = verb == "rate"   ? FaultKind::kRate
                 : verb == "loss" ? FaultKind::kLoss
                                  : FaultKind::kCorrupt;
    fault.value = read_share(words.take("a share such as 25%"), fault_kind_name(fault.kind));
    fault.link_state_visible = false;
  } else {
    fail(quoted(verb) + " is no fault; write down, rate, loss, corrupt, flap or blackhole");
  }
}

// Without a start it is at once.
void read_when(Words& words, Fault& fault) {
  if (words.empty()) return;
  std::string_view word = words.take("the start, such as @10us,");
  std::string expected = "the start, such as @10us, 'for' or the end of the line";
  if (word.starts_with('@')) {
    const std::optional<Picoseconds> time = parse_time(word.substr(1));
    if (!time) fail(quoted(word) + " is no time; write @10us, @1.5ms or @0");
    fault.start_ps = *time;
    if (words.empty()) return;
    word = words.take("for");
    expected = "'for' or the end of the line";
  }
  if (word != "for") fail("expected " + expected + ", not " + quoted(word));
  fault.duration_ps = read_span(words.take("a duration such as 2ms"), "duration");
  if (!words.empty()) fail("nothing may follow the duration, not " + quoted(words.take("")));
}

// Errors say why, not where.
Fault read_fault(std::string_view text, const Topology& topology) {
  Words words(split_words(text));
  Fault fault;
  const Target target = read_target(words.take("a target such as t0:3/t1:5/plane:0"), topology);
  read_what(words, target, topology, fault);
  read_when(words, fault);
  fault.text = text;
  return fault;
}

std::string_view trimmed(std::string_view line) {
  const std::size_t first = line.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  return line.substr(first, line.find_last_not_of(" \t\r") - first + 1);
}

}  // namespace

Fault parse_fault(std::string_view text, const Topology& topology) {
  text = trimmed(text);
  try {
    return read_fault(text, topology);
  } catch (const InputError& error) {
    throw InputError(one_line("fault " + quoted(text) + ": " + error.what()));
  }
}

std::vector<Fault> parse_fault_file(std::string_view text, const std::string& origin,
                                    const Topology& topology) {
  std::vector<Fault> plan;
  for (unsigned number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = trimmed(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty() || line.starts_with('#')) continue;
    try {
      plan.push_back(read_fault(line, topology));
    } catch (const InputError& error) {
      throw InputError(one_line(origin + ":" + std::to_string(number) + ": " + error.what()));
    }
  }
  return plan;
}

}  // namespace mrc::fabric
