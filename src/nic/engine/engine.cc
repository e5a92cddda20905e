// Queue pairs of the engine, doorbells, and one round of progress.
#include "nic/engine/engine.h"

#include <sched.h>

#include <algorithm>
#include <ctime>

#include <utility>

#include "nic/queue_pair.h"
#include "os/clock.h"

namespace mrc::nic {
namespace {

constexpr unsigned kReceiveBudget = 64;
constexpr DurationNs kBusyPortRetryNs = 50 * kMicrosecondNs;
constexpr std::uint32_t kLowBits = 0xFFFF;
constexpr std::uint32_t kWindowBytes = 512 * 1024;
// So many packets in so short a time are worth a thread of their own.
constexpr unsigned kMuchToDo = 8;
constexpr DurationNs kLoadWindowNs = 100 * kMicrosecondNs;

// What is right for a network card is wrong for processes that share processors: a peer answers
// within microseconds, or after the milliseconds others had its processor. The target delay lets a
// window stand through that, and its limit is what receive buffers of sockets hold, in whole
// bursts: one that a full window cuts in two leaves in two system calls, and so do all after it.
// Ordinary networks drop; who has switches that trim says so in a profile. Where ports are slow,
// the time that one packet takes on a link counts: it is spent at each hop, and queues are a few
// packets long.
core::CcProfile software_cc(const Backend& backend) {
  constexpr std::uint64_t kLargePacketBits = 4'352 * 8;
  constexpr DurationNs kHops = 4;
  constexpr DurationNs kQueuedPackets = 8;
  const std::uint64_t rate = std::max<std::uint64_t>(backend.port_bits_per_second(), 1'000'000);
  const auto packet_ns = static_cast<DurationNs>(kLargePacketBits * kSecondNs / rate);
  const wire::Packet packet{.bth = {.has_timestamp = true}, .body = wire::Write{}};
  const std::uint32_t full = wire::nominal_size(packet, backend.path_mtu());
  const std::uint32_t burst = backend.burst_limit() * full;
  core::CcProfile cc;
  cc.network_trims = false;
  cc.nscc.base_rtt_ns = 200 * kMicrosecondNs + kHops * packet_ns;
  cc.nscc.target_delay_ns = kMillisecondNs + kQueuedPackets * packet_ns;
  cc.nscc.max_cwnd = (kWindowBytes / burst + 1) * burst + full / 2;
  cc.nscc.disable_qa = true;
  return cc;
}

}  // namespace

Engine::Engine(EngineParts parts)
    : endpoint_(std::move(parts.endpoint)),
      backend_(std::move(parts.backend)),
      group_(*parts.group),
      index_(parts.index),
      peers_(parts.max_peers),
      path_profiles_(*backend_, parts.evs_per_port, random_),
      udp_port_(parts.udp_port),
      fixed_quantum_(parts.spray_quantum) {
  default_cc_ = software_cc(*backend_);
}

Engine::~Engine() {
  stop();
  close_descriptors();
}

TimeNs Engine::clock() { return os::monotonic_now(); }

// --- Queue pairs ---

QueuePairImpl* Engine::find(QpNumber number) const {
  if (process_of(number) != backend_->process_number()) return nullptr;
  const std::uint32_t low = static_cast<std::uint32_t>(number) & kLowBits;
  const QpPage* page = qps_[low / kNumbersPerPage].get();
  return page == nullptr ? nullptr : (*page)[low % kNumbersPerPage];
}

// Numbers are drawn at random, so that packets for a queue pair of the past find none, or one that
// does not know their sender.
Result<QpNumber> Engine::free_qp_number() {
  const std::uint32_t high = std::uint32_t{backend_->process_number()} << 16;
  std::uint32_t low = random_.next32() & kLowBits;
  for (std::uint32_t tries = 0; tries <= kLowBits; ++tries, low = (low + 1) & kLowBits) {
    const QpNumber number{high | low};
    if (number >= kFirstUsableQp && find(number) == nullptr) return number;
  }
  return Status{ErrorCode::kNoSpace, "all queue pair numbers are in use"};
}

void Engine::reserve_qp(QpNumber number) {
  const std::uint32_t low = static_cast<std::uint32_t>(number) & kLowBits;
  auto& page = qps_[low / kNumbersPerPage];
  if (!page) page = std::make_unique<QpPage>();
}

void Engine::add_qp(QueuePairImpl& qp) {
  const std::uint32_t low = static_cast<std::uint32_t>(qp.number()) & kLowBits;
  (*qps_[low / kNumbersPerPage])[low % kNumbersPerPage] = &qp;
  qp_count_.fetch_add(1, std::memory_order_relaxed);
}

void Engine::remove_qp(QueuePairImpl& qp) {
  take_doorbells();
  const std::uint32_t low = static_cast<std::uint32_t>(qp.number()) & kLowBits;
  (*qps_[low / kNumbersPerPage])[low % kNumbersPerPage] = nullptr;
  qp_count_.fetch_sub(1, std::memory_order_relaxed);
}

// --- Doorbells ---

// The flag keeps a queue pair from being on the list twice. It falls before the engine looks at the
// rings, so a post that finds it raised is still to be looked at.
void Engine::push_doorbell(QueuePairImpl& qp) {
  if (qp.rung.exchange(true)) return;
  QueuePairImpl* first = doorbells_.load(std::memory_order_relaxed);
  do {
    qp.next_rung = first;
  } while (!doorbells_.compare_exchange_weak(first, &qp));
}

void Engine::ring(QueuePairImpl& qp) {
  push_doorbell(qp);
  if (alone_.load() || !lock_.try_lock()) return;
  progress();
  unlock();
}

// The engine thread looks at the doorbells when its nap is over; if it sleeps, nobody will.
void Engine::ring_later(QueuePairImpl& qp) {
  push_doorbell(qp);
  if (sleeps_until_.load() != 0) wake();
}

void Engine::take_doorbells() {
  if (doorbells_.load(std::memory_order_relaxed) == nullptr) return;
  QueuePairImpl* qp = doorbells_.exchange(nullptr);
  while (qp != nullptr) {
    QueuePairImpl* next = qp->next_rung;
    qp->rung.store(false);
    take_posted(*qp);
    qp = next;
  }
}

// Work for a queue pair that has failed is flushed, behind what was flushed when it failed.
void Engine::take_posted(QueuePairImpl& qp) {
  for (const std::uint64_t end = qp.receives_posted(); qp.e.receives_taken != end;) {
    const std::uint32_t slot = qp.receive_slot_of(qp.e.receives_taken++);
    const core::ReceiveRequest request{.id = slot, .capacity = qp.receive(slot).capacity};
    if (endpoint_->post_receive(qp.number(), request).ok()) continue;
    drain_completions();
    flush_receive(qp, slot);
  }
  for (const std::uint64_t end = qp.sends_posted(); qp.e.sends_taken != end;) {
    const std::uint32_t slot = qp.send_slot_of(qp.e.sends_taken++);
    const SendSlot& send = qp.send(slot);
    packets_under_way_ += qp.packets_of(send);
    // All are signaled for the protocol: unsignaled ones end here, with their slot.
    const core::SendRequest request{.id = slot,
                                    .local_address = std::uint64_t{slot} << 32,
                                    .length = send.length,
                                    .remote_address = send.remote_address,
                                    .remote_key = Rkey{send.remote_key},
                                    .with_immediate = has_immediate(send.kind),
                                    .immediate = send.immediate,
                                    .signaled = true,
                                    .into_receive = is_send(send.kind)};
    if (endpoint_->post_send(now_, qp.number(), request).ok()) continue;
    drain_completions();
    complete_send(qp, slot, core::CompletionStatus::kFlushed);
  }
}

void Engine::forget_sends(QueuePairImpl& qp) {
  for (std::uint64_t count = qp.e.sends_done; count != qp.e.sends_taken; ++count)
    packets_under_way_ -= qp.packets_of(qp.send(qp.send_slot_of(count)));
}

// --- Progress ---

// Who polls in vain while another thread has the lock lets it have the processor too: the holder
// may be waiting for just this one.
//
// A poll that brought something home returns with it at once if the program polls without pause.
// What the engine owes the network for it, answers above all, leaves with the next call, often
// behind the data the program posts in reply, or with the engine thread when no call comes.
void Engine::poll() {
  if (alone_.load()) {
    const TimeNs now = clock();
    if (!polled_recently(now)) polled_at_.store(now, std::memory_order_relaxed);
    return;
  }
  if (!lock_.try_lock()) {
    sched_yield();
    return;
  }
  now_ = clock();
  const bool without_pause = polled_recently(now_);
  polled_at_.store(now_, std::memory_order_relaxed);
  if (more_work_) transmit();
  take_doorbells();
  something_home_ = false;
  receive();
  hand_out_results();
  if (something_home_ && without_pause) {
    more_work_ = true;
  } else {
    transmit();
  }
  note_load();
  unlock();
}

// Only where a device has several engines: it then has processors for them.
void Engine::note_load() {
  if (group_.engines.size() == 1) return;
  const bool lately = now_ - load_since_ <= kLoadWindowNs;
  if (lately && moved_ >= kMuchToDo && !alone_wanted_.exchange(true)) call_thread();
  if (lately) return;
  load_since_ = now_;
  moved_ = 0;
}

void Engine::receive() {
  targets_.begin_round(now_);
  const unsigned received = backend_->receive(*this, kReceiveBudget);
  moved_ += received;
  more_work_ = received >= kReceiveBudget;
  if (endpoint_->next_deadline() <= now_) endpoint_->on_timer(now_);
}

// All there is to do but a look for packets.
void Engine::progress() {
  now_ = clock();
  more_work_ = false;
  take_doorbells();
  transmit();
  hand_out_results();
}

void Engine::hand_out_results() {
  if (overruns_.load(std::memory_order_relaxed)) fail_overrun_qps();
  drain_completions();
  report_waiting();
  drain_events();
}

void Engine::publish_wanted() {
  TimeNs at = std::min(endpoint_->next_deadline(), waiting_until_);
  if (more_work_) {
    at = 0;
  } else if (endpoint_->wants_to_send() &&
             !((endpoint_->ports_up() & backend_->free_ports()) == endpoint_->ports_up())) {
    at = std::min(at, now_ + kBusyPortRetryNs);
  }
  wanted_at_.store(at);
}

void Engine::unlock() {
  for (;;) {
    publish_wanted();
    lock_.unlock();
    if (doorbells_.load() == nullptr || !lock_.try_lock()) break;
    progress();
  }
  if (wanted_at_.load() < sleeps_until_.load()) wake();
}

}  // namespace mrc::nic
