// Calls that an engine must refuse, and that must leave no trace.
#include <cinttypes>

#include "dst/api_faults.h"
#include "dst/failure.h"
#include "dst/host.h"

namespace mrc::dst {
namespace {

struct Target {
  Host& host;
  core::Endpoint& engine;
  const End& end;
  QpNumber qp;
  QpNumber unknown;
  TimeNs now;
};

struct BadCall {
  const char* what;
  Status (*call)(Target&);
};

Status try_create(Target& t, QpNumber number) {
  core::QpConfig config = t.end.config;
  config.number = number;
  return t.engine.create_qp(config);
}

Status try_post(Target& t, QpNumber number, std::uint32_t length) {
  core::SendRequest request;
  request.length = length;
  return t.engine.post_send(t.now, number, request);
}

Status try_probe(Target& t, PortId port) {
  core::EndpointProbe probe;
  probe.peer = t.end.rtr.remote;
  probe.port = port;
  return t.engine.send_endpoint_probe(t.now, probe);
}

const BadCall kBadCalls[] = {
    {"create_qp with number 0", [](Target& t) { return try_create(t, QpNumber{0}); }},
    {"create_qp with number 2", [](Target& t) { return try_create(t, QpNumber{2}); }},
    {"create_qp with 25 bits", [](Target& t) { return try_create(t, QpNumber{0x100'0003}); }},
    {"create_qp with a used number", [](Target& t) { return try_create(t, t.qp); }},
    {"init_qp of an unknown qp", [](Target& t) { return t.engine.init_qp(t.unknown, t.end.init); }},
    {"init_qp in RTS", [](Target& t) { return t.engine.init_qp(t.qp, t.end.init); }},
    {"ready_to_receive of an unknown qp",
     [](Target& t) { return t.engine.ready_to_receive(t.unknown, t.end.rtr); }},
    {"ready_to_receive in RTS",
     [](Target& t) { return t.engine.ready_to_receive(t.qp, t.end.rtr); }},
    {"ready_to_send of an unknown qp",
     [](Target& t) { return t.engine.ready_to_send(t.now, t.unknown, t.end.rts); }},
    {"ready_to_send in RTS",
     [](Target& t) { return t.engine.ready_to_send(t.now, t.qp, t.end.rts); }},
    {"fail_qp of an unknown qp", [](Target& t) { return t.engine.fail_qp(t.now, t.unknown); }},
    {"reset_qp of an unknown qp", [](Target& t) { return t.engine.reset_qp(t.unknown); }},
    {"destroy_qp of an unknown qp", [](Target& t) { return t.engine.destroy_qp(t.unknown); }},
    {"query_qp of an unknown qp", [](Target& t) { return t.engine.query_qp(t.unknown).status(); }},
    {"post_send to an unknown qp", [](Target& t) { return try_post(t, t.unknown, 0); }},
    {"post_send beyond the longest message",
     [](Target& t) { return try_post(t, t.qp, core::kMaxMessageBytes + 1); }},
    {"post_receive to an unknown qp",
     [](Target& t) { return t.engine.post_receive(t.unknown, {}); }},
    {"set_receive_window to nothing",
     [](Target& t) { return t.engine.set_receive_window(t.qp, 0); }},
    {"set_ev_denied beyond the profile",
     [](Target& t) {
       const EvIndex beyond{static_cast<std::uint16_t>(t.end.init.ev_profile->size())};
       return t.engine.set_ev_denied(t.now, t.qp, beyond, true);
     }},
    {"query_ev beyond the profile",
     [](Target& t) { return t.engine.query_ev(t.qp, kNoEv).status(); }},
    {"set_port_up of port 0", [](Target& t) { return t.engine.set_port_up(t.now, kNoPort, true); }},
    {"set_port_up beyond the last port",
     [](Target& t) { return t.engine.set_port_up(t.now, PortId{17}, false); }},
    {"endpoint probe on port 0", [](Target& t) { return try_probe(t, kNoPort); }},
    {"endpoint probe beyond the last port", [](Target& t) { return try_probe(t, PortId{17}); }},
    {"register_memory around the end of memory",
     [](Target& t) {
       const core::MemoryRegion region{~std::uint64_t{0} - 10, 100, t.end.config.domain, true};
       return t.engine.register_memory(region, t.host.keys()).status();
     }},
};

// Everything query_qp tells, in one number.
std::uint64_t digest(const core::Endpoint& engine, QpNumber number) {
  const core::QpStatus s = engine.query_qp(number).value();
  const std::uint64_t parts[] = {static_cast<std::uint64_t>(s.state),
                                 s.sends_outstanding,
                                 s.receives_outstanding,
                                 s.packets_in_flight,
                                 s.packets_lost,
                                 static_cast<std::uint64_t>(s.bytes_in_flight),
                                 static_cast<std::uint64_t>(s.window_bytes),
                                 static_cast<std::uint64_t>(s.peer_bytes_in_flight),
                                 s.window_psns,
                                 s.next_psn.value(),
                                 s.oldest_unacknowledged.value(),
                                 s.expected_psn.value(),
                                 s.good_evs,
                                 s.bad_evs,
                                 static_cast<std::uint64_t>(s.smoothed_rtt_ns),
                                 s.counters.data_sent,
                                 s.counters.messages_completed,
                                 s.counters.data_received,
                                 engine.ports_up().bits(),
                                 static_cast<std::uint64_t>(engine.next_deadline())};
  std::uint64_t sum = 0;
  for (const std::uint64_t part : parts)
    sum = mix64(sum ^ part);
  return sum;
}

// --- What is refused on the way to RTS ---

void expect_refusal(const Status& status, const char* what) {
  MRC_CHECK(!status.ok(), "the engine accepted %s", what);
}

void expect_success(const Status& status, const char* what) {
  MRC_CHECK(status.ok(), "after a refusal %s failed: %s", what, status.what());
}

void check_bad_receivers(const Target& t) {
  for (const std::uint32_t path_mtu : {0U, 252U, 258U, 8'196U}) {
    core::QpReadyToReceive rtr = t.end.rtr;
    rtr.path_mtu = path_mtu;
    expect_refusal(t.engine.ready_to_receive(t.unknown, rtr), "a path MTU that cannot be");
  }
  core::QpReadyToReceive rtr = t.end.rtr;
  rtr.mpr_dest = 0;
  expect_refusal(t.engine.ready_to_receive(t.unknown, rtr), "a receive window of nothing");
}

void check_bad_senders(const Target& t) {
  core::QpReadyToSend rts = t.end.rts;
  rts.timeout = core::kMaxTimeout + 1;
  expect_refusal(t.engine.ready_to_send(t.now, t.unknown, rts), "a time-out of 25");
  rts = t.end.rts;
  rts.linear_retries = core::kMaxLinearRetries + 1;
  expect_refusal(t.engine.ready_to_send(t.now, t.unknown, rts), "8 linear retries");
  rts = t.end.rts;
  rts.exponential_retries = core::kMaxExponentialRetries + 1;
  expect_refusal(t.engine.ready_to_send(t.now, t.unknown, rts), "26 exponential retries");
  rts = t.end.rts;
  rts.mpr = 0;
  expect_refusal(t.engine.ready_to_send(t.now, t.unknown, rts), "a send window of nothing");
}

// A queue pair of its own goes from RESET to RTS with a refusal before each step.
void check_bad_steps(const Target& t) {
  core::QpConfig config = t.end.config;
  config.number = t.unknown;
  expect_success(t.engine.create_qp(config), "create_qp");
  expect_refusal(t.engine.ready_to_receive(t.unknown, t.end.rtr), "RTR before INIT");
  expect_success(t.engine.init_qp(t.unknown, t.end.init), "init_qp");
  expect_refusal(t.engine.ready_to_send(t.now, t.unknown, t.end.rts), "RTS before RTR");
  expect_refusal(t.engine.post_send(t.now, t.unknown, {}), "post_send before RTS");
  check_bad_receivers(t);
  expect_success(t.engine.ready_to_receive(t.unknown, t.end.rtr), "ready_to_receive");
  check_bad_senders(t);
  expect_success(t.engine.ready_to_send(t.now, t.unknown, t.end.rts), "ready_to_send");
  expect_success(t.engine.destroy_qp(t.unknown), "destroy_qp");
}

// What no endpoint and no profile can be made from.
void check_bad_making(const Target& t) {
  core::EndpointConfig config = t.engine.config();
  config.port_count = 0;
  expect_refusal(core::Endpoint::create(config).status(), "an endpoint without ports");
  config.port_count = kMaxPorts + 1;
  expect_refusal(core::Endpoint::create(config).status(), "an endpoint with 17 ports");
  expect_refusal(core::EvProfile::create({}).status(), "a profile without EVs");
  const core::EvEntry astray[] = {{.entropy = 7, .port = kNoPort, .denied = false}};
  expect_refusal(core::EvProfile::create(astray).status(), "an EV on port 0");
}

}  // namespace

void check_bad_arguments(Host& host, const End& end, Random& random) {
  QpNumber unknown{random.between(3, kQpNumberMask)};
  while (host.engine().query_qp(unknown).ok())
    unknown = QpNumber{random.between(3, kQpNumberMask)};
  Target target{host, host.engine(), end, end.config.number, unknown, host.clock()};
  const std::uint64_t before = digest(host.engine(), end.config.number);
  for (const BadCall& bad : kBadCalls) {
    const Status status = bad.call(target);
    MRC_CHECK(!status.ok(), "the engine accepted %s", bad.what);
    MRC_CHECK(digest(host.engine(), end.config.number) == before, "refusing %s changed something",
              bad.what);
  }
  check_bad_steps(target);
  check_bad_making(target);
}

}  // namespace mrc::dst
