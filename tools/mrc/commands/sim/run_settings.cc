// The settings themselves: names, help and where values go.
#include <algorithm>
#include <array>
#include <cmath>

#include "commands/sim/run_options.h"
#include "commands/sim/run_tuning.h"
#include "fabric/input_error.h"

namespace mrc::tool::simulator {
namespace {

using fabric::InputError;
using Kind = ValueKind;

template <typename Member>
void set_number(Member& member, std::uint64_t value, std::uint64_t lowest, std::uint64_t highest) {
  if (value < lowest || value > highest) {
    throw InputError("must be from " + std::to_string(lowest) + " to " + std::to_string(highest));
  }
  member = static_cast<Member>(value);
}

double probability(double value) {
  if (!(value >= 0 && value < 1)) throw InputError("must be from 0 to below 1");
  return value;
}

sim::Time from_us(double us) {
  if (!(us >= 0 && us <= 1e9)) throw InputError("must be from 0 to 1000000000");
  return std::llround(us * 1e6);
}

sim::Transport transport(const std::string& name) {
  if (name == "mrc") return sim::Transport::kMrc;
  if (name == "rocev2" || name == "roce") return sim::Transport::kRoce;
  if (name == "split") return sim::Transport::kSplit;
  throw InputError("'" + name + "' is no transport; there are mrc, rocev2, split and both");
}

void set_transport(RunOptions& o, const Value& v) {
  if (v.text == "both") {
    o.transports = {sim::Transport::kMrc, sim::Transport::kRoce};
  } else {
    o.transports = {transport(v.text)};
  }
}

void set_compare(RunOptions& o, const Value& v) {
  std::vector<sim::Transport> named;
  for (std::size_t begin = 0; begin <= v.text.size();) {
    const std::size_t comma = std::min(v.text.find(',', begin), v.text.size());
    named.push_back(transport(v.text.substr(begin, comma - begin)));
    begin = comma + 1;
  }
  if (named.size() < 2 || named.size() > 3)
    throw InputError("must name two or three transports, such as mrc,rocev2,split");
  o.transports = std::move(named);
}

void set_forwarding(RunOptions& o, const Value& v) {
  if (v.text == "srv6") {
    o.config.forwarding = fabric::ForwardingMode::kSrv6;
  } else if (v.text == "structured") {
    o.config.forwarding = fabric::ForwardingMode::kStructuredEv;
  } else if (v.text == "ecmp") {
    o.config.forwarding = fabric::ForwardingMode::kEcmp;
  } else {
    throw InputError("'" + v.text + "' is no way of forwarding; there are srv6, structured, ecmp");
  }
}

void set_trim_victim(RunOptions& o, const Value& v) {
  using enum fabric::TrimVictim;
  if (v.text == "arrival") {
    o.config.trim_victim = kArrival;
  } else if (v.text == "tail") {
    o.config.trim_victim = kTail;
  } else if (v.text == "either") {
    o.config.trim_victim = kEither;
  } else {
    throw InputError("must be arrival, tail or either");
  }
}

void set_cc(RunOptions& o, const Value& v) {
  if (v.text != "nscc" && v.text != "none") throw InputError("must be nscc or none");
  const bool on = v.text == "nscc";
  o.config.mrc.algorithm = on ? core::CcAlgorithm::kNscc : core::CcAlgorithm::kNone;
  o.config.roce.dcqcn = on;
}

void set_mtu(RunOptions& o, const Value& v) {
  if (!core::is_path_mtu(v.count)) throw InputError("must be a multiple of 4 from 256 to 8192");
  o.config.path_mtu = static_cast<std::uint32_t>(v.count);
}

constexpr std::array kWorkload{
    Setting{"workload", Kind::kText, "What the hosts do (see below)",
            [](RunOptions& o, const Value& v) { o.config.workload.name = v.text; }},
    Setting{"bytes", Kind::kBytes, "Bytes per flow, or per host in a collective (2MB, 1GiB, ...)",
            [](RunOptions& o, const Value& v) {
              set_number(o.config.workload.bytes, v.count, 1, (std::uint64_t{1} << 36) - 1);
            }},
    Setting{"seed", Kind::kCount, "The same seed gives the same run",
            [](RunOptions& o, const Value& v) { o.config.seed = v.count; }},
    Setting{"seeds", Kind::kText, "Several, e.g. 1-20: mean, 95 % confidence interval and worst",
            [](RunOptions& o, const Value& v) { o.seeds = parse_seeds(v.text); }},
    Setting{"qps", Kind::kCount, "Connections per pair of hosts",
            [](RunOptions& o, const Value& v) {
              set_number(o.config.workload.connections, v.count, 1, 1024);
            }},
    Setting{"senders", Kind::kCount, "Senders of an incast or of fairness",
            [](RunOptions& o, const Value& v) {
              set_number(o.config.workload.senders, v.count, 1, 1 << 24);
            }},
    Setting{"victim", Kind::kFlag, "Incast: one more flow in the rack of the sink",
            [](RunOptions& o, const Value& v) { o.config.workload.victim = v.flag; }},
    Setting{"crossing", Kind::kCount, "Parking lot: flows A to C, and as many C to B",
            [](RunOptions& o, const Value& v) {
              set_number(o.config.workload.crossing, v.count, 1, 1 << 20);
            }},
    Setting{"through_bytes", Kind::kBytes, "Parking lot: of the flow A to B, if not as the others",
            [](RunOptions& o, const Value& v) {
              set_number(o.config.workload.through_bytes, v.count, 1, (std::uint64_t{1} << 36) - 1);
            }},
    Setting{
        "stagger_us", Kind::kNumber, "Fairness: from the start of one flow to that of the next",
        [](RunOptions& o, const Value& v) { o.config.workload.stagger_ps = from_us(v.number); }},
    Setting{"load", Kind::kNumber, "Poisson: payload over the rate of all hosts' ports",
            [](RunOptions& o, const Value& v) { o.config.workload.load = v.number; }},
    Setting{"sizes", Kind::kText,
            "Poisson: websearch, or a file of 'bytes percent'; otherwise all have --bytes",
            [](RunOptions& o, const Value& v) { o.config.workload.sizes = v.text; }},
    Setting{
        "arrivals_us", Kind::kNumber, "Poisson: flows come for so long",
        [](RunOptions& o, const Value& v) { o.config.workload.arrivals_ps = from_us(v.number); }},
    Setting{"source", Kind::kCount, "Pair: the sending host",
            [](RunOptions& o, const Value& v) {
              set_number(o.config.workload.source, v.count, 0, 1 << 24);
            }},
    Setting{"destination", Kind::kCount, "Pair: the receiving host",
            [](RunOptions& o, const Value& v) {
              set_number(o.config.workload.destination, v.count, 0, 1 << 24);
            }},
    Setting{"placement", Kind::kText,
            "Ranks on hosts: linear, strided (neighbours in different racks), shuffled (by seed)",
            [](RunOptions& o, const Value& v) {
              o.config.workload.placement = sim::parse_placement(v.text);
            }},
    Setting{"window", Kind::kCount, "All-to-all: peers a rank sends to at a time; 0 = all",
            [](RunOptions& o, const Value& v) {
              set_number(o.config.workload.window, v.count, 0, 1 << 24);
            }},
    Setting{"slices", Kind::kCount, "All-reduce: pieces of each chunk; 0 = pieces of 128 KiB",
            [](RunOptions& o, const Value& v) {
              set_number(o.config.workload.slices, v.count, 0, 1'024);
            }},
    Setting{"steps", Kind::kCount, "Training: how many steps",
            [](RunOptions& o, const Value& v) {
              set_number(o.config.workload.steps, v.count, 1, 1'000'000);
            }},
    Setting{"buckets", Kind::kCount, "Training: all-reduces per step",
            [](RunOptions& o, const Value& v) {
              set_number(o.config.workload.buckets, v.count, 1, 1'024);
            }},
    Setting{
        "compute_us", Kind::kNumber, "Training: computation per step",
        [](RunOptions& o, const Value& v) { o.config.workload.compute_ps = from_us(v.number); }},
    Setting{"flows", Kind::kText, "Flows from a CSV file (workload flows)",
            [](RunOptions& o, const Value& v) {
              o.config.workload.name = "flows";
              o.config.workload.file = v.text;
            }},
};

constexpr std::array kNetwork{
    Setting{"topology", Kind::kText, "A preset (`mrc fabric presets` lists them) or a TOML file",
            [](RunOptions& o, const Value& v) { o.topology_source = v.text; }},
    Setting{"one_plane", Kind::kFlag, "All planes' bandwidth in a single plane",
            [](RunOptions& o, const Value& v) { o.one_plane = v.flag; }},
    Setting{"forwarding", Kind::kText, "srv6, structured (EV bits) or ecmp (hash)", set_forwarding},
    Setting{
        "ecmp", Kind::kFlag, "Short for --forwarding ecmp",
        [](RunOptions& o, const Value&) { o.config.forwarding = fabric::ForwardingMode::kEcmp; }},
    Setting{"structured", Kind::kFlag, "Short for --forwarding structured",
            [](RunOptions& o, const Value&) {
              o.config.forwarding = fabric::ForwardingMode::kStructuredEv;
            }},
    Setting{"no_trim", Kind::kFlag, "Switches drop instead of trimming",
            [](RunOptions& o, const Value& v) { o.config.trimming = !v.flag; }},
    Setting{"trims", Kind::kText,
            "Which packet a full queue cuts: arrival, tail, or either (a coin)", set_trim_victim},
    Setting{"queue", Kind::kText,
            "A queue threshold as share of the BDP, e.g. ecn_min=0.2; repeats",
            [](RunOptions& o, const Value& v) { set_queue(v.text, o.config.queue_shares); }, true},
    Setting{"loss", Kind::kShare, "A packet is lost on its way with this probability (1%, 0.01)",
            [](RunOptions& o, const Value& v) { o.config.loss = probability(v.number); }},
    Setting{"fail", Kind::kText, "A fault, e.g. 't0:3/t1:5/plane:0 down @10us for 2ms'; repeats",
            [](RunOptions& o, const Value& v) { o.faults.push_back(v.text); }, true},
    Setting{"fail_file", Kind::kText, "Faults from a file, one per line",
            [](RunOptions& o, const Value& v) { o.fault_files.push_back(v.text); }, true},
    Setting{"carrier_detect_us", Kind::kNumber, "A host notices its own dead link after this time",
            [](RunOptions& o, const Value& v) { o.config.carrier_detect_ps = from_us(v.number); }},
};

constexpr std::array kTransport{
    Setting{"transport", Kind::kText,
            "mrc, rocev2, split (RoCEv2, each message on several fixed paths), or both",
            set_transport},
    Setting{"compare", Kind::kText, "Transports side by side, e.g. mrc,rocev2,split", set_compare},
    Setting{"mtu", Kind::kCount, "Payload bytes per packet", set_mtu},
    Setting{"cc", Kind::kText, "Congestion control: nscc (RoCEv2: DCQCN), or none", set_cc},
    Setting{
        "evs", Kind::kCount, "MRC: paths per queue pair, over all planes",
        [](RunOptions& o, const Value& v) { set_number(o.config.mrc.evs, v.count, 1, 65'536); }},
    Setting{"mpr", Kind::kCount, "MRC: window in units of 128 packets; 0 = as much as it takes",
            [](RunOptions& o, const Value& v) {
              set_number(o.config.mrc.window_units, v.count, 0, 255);
            }},
    Setting{"timeout", Kind::kCount, "MRC: retransmission timeout is 1.024 us * 2^timeout",
            [](RunOptions& o, const Value& v) {
              set_number(o.config.mrc.timeout, v.count, 0, core::kMaxTimeout);
            }},
    Setting{"hints", Kind::kFlag, "MRC: queue pairs know the incast degree",
            [](RunOptions& o, const Value& v) { o.config.mrc.hints = v.flag; }},
    Setting{"learn_base_rtt", Kind::kFlag,
            "MRC: queue pairs are not told the round trip of their idle path",
            [](RunOptions& o, const Value& v) { o.config.mrc.learn_base_rtt = v.flag; }},
    Setting{"oblivious", Kind::kFlag, "MRC: spray without looking at marks",
            [](RunOptions& o, const Value& v) { o.config.mrc.oblivious = v.flag; }},
    Setting{"no_probes", Kind::kFlag, "MRC: no probes of dead paths and silent tails",
            [](RunOptions& o, const Value& v) { o.config.mrc.probes = !v.flag; }},
    Setting{"sack_each_packet", Kind::kFlag, "MRC: a SACK per packet instead of one per 16 kB",
            [](RunOptions& o, const Value& v) { o.config.mrc.sack_each_packet = v.flag; }},
    Setting{"sealed", Kind::kFlag, "MRC: packets are sealed, at the cost of a measured processor",
            [](RunOptions& o, const Value& v) { o.config.mrc.seal.on = v.flag; }},
    Setting{"seal", Kind::kText, "A cost of sealing, e.g. byte_ps=112; repeats",
            [](RunOptions& o, const Value& v) { set_seal(v.text, o.config.mrc.seal); }, true},
    Setting{"nscc", Kind::kText, "A parameter of NSCC, e.g. target_delay_ns=6000; repeats",
            [](RunOptions& o, const Value& v) { set_nscc(v.text, o.config.mrc.nscc); }, true},
    Setting{"roce", Kind::kText, "A parameter of RoCEv2 or DCQCN, e.g. ack_every=32; repeats",
            [](RunOptions& o, const Value& v) { set_roce(v.text, o.config.roce); }, true},
    Setting{"dcqcn", Kind::kText, "RoCEv2: tuned (default), paper, or nic (as a NIC ships)",
            [](RunOptions& o, const Value& v) {
              o.config.roce.rates = sim::DcqcnParameters::named(v.text);
            }},
    Setting{"split_paths", Kind::kCount, "Split: paths per message",
            [](RunOptions& o, const Value& v) {
              set_number(o.config.roce.split_paths, v.count, 1, 64);
            }},
    Setting{"no_pfc", Kind::kFlag, "RoCEv2: no priority flow control",
            [](RunOptions& o, const Value& v) { o.config.roce.pfc = !v.flag; }},
};

constexpr std::array kOutput{
    Setting{"until", Kind::kTime, "Give up after this much simulated time, e.g. 10ms",
            [](RunOptions& o, const Value& v) {
              if (v.time <= 0) throw InputError("must be above 0");
              o.config.end_ps = v.time;
            }},
    Setting{"verify", Kind::kFlag, "Carry and compare every byte",
            [](RunOptions& o, const Value& v) { o.config.verify = v.flag; }},
    Setting{"json", Kind::kFlag, "Print the result as JSON",
            [](RunOptions& o, const Value& v) { o.outputs.json = v.flag; }},
    Setting{"csv", Kind::kText, "Write one line per flow",
            [](RunOptions& o, const Value& v) { o.outputs.csv = v.text; }},
    Setting{"series", Kind::kText, "Write goodput, queues, windows and paths over time as CSV",
            [](RunOptions& o, const Value& v) { o.outputs.series = v.text; }},
    Setting{"bin_us", Kind::kNumber, "Resolution of the time series",
            [](RunOptions& o, const Value& v) {
              o.config.bin_ps = from_us(v.number);
              if (o.config.bin_ps < 1'000) throw InputError("must be at least 0.001");
            }},
    Setting{
        "explain", Kind::kCount,
        "Tell of so many flows, those that lost the most time, where it went; takes a second run",
        [](RunOptions& o, const Value& v) { set_number(o.outputs.explain, v.count, 1, 1'000); }},
    Setting{"report", Kind::kText, "Write a page with plots (HTML)",
            [](RunOptions& o, const Value& v) { o.outputs.report = v.text; }},
    Setting{"record", Kind::kText, "Write a recording for `mrc view`",
            [](RunOptions& o, const Value& v) { o.outputs.record = v.text; }},
    Setting{"record_hops", Kind::kCount,
            "Record so many hops of single packets, from the start and from the first fault",
            [](RunOptions& o, const Value& v) {
              set_number(o.outputs.record_hops, v.count, 0, 1'000'000);
            }},
    Setting{"pcap", Kind::kText, "Write the frames on chosen links (pcapng)",
            [](RunOptions& o, const Value& v) { o.outputs.pcap = v.text; }},
    Setting{"pcap_link", Kind::kText, "A link to capture, e.g. 't0:3>t1:5/plane:0'; repeats",
            [](RunOptions& o, const Value& v) { o.outputs.pcap_links.push_back(v.text); }, true},
    Setting{"pcap_snap", Kind::kCount, "Bytes kept of each captured frame; 0 = all",
            [](RunOptions& o, const Value& v) {
              set_number(o.outputs.pcap_snap_bytes, v.count, 0, 65'536);
            }},
    Setting{"pcap_packets", Kind::kCount, "Capture at most so many packets",
            [](RunOptions& o, const Value& v) {
              set_number(o.outputs.pcap_packets, v.count, 1, 100'000'000);
            }},
};

constexpr std::array kGroups{
    SettingGroup{"Workload", kWorkload},
    SettingGroup{"Network", kNetwork},
    SettingGroup{"Transport", kTransport},
    SettingGroup{"Run and output", kOutput},
};

}  // namespace

std::span<const SettingGroup> setting_groups() { return kGroups; }

const Setting* find_setting(std::string_view name) {
  for (const SettingGroup& group : kGroups)
    for (const Setting& setting : group.settings)
      if (name == setting.name) return &setting;
  return nullptr;
}

}  // namespace mrc::tool::simulator
