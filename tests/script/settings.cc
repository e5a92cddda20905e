#include "script/settings.h"

#include <stdexcept>
#include <utility>
#include <vector>

namespace mrc::script {
namespace {

constexpr Symbol kNames[] = {{"none", 0}, {"nscc", 1}, {"off", 0}, {"on", 1}, {"forever", 25}};
constexpr std::uint32_t kFirstEntropy = 0x1000;
constexpr std::uint64_t kOurAddress = 0x100;

}  // namespace

void Settings::assign(const Assignment& field, const Variables& variables) {
  const auto found = values_.find(field.name);
  if (found == values_.end()) throw std::invalid_argument("unknown setting: " + field.name);
  found->second = evaluate(field.value, variables, kNames);
}

Settings endpoint_settings() {
  return Settings({
      {"ports", 2},
      {"gbps", 100},
      {"seed", 1},
      {"max_qps", 8},
      {"max_peers", 8},
      {"max_regions", 8},
      {"events", 256},
      {"control", 512},
      {"endpoint_requests", 32},
      {"service_time", 1},
      {"jitter", 0},
      {"strict", 1},
      {"quantum", 1},
  });
}

Settings qp_settings() {
  return Settings({
      {"peer", 1},         {"peer_qp", 200},       {"domain", 1},
      {"max_sends", 2048}, {"max_receives", 128},  {"evs", 4},
      {"min_active", 1},   {"active_evs", 0},      {"in_order", 0},
      {"cc", 0},           {"base_rtt", 10'000},   {"max_cwnd", 0},
      {"trims", 1},        {"recv_peers", 0},      {"rq_psn", 100},
      {"mtu", 1024},       {"max_wimm_dest", 128}, {"mpr_dest", 8},
      {"dynamic_mpr", 0},  {"trim_nack", 1},       {"sack_threshold", 0},
      {"sq_psn", 500},     {"max_wimm", 128},      {"mpr", 8},
      {"timeout", 14},     {"linear", 7},          {"exponential", 12},
  });
}

Address address_of(std::uint64_t number) { return {.high = 0xFD00'0000'0000'0000, .low = number}; }

core::EndpointConfig make_endpoint_config(const Settings& s) {
  core::EndpointConfig config;
  config.address = address_of(kOurAddress);
  config.port_count = s.get<unsigned>("ports");
  config.port_bits_per_second = s["gbps"] * 1'000'000'000;
  config.seed = s["seed"];
  config.max_qps = s.get<unsigned>("max_qps");
  config.max_peers = s.get<unsigned>("max_peers");
  config.max_regions = s.get<unsigned>("max_regions");
  config.event_capacity = s.get<unsigned>("events");
  config.control_capacity = s.get<unsigned>("control");
  config.endpoint_request_capacity = s.get<unsigned>("endpoint_requests");
  config.add_service_time = s["service_time"] != 0;
  config.strict = s["strict"] != 0;
  config.jitter_ns = static_cast<DurationNs>(s["jitter"]);
  return config;
}

core::QpConfig make_qp_config(QpNumber number, const Settings& s) {
  core::QpConfig config;
  config.number = number;
  config.domain = s.get<ProtectionDomain>("domain");
  config.max_sends = s.get<std::uint32_t>("max_sends");
  config.max_receives = s.get<std::uint32_t>("max_receives");
  return config;
}

core::QpInit make_init(const Settings& s, const core::EvProfile* profile) {
  core::QpInit init;
  init.ev_profile = profile;
  init.cc.algorithm = s.get<core::CcAlgorithm>("cc");
  init.cc.network_trims = s["trims"] != 0;
  init.cc.nscc.base_rtt_ns = s.get<std::uint32_t>("base_rtt");
  init.cc.nscc.max_cwnd = s.get<std::uint32_t>("max_cwnd");
  init.hints.remote_recv_peers = s.get<std::uint32_t>("recv_peers");
  init.ev_min_active = s.get<std::uint16_t>("min_active");
  init.active_evs = s.get<std::uint16_t>("active_evs");
  return init;
}

core::QpReadyToReceive make_ready_to_receive(const Settings& s) {
  core::QpReadyToReceive rtr;
  rtr.remote = address_of(s["peer"]);
  rtr.remote_qp = s.get<QpNumber>("peer_qp");
  rtr.first_psn = Psn(s.get<std::uint32_t>("rq_psn"));
  rtr.path_mtu = s.get<std::uint32_t>("mtu");
  rtr.max_wimm_dest = s.get<std::uint16_t>("max_wimm_dest");
  rtr.mpr_dest = s.get<std::uint8_t>("mpr_dest");
  rtr.dynamic_mpr = s["dynamic_mpr"] != 0;
  rtr.trim_nack = s["trim_nack"] != 0;
  rtr.sack_threshold_bytes = s.get<std::uint32_t>("sack_threshold");
  return rtr;
}

core::QpReadyToSend make_ready_to_send(const Settings& s) {
  core::QpReadyToSend rts;
  rts.first_psn = Psn(s.get<std::uint32_t>("sq_psn"));
  rts.max_wimm = s.get<std::uint16_t>("max_wimm");
  rts.mpr = s.get<std::uint8_t>("mpr");
  rts.timeout = s.get<std::uint8_t>("timeout");
  rts.linear_retries = s.get<std::uint8_t>("linear");
  rts.exponential_retries = s.get<std::uint8_t>("exponential");
  return rts;
}

Result<core::EvProfile> make_profile(const Settings& qp, unsigned ports, std::uint32_t from) {
  std::vector<core::EvEntry> entries(qp["evs"]);
  for (std::uint32_t i = 0; i < entries.size(); ++i) {
    entries[i].entropy = kFirstEntropy + from + i;
    entries[i].port = static_cast<PortId>(1 + i % ports);
  }
  const auto order = qp["in_order"] != 0 ? core::EvOrder::kAsListed : core::EvOrder::kDrawn;
  return core::EvProfile::create(entries, 0xFFFF'FFFF, order);
}

}  // namespace mrc::script
