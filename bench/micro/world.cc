#include "world.h"

#include <algorithm>
#include <cstdlib>

#include "wire/packet.h"

namespace mrc::bench {
namespace {

constexpr std::uint64_t kBase = 0x10'0000;
constexpr std::uint64_t kRegionBytes = std::uint64_t{1} << 32;
constexpr std::uint64_t kPortBitsPerSecond = 100'000'000'000;
constexpr std::uint32_t kPacketsAhead = 1024;
constexpr unsigned kDelaySpread = 4;  // the longest path takes 1/4 longer
constexpr unsigned kMaxBatch = 160;

Address address_of(int side) { return {0, static_cast<std::uint64_t>(side) + 1}; }
QpNumber qp_number(unsigned index) { return QpNumber{0x100 + index}; }

// Messages posted at any time to each queue pair: enough that it never runs dry.
std::uint32_t messages_ahead(const WorldOptions& options) {
  return std::max(kPacketsAhead / (options.message_bytes / options.mtu), 1U) + 1;
}

void must(const Status& status) {
  if (!status.ok()) std::abort();
}

}  // namespace

World::World(const WorldOptions& options)
    : options_(options),
      owed_(options.qps * messages_ahead(options)),
      flights_(kMaxFlights),
      data_(kMaxBatch),
      answers_(8 * kMaxBatch) {
  std::vector<core::EvEntry> entries;
  for (unsigned i = 0; i < options.evs; ++i) {
    entries.push_back({0x4000 + i, static_cast<PortId>(i % options.ports + 1)});
    const unsigned extra = i * 7 % (options.delay_steps / kDelaySpread);
    path_delays_.push_back(options.delay_steps + (options.sprayed ? extra : 0));
  }
  profile_ = core::EvProfile::create(entries).value();
  const wire::Packet full{.bth = {.has_timestamp = true}, .body = wire::Write{}};
  const std::uint64_t bits = std::uint64_t{8} * wire::nominal_size(full, options.mtu);
  step_ns_ = static_cast<DurationNs>(bits * kSecondNs / (kPortBitsPerSecond * options.ports)) + 1;
  for (int side : {0, 1})
    connect(side);
  for (std::uint16_t i = 0; i < kMaxFlights; ++i) {
    flights_[i].next = i + 1U < kMaxFlights ? static_cast<std::uint16_t>(i + 1) : kNil;
  }
  free_ = 0;
  for (unsigned i = 0; i < options.qps; ++i) {
    for (std::uint32_t n = messages_ahead(options); n > 0; --n)
      post(i);
  }
}

void World::connect(int side) {
  must(ends_[side].driver.start({.address = address_of(side),
                                 .port_count = options_.ports,
                                 .port_bits_per_second = kPortBitsPerSecond,
                                 .seed = static_cast<std::uint64_t>(side) + 3,
                                 .max_qps = options_.qps,
                                 .control_capacity = 8 * kMaxBatch}));
  test::SeededKeys keys(7);
  key_ =
      endpoint(side)
          .register_memory({.address = kBase, .length = kRegionBytes, .remote_write = true}, keys)
          .value();
  for (unsigned i = 0; i < options_.qps; ++i)
    connect_qp(side, i);
}

void World::connect_qp(int side, unsigned index) {
  core::Endpoint& engine = endpoint(side);
  const QpNumber qp = qp_number(index);
  must(engine.create_qp({.number = qp, .max_sends = messages_ahead(options_)}));
  core::QpInit init{.ev_profile = &profile_};
  // The network here has no queues; the window covers the longest path both ways.
  init.cc.nscc.base_rtt_ns = static_cast<std::uint32_t>(
      2 * (options_.delay_steps + options_.delay_steps / kDelaySpread) * step_ns_);
  must(engine.init_qp(qp, init));
  must(engine.ready_to_receive(qp, {.remote = address_of(1 - side),
                                    .remote_qp = qp,
                                    .path_mtu = options_.mtu,
                                    .sack_threshold_bytes = options_.sack_threshold_bytes}));
  must(engine.ready_to_send(now_, qp, {.timeout = 12}));
}

void World::post(unsigned index) {
  must(endpoint(0).post_send(now_, qp_number(index),
                             {.id = index,
                              .length = options_.message_bytes,
                              .remote_address = kBase,
                              .remote_key = key_}));
}

// Every message that is done makes room for another one.
void World::post_next() {
  for (; posts_owed_ > 0; --posts_owed_)
    post(owed_[posts_owed_ - 1]);
}

bool World::lost_on_the_way(const core::TxPacket& packet) {
  if (packet.payload_length == 0) return false;
  ++data_packets_;
  return options_.lose_every != 0 && data_packets_ % options_.lose_every == 0;
}

void World::hand_over(int side, const core::TxPacket& packet) {
  ends_[side].driver.deliver(
      now_, test::arrival_of(packet, address_of(1 - side)), packet.packet,
      [this](const core::RxResult& result) { received_ += result.placement.length > 0 ? 1 : 0; });
}

void World::drain_completions() { ends_[0].driver.drain_completions(); }

void World::note_done(const core::Completion& completion) {
  owed_[posts_owed_++] = static_cast<unsigned>(completion.id);
  failed_ = failed_ || completion.status != core::CompletionStatus::kSuccess;
}

// --- Stepwise ---

void World::pull(int side, unsigned limit, Line& line) {
  for (unsigned n = 0; n < limit; ++n) {
    if (free_ == kNil) std::abort();
    Flight& flight = flights_[free_];
    if (!ends_[side].driver.take(now_, PortMask::first(options_.ports), flight.packet)) return;
    if (lost_on_the_way(flight.packet)) continue;
    Line::Slot& slot = line.slots[(step_ + path_delay(flight.packet.ev)) % kWheelSlots];
    const std::uint16_t self = free_;
    free_ = flight.next;
    flight.next = kNil;
    (slot.head == kNil ? slot.head : flights_[slot.tail].next) = self;
    slot.tail = self;
  }
}

void World::deliver(int side, Line& line) {
  Line::Slot& slot = line.slots[step_ % kWheelSlots];
  for (std::uint16_t at = slot.head; at != kNil;) {
    Flight& flight = flights_[at];
    const std::uint16_t following = flight.next;
    hand_over(side, flight.packet);
    flight.next = free_;
    free_ = at;
    at = following;
    if (side == 1) pull(1, kMaxFlights, to_requester_);
  }
  slot = {};
}

void World::run_timers() {
  for (End& end : ends_) {
    if (end.driver.timer_due(now_)) end.driver.fire(now_);
  }
}

std::uint64_t World::run_steps(unsigned count) {
  const std::uint64_t before = received_;
  for (unsigned n = 0; n < count; ++n) {
    ++step_;
    now_ += step_ns_;
    run_timers();
    deliver(1, to_responder_);
    deliver(0, to_requester_);
    drain_completions();
    post_next();
    pull(0, 1, to_responder_);
  }
  return received_ - before;
}

// --- Batches ---

unsigned World::send(unsigned count) {
  const PortMask all = PortMask::first(options_.ports);
  unsigned with_data = 0;
  if (count > std::min(options_.delay_steps, kMaxBatch)) std::abort();
  post_next();
  for (data_count_ = 0; data_count_ < count; ++data_count_) {
    Flight& flight = data_[data_count_];
    flight.arrives_at = now_;
    if (!ends_[0].driver.take(now_, all, flight.packet)) break;
    now_ += step_ns_;
    with_data += flight.packet.payload_length > 0 ? 1 : 0;
  }
  return with_data;
}

void World::sort_batch(std::vector<Flight>& batch, unsigned count) {
  for (unsigned i = 0; i < count; ++i) {
    batch[i].arrives_at += path_delay(batch[i].packet.ev) * step_ns_;
  }
  const auto last = batch.begin() + static_cast<std::ptrdiff_t>(count);
  std::sort(batch.begin(), last,
            [](const Flight& a, const Flight& b) { return a.arrives_at < b.arrives_at; });
}

void World::order_data() { sort_batch(data_, data_count_); }

void World::order_answers() {
  run_timers();
  sort_batch(answers_, answer_count_);
}

unsigned World::receive() {
  const PortMask all = PortMask::first(options_.ports);
  const std::uint64_t before = received_;
  answer_count_ = 0;
  for (unsigned i = 0; i < data_count_; ++i) {
    now_ = std::max(now_, data_[i].arrives_at);
    hand_over(1, data_[i].packet);
    while (answer_count_ < answers_.size() &&
           ends_[1].driver.take(now_, all, answers_[answer_count_].packet)) {
      answers_[answer_count_++].arrives_at = now_;
    }
  }
  return static_cast<unsigned>(received_ - before);
}

unsigned World::settle() {
  for (unsigned i = 0; i < answer_count_; ++i) {
    now_ = std::max(now_, answers_[i].arrives_at);
    hand_over(0, answers_[i].packet);
    drain_completions();
  }
  return answer_count_;
}

bool World::healthy() const {
  if (failed_ || received_ == 0) return false;
  for (unsigned i = 0; i < options_.qps; ++i) {
    const core::QpStatus status = ends_[0].driver.engine().query_qp(qp_number(i)).value();
    if (status.state != core::QpState::kReadyToSend) return false;
    const bool resent = status.counters.retransmitted > 0;
    if (resent && options_.lose_every == 0) return false;
  }
  return true;
}

}  // namespace mrc::bench
