#include "nic/engine/engine_pump.h"

#include <algorithm>
#include <new>
#include <utility>

#include "nic/queue_pair.h"
#include "os/clock.h"

namespace mrc::nic {
namespace {

constexpr unsigned kReceiveBudget = 64;
constexpr unsigned kLastRounds = 8;
constexpr DurationNs kBusyPortRetryNs = 50 * kMicrosecondNs;
// So many packets in so short a time are worth a thread of their own.
constexpr unsigned kMuchToDo = 8;
constexpr DurationNs kLoadWindowNs = 100 * kMicrosecondNs;

PumpState state_of(EngineParts& parts) {
  const ProcessNumber process = parts.backend->process_number();
  // Whoever shares a port with others gets their answers too.
  const bool alone = parts.dialect.processes == wire::Processes::kByUdpPort;
  const unsigned first_request = alone ? 0U : unsigned{process} << 8;
  return {.endpoint = std::move(parts.endpoint),
          .backend = std::move(parts.backend),
          .group = *parts.group,
          .index = parts.index,
          .udp_port = parts.udp_port,
          .dialect = parts.dialect,
          .qps = QpTable(process),
          .peers = PeerTable(parts.max_peers),
          .requests = EndpointRequests(static_cast<std::uint16_t>(first_request))};
}

}  // namespace

EnginePump::EnginePump(EngineParts parts, EngineInbox& inbox)
    : state_(state_of(parts)),
      inbox_(inbox),
      path_profiles_(*state_.backend, parts.paths, random_, parts.dialect),
      ports_(ports_of(*state_.backend)),
      default_cc_(software_cc({.network_trims = parts.trimming}, ports_)),
      results_(state_),
      intake_(state_, results_),
      receive_(state_, intake_),
      transmit_(state_, parts.spray_quantum) {}

core::CcProfile EnginePump::cc_of(const node::NodeCcProfile& profile) const {
  core::CcProfile cc = profile.cc;
  const bool as_device = profile.trimming == node::Trimming::kAsDevice;
  cc.network_trims =
      as_device ? default_cc_.network_trims : profile.trimming == node::Trimming::kOn;
  return software_cc(cc, ports_);
}

// --- One round ---

// A post looks for no packets: it returns as soon as its work is under way.
//
// A poll without pause that placed or completed something returns with it at once. What the engine
// owes the network for it, answers above all, leaves with the next call, often behind the data the
// program posts in reply, or with the engine thread when no call comes.
bool EnginePump::round(Driver driver, TimeNs now) noexcept {
  const unsigned moved_before = state_.moved;
  state_.now = now;
  try {
    work(driver);
  } catch (const std::bad_alloc&) {
    state_.more_work = true;
  }
  return state_.moved != moved_before || state_.more_work;
}

void EnginePump::work(Driver driver) {
  switch (driver) {
    case Driver::kPoster:
      state_.more_work = false;
      take_posted_work();
      transmit();
      hand_out_results();
      break;
    case Driver::kThread:
      receive_packets();
      run_timers();
      state_.now = os::monotonic_now();  // a full batch takes a while
      take_posted_work();
      transmit();
      hand_out_results();
      break;
    case Driver::kPoller:
    case Driver::kEagerPoller:
      if (state_.more_work) transmit();
      take_posted_work();
      state_.program_sees_it = false;
      receive_packets();
      run_timers();
      hand_out_results();
      if (driver == Driver::kEagerPoller && state_.program_sees_it) {
        state_.more_work = true;
      } else {
        transmit();
      }
      break;
  }
}

void EnginePump::progress() noexcept { round(Driver::kPoster, os::monotonic_now()); }

void EnginePump::take_posted_work() {
  inbox_.take([this](Doorbell& doorbell) { intake_.take(static_cast<QueuePairImpl&>(doorbell)); });
}

void EnginePump::receive_packets() {
  const unsigned received = receive_.run(kReceiveBudget);
  state_.moved += received;
  state_.more_work = received >= kReceiveBudget;
  if (pressure_.update(state_.now, state_.backend->counters().receive_overflow)) ease_pressure();
}

// Queue pairs that join meanwhile are told with the next change.
void EnginePump::ease_pressure() {
  state_.qps.for_each([this](QueuePairImpl& qp) {
    const core::QpReadyToReceive& agreed = qp.e.rtr;
    const std::uint8_t units =
        agreed.dynamic_mpr ? pressure_.window_units(agreed.mpr_dest) : agreed.mpr_dest;
    // One that is not connected has nobody to tell.
    (void)state_.endpoint->set_receive_window(qp.number(), units, pressure_.penalty());
  });
}

void EnginePump::run_timers() {
  if (state_.endpoint->next_deadline() <= state_.now) state_.endpoint->on_timer(state_.now);
}

void EnginePump::hand_out_results() {
  if (inbox_.take_overrun()) results_.fail_overrun_qps();
  results_.drain_completions();
  results_.report_waiting();
  results_.drain_events();
}

// --- Between rounds ---

// The protocol knows no deadline for packets that wait for a port whose socket is full.
TimeNs EnginePump::next_run() const {
  if (state_.more_work || has_news()) return 0;
  const core::Endpoint& endpoint = *state_.endpoint;
  const TimeNs at = std::min(endpoint.next_deadline(), results_.waiting_until());
  const PortMask up = endpoint.ports_up();
  if (!endpoint.wants_to_send() || (up & state_.backend->free_ports()) == up) return at;
  return std::min(at, state_.now + kBusyPortRetryNs);
}

bool EnginePump::much_to_do() {
  if (state_.now - load_since_ <= kLoadWindowNs) return state_.moved >= kMuchToDo;
  load_since_ = state_.now;
  state_.moved = 0;
  return false;
}

// A card has acknowledged what it completed. Where a program ends right behind its last completion,
// its peer would otherwise wait for an answer that nobody gives.
void EnginePump::send_owed_answers() {
  state_.now = os::monotonic_now();
  take_posted_work();
  state_.more_work = true;
  for (unsigned round = 0; state_.more_work && round < kLastRounds; ++round) {
    state_.more_work = false;
    transmit();
  }
}

}  // namespace mrc::nic
