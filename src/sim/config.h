// Everything a simulation is told before it starts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/config.h"
#include "fabric/fault_plan.h"
#include "fabric/queue_policy.h"
#include "fabric/routing.h"
#include "fabric/topology.h"
#include "sim/event_queue.h"
#include "sim/roce_dcqcn.h"
#include "sim/workload.h"

namespace mrc::sim {

enum class Transport : std::uint8_t {
  kMrc,
  kRoce,   // RoCEv2
  kSplit,  // RoCEv2 whose messages are split over paths that the sender chooses and keeps
};

// What sealing takes of a host and of the wire (ADR 25). The times are those of one Neoverse V1
// core with AES-128-GCM of OpenSSL 3.0 (docs/performance.md): 4 KiB are 918 ns, the calls around
// them 350.
struct SealCost {
  static constexpr std::uint32_t kHeaderBytes = 28;
  static constexpr std::uint32_t kTagBytes = 16;  // in the place of the ICRC

  bool on = false;
  std::uint32_t packet_ns = 350;  // to seal or to open, whatever its length
  std::uint32_t byte_ps = 224;    // and for each byte of payload
  std::uint32_t trimmed_ns = 60;  // to prove a trimmed packet
  std::uint32_t processors = 1;   // of a host; each does a share
};

struct MrcOptions {
  unsigned evs = 256;             // paths per queue pair, over all planes
  std::uint8_t window_units = 0;  // MPR; 0 = what the bandwidth-delay product needs
  std::uint8_t timeout = 8;       // of the API: 1.024 us * 2^timeout
  core::CcAlgorithm algorithm = core::CcAlgorithm::kNscc;
  core::NsccParameters nscc;
  bool hints = false;             // tell queue pairs the incast degree of the workload
  bool learn_base_rtt = false;    // otherwise each is told that of its idle path
  bool oblivious = false;         // spray without looking at marks
  bool probes = true;             // test dead paths and silent tails
  bool sack_each_packet = false;  // otherwise by byte threshold
  SealCost seal;
};

// Baseline: RoCEv2 with DCQCN, go-back-N and PFC.
struct RoceOptions {
  bool pfc = true;
  bool dcqcn = true;
  DcqcnParameters rates;
  std::uint8_t timeout = 8;      // local ACK timeout: 4.096 us * 2^timeout
  std::uint8_t retries = 7;      // time-outs in a row that a queue pair survives
  std::uint32_t ack_every = 16;  // packets
  // Switches; 0 = what suits the link rates, see roce_network.h.
  std::uint32_t ecn_min_bytes = 0;
  std::uint32_t ecn_max_bytes = 0;
  double ecn_max_probability = 0;
  std::uint32_t pause_bytes = 0;  // PFC, per ingress link
  unsigned split_paths = 4;       // kSplit: parts of a message, each on a path of its own
};

struct SimConfig {
  fabric::TopologySpec topology;
  fabric::ForwardingMode forwarding = fabric::ForwardingMode::kSrv6;
  WorkloadSpec workload;
  Transport transport = Transport::kMrc;
  MrcOptions mrc;
  RoceOptions roce;
  std::uint64_t seed = 1;
  std::uint32_t path_mtu = 4096;  // payload bytes per packet
  bool trimming = true;
  fabric::TrimVictim trim_victim = fabric::TrimVictim::kArrival;
  fabric::QueueShares queue_shares;
  double loss = 0;
  std::vector<std::string> faults;      // text form
  Time carrier_detect_ps = 10'000'000;  // a host port notices its dead link
  // Beyond serialisation and cables: what a host takes until it looks at a packet, and what queues
  // are sized for although the simulator does not take it.
  Time host_delay_ps = 0;
  Time queue_slack_ps = 0;
  Time end_ps = 10'000'000'000'000;  // give up after this much simulated time
  bool verify = false;               // carry and compare every byte
  Time bin_ps = 1'000'000;           // resolution of the goodput series
};

}  // namespace mrc::sim
