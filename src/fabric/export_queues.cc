#include "fabric/export_queues.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>

namespace mrc::fabric {
namespace {

// Traffic classes of SONiC, and queues of the same numbers. Trimming belongs to a queue there, so
// data that must not be trimmed, and what is none of ours, has one of its own.
constexpr unsigned kOtherClass = 0;
constexpr unsigned kDataClass = 3;
constexpr unsigned kControlClass = 6;
constexpr unsigned kTrimmedClass = 5;  // names the new code point; goes into the control queue

// Enough for the headers of a sealed packet in a tunnel, and no less than what known chips cut to.
constexpr unsigned kTrimBytes = 256;
constexpr unsigned kCodePoints = 64;
constexpr std::uint32_t kAveragePacketBytes = 4'300;

unsigned class_of(unsigned point, const wire::DscpMap& dscp, bool trims) {
  const auto is = [point](std::uint8_t known) { return point == known; };
  if (is(dscp.control) || is(dscp.trimmed) || is(dscp.trimmed_last_hop)) return kControlClass;
  return trims && (is(dscp.trimmable) || is(dscp.trimmable_retx)) ? kDataClass : kOtherClass;
}

bool any_trims(std::span<const PortQueues> ports) {
  return std::any_of(ports.begin(), ports.end(),
                     [](const PortQueues& port) { return port.policy.trims; });
}

// "a": {...}, "b": {...}: entries of a table, one a line.
class Table {
 public:
  Table(std::string& text, const char* name, bool last = false) : text_(&text), last_(last) {
    fmt::format_to(std::back_inserter(text), "  \"{}\": {{", name);
  }
  ~Table() { *text_ += last_ ? "\n  }\n" : "\n  },\n"; }
  Table(const Table&) = delete;
  Table& operator=(const Table&) = delete;

  void add(const std::string& key, const std::string& fields) {
    fmt::format_to(std::back_inserter(*text_), "{}\n    \"{}\": {{{}}}", first_ ? "" : ",", key,
                   fields);
    first_ = false;
  }

 private:
  std::string* text_;
  bool last_;
  bool first_ = true;
};

std::string field(const char* name, const std::string& value) {
  return fmt::format("\"{}\": \"{}\"", name, value);
}

void add_maps(std::string& text, const wire::DscpMap& dscp, bool trims) {
  std::string points;
  for (unsigned point = 0; point < kCodePoints; ++point)
    points += fmt::format("{}\"{}\": \"{}\"", point == 0 ? "" : ", ", point,
                          class_of(point, dscp, trims));
  Table(text, "DSCP_TO_TC_MAP").add("MRC", points);
  std::string queues;
  for (const unsigned tc : {kOtherClass, kDataClass, kTrimmedClass, kControlClass})
    queues += fmt::format("{}\"{}\": \"{}\"", tc == kOtherClass ? "" : ", ", tc,
                          tc == kTrimmedClass ? kControlClass : tc);
  Table(text, "TC_TO_QUEUE_MAP").add("MRC", queues);
  if (!trims) return;
  Table marks(text, "TC_TO_DSCP_MAP");
  marks.add("MRC_TRIMMED", fmt::format("\"{}\": \"{}\"", kTrimmedClass, dscp.trimmed));
  marks.add("MRC_TRIMMED_LAST_HOP",
            fmt::format("\"{}\": \"{}\"", kTrimmedClass, dscp.trimmed_last_hop));
}

void add_profiles(std::string& text, std::span<const PortQueues> ports, bool trims) {
  {
    Table schedulers(text, "SCHEDULER");
    schedulers.add("MRC_CONTROL", field("type", "STRICT"));
    schedulers.add("MRC_DATA", field("type", "DWRR") + ", " + field("weight", "50"));
  }
  const auto marking = std::find_if(ports.begin(), ports.end(),
                                    [](const PortQueues& port) { return port.policy.marks; });
  if (marking != ports.end()) {
    const QueuePolicy& policy = marking->policy;
    Table(text, "WRED_PROFILE")
        .add("MRC_DATA", field("ecn", "ecn_all") + ", " + field("wred_green_enable", "true") +
                             fmt::format(", \"green_min_threshold\": \"{}\", "
                                         "\"green_max_threshold\": \"{}\", "
                                         "\"green_drop_probability\": \"100\"",
                                         policy.ecn_min_bytes, policy.ecn_max_bytes));
  }
  if (!trims) return;
  Table(text, "BUFFER_PROFILE")
      .add("MRC_TRIM", field("pool", "egress_lossy_pool") + ", " + field("size", "0") + ", " +
                           field("dynamic_th", "0") + ", " +
                           field("packet_discard_action", "trim"));
  Table(text, "SWITCH_TRIMMING")
      .add("GLOBAL", fmt::format("\"size\": \"{}\", \"dscp_value\": \"from-tc\", \"tc_value\": "
                                 "\"{}\", \"queue_index\": \"{}\"",
                                 kTrimBytes, kTrimmedClass, kControlClass));
}

void add_ports(std::string& text, std::span<const PortQueues> ports, bool trims) {
  if (trims) {
    Table buffers(text, "BUFFER_QUEUE");
    for (const PortQueues& port : ports)
      buffers.add(fmt::format("{}|{}", port.port, kDataClass), field("profile", "MRC_TRIM"));
  }
  {
    Table queues(text, "QUEUE");
    for (const PortQueues& port : ports) {
      const std::string data = field("scheduler", "MRC_DATA") +
                               (port.policy.marks ? ", " + field("wred_profile", "MRC_DATA") : "");
      queues.add(fmt::format("{}|{}", port.port, kOtherClass), data);
      if (trims) queues.add(fmt::format("{}|{}", port.port, kDataClass), data);
      queues.add(fmt::format("{}|{}", port.port, kControlClass), field("scheduler", "MRC_CONTROL"));
    }
  }
  Table maps(text, "PORT_QOS_MAP", /*last=*/true);
  for (const PortQueues& port : ports) {
    const char* const trimmed = port.policy.faces_host ? "MRC_TRIMMED_LAST_HOP" : "MRC_TRIMMED";
    maps.add(port.port, field("dscp_to_tc_map", "MRC") + ", " + field("tc_to_queue_map", "MRC") +
                            (trims ? ", " + field("tc_to_dscp_map", trimmed) : ""));
  }
}

}  // namespace

std::string tc_script(const std::string& switch_name, std::span<const PortQueues> ports,
                      const wire::DscpMap& dscp) {
  std::string text;
  const auto out = std::back_inserter(text);
  fmt::format_to(out,
                 "#!/bin/sh\n"
                 "# {}: two queues for each port, control before data\n"
                 "set -e\n"
                 "first() {{\n"
                 "  tc qdisc del dev \"$1\" root 2>/dev/null || true\n"
                 "  tc qdisc add dev \"$1\" root handle 1: prio bands 2 "
                 "priomap 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1\n"
                 "  tc qdisc add dev \"$1\" parent 1:1 handle 11: bfifo limit \"$2\"\n",
                 switch_name);
  for (const std::uint8_t point : {dscp.control, dscp.trimmed, dscp.trimmed_last_hop})
    fmt::format_to(out,
                   "  tc filter add dev \"$1\" parent 1: protocol ipv6 u32 "
                   "match ip6 priority {:#04x} 0xfc flowid 1:1\n",
                   unsigned{point} << 2);
  fmt::format_to(out, "}}\n");
  for (const PortQueues& port : ports) {
    const QueuePolicy& policy = port.policy;
    fmt::format_to(out, "first {} {}\n", port.port, policy.control_capacity_bytes);
    if (!policy.marks) {
      fmt::format_to(out, "tc qdisc add dev {} parent 1:2 handle 12: bfifo limit {}\n", port.port,
                     policy.data_capacity_bytes);
      continue;
    }
    // What `tc` wants: a burst above min / avpkt, and max above min.
    const std::uint32_t least = std::max(policy.ecn_min_bytes, kAveragePacketBytes);
    const std::uint32_t most = std::max(policy.ecn_max_bytes, 2 * least);
    fmt::format_to(out,
                   "tc qdisc add dev {} parent 1:2 handle 12: red limit {} min {} max {} avpkt {} "
                   "burst {} probability 1 ecn\n",
                   port.port, std::max(policy.data_capacity_bytes, 2 * most), least, most,
                   kAveragePacketBytes, (2 * least + most) / (3 * kAveragePacketBytes) + 1);
  }
  return text;
}

std::string sonic_queue_tables(std::span<const PortQueues> ports, const wire::DscpMap& dscp) {
  const bool trims = any_trims(ports);
  std::string text;
  add_maps(text, dscp, trims);
  add_profiles(text, ports, trims);
  add_ports(text, ports, trims);
  return text;
}

}  // namespace mrc::fabric
