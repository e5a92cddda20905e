#include "support/pair.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace mrc::test {
namespace {

Address address_of(int i) { return {0, static_cast<std::uint64_t>(i) + 1}; }

// Stories only make sense on a world that was set up as asked.
void must(const Status& status) {
  if (!status.ok()) std::abort();
}

}  // namespace

Pair::Pair(const PairOptions& options) : options_(options) {
  std::vector<core::EvEntry> entries;
  for (unsigned i = 0; i < options.evs; ++i) {
    entries.push_back({0x1000 + i, static_cast<PortId>(i % options.ports + 1)});
  }
  profile_ = core::EvProfile::create(entries).value();
  for (int i : {0, 1})
    connect(i);
  Prng pattern(42);
  for (std::byte& b : sides_[0].memory)
    b = static_cast<std::byte>(pattern.next32());
}

void Pair::connect(int i) {
  Side& self = sides_[i];
  must(self.driver.start({.address = address_of(i),
                          .port_count = options_.ports,
                          .seed = static_cast<std::uint64_t>(i) + 7,
                          .jitter_ns = options_.jitter_ns,
                          .group_answers = options_.group_answers}));
  core::Endpoint& endpoint = self.driver.engine();
  endpoint.set_spray_quantum(options_.spray_quantum);
  SeededKeys keys(static_cast<std::uint64_t>(i) + 99);
  self.key =
      endpoint
          .register_memory({.address = 0x10000, .length = kMemoryBytes, .remote_write = true}, keys)
          .value();
  must(endpoint.create_qp(
      {.number = kQp, .max_sends = options_.max_sends, .allow_sends = options_.allow_sends}));
  must(endpoint.init_qp(kQp, {.ev_profile = &profile_, .cc = {.algorithm = options_.cc}}));
  must(endpoint.ready_to_receive(kQp, {.remote = address_of(1 - i),
                                       .remote_qp = kQp,
                                       .first_psn = options_.first_psn,
                                       .path_mtu = options_.mtu,
                                       .mpr_dest = options_.window_units}));
  must(endpoint.ready_to_send(0, kQp,
                              {.first_psn = options_.first_psn,
                               .mpr = options_.window_units,
                               .max_outstanding = options_.max_outstanding,
                               .timeout = options_.timeout,
                               .exponential_retries = options_.exponential_retries}));
}

void Pair::write(std::uint64_t id, std::uint32_t length, std::uint64_t offset, bool immediate) {
  must(endpoint(0).post_send(now_, kQp,
                             {.id = id,
                              .local_address = 0,
                              .length = length,
                              .remote_address = 0x10000 + offset,
                              .remote_key = sides_[1].key,
                              .with_immediate = immediate,
                              .immediate = static_cast<std::uint32_t>(id)}));
  pump(0);
}

void Pair::post_receive(std::uint64_t id, std::uint32_t capacity) {
  sides_[1].receives[id].resize(capacity);
  must(endpoint(1).post_receive(kQp, {.id = id, .capacity = capacity}));
}

void Pair::send(std::uint64_t id, std::uint32_t length, bool immediate) {
  must(endpoint(0).post_send(now_, kQp,
                             {.id = id,
                              .length = length,
                              .with_immediate = immediate,
                              .immediate = static_cast<std::uint32_t>(id),
                              .into_receive = true}));
  pump(0);
}

void Pair::stop(int i, DurationNs pause_ns) {
  stopped_until_[i] = now_ + pause_ns;
  std::multimap<TimeNs, Flight> later;
  for (auto& [at, flight] : network_) {
    later.emplace(flight.to == i ? std::max(at, stopped_until_[i]) : at, std::move(flight));
  }
  network_ = std::move(later);
}

void Pair::carry(int from, const core::TxPacket& packet) {
  Side& self = sides_[from];
  ++self.packets_sent;
  if (!deliver(from, packet)) return;
  Flight flight{.to = 1 - from, .packet = packet};
  const std::byte* payload = self.memory.data() + packet.local_address;
  flight.payload.assign(payload, payload + packet.payload_length);
  const std::uint64_t path = packet.entropy % options_.evs;
  const DurationNs extra = options_.spread_ns * static_cast<DurationNs>(path * 7 % options_.evs) /
                           static_cast<DurationNs>(options_.evs);
  const TimeNs arrival = now_ + options_.one_way_ns + extra;
  network_.emplace(std::max(arrival, stopped_until_[1 - from]), std::move(flight));
}

void Pair::land(const Flight& flight) {
  Side& self = sides_[flight.to];
  const core::Arrival arrival = arrival_of(flight.packet, address_of(1 - flight.to));
  self.driver.deliver(now_, arrival, flight.packet.packet, [&](const core::RxResult& result) {
    const core::Placement& placement = result.placement;
    if (placement.length == 0) return;
    std::byte* target = placement.into_receive
                            ? &self.receives.at(placement.receive_id).at(placement.address)
                            : &self.memory.at(placement.address - 0x10000);
    std::memcpy(target, flight.payload.data(), placement.length);
  });
  pump(flight.to);
}

bool Pair::step(TimeNs until) {
  const TimeNs timer = std::min(endpoint(0).next_deadline(), endpoint(1).next_deadline());
  const TimeNs packet = network_.empty() ? kNever : network_.begin()->first;
  const TimeNs next = std::min(timer, packet);
  if (next > until) return false;
  now_ = std::max(now_, next);
  if (packet <= timer) {
    const Flight flight = std::move(network_.begin()->second);
    network_.erase(network_.begin());
    land(flight);
    return true;
  }
  for (int i : {0, 1}) {
    if (!sides_[i].driver.timer_due(now_)) continue;
    sides_[i].driver.fire(now_);
    pump(i);
  }
  return true;
}

void Pair::run_until(TimeNs until) {
  while (step(until)) {
  }
  now_ = std::max(now_, until);
}

bool Pair::run_until_completions(std::size_t count, TimeNs until) {
  while (sides_[0].completions.size() < count) {
    if (!step(until)) return false;
  }
  return true;
}

}  // namespace mrc::test
