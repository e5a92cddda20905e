#include "nic/telemetry_publisher.h"

#include <algorithm>
#include <ctime>
#include <functional>
#include <utility>

#include "nic/engine/engine.h"
#include "os/clock.h"
#include "os/notice.h"

namespace mrc::nic {
namespace {

std::int64_t clock_ns(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return now.tv_sec * kSecondNs + now.tv_nsec;
}

}  // namespace

std::unique_ptr<TelemetryPublisher> TelemetryPublisher::open(const node::DeviceConfig& config) {
  if (config.telemetry.directory.empty()) return nullptr;
  std::string error;
  std::unique_ptr<node::TelemetryWriter> writer =
      node::TelemetryWriter::open(config.telemetry, error);
  if (!error.empty()) os::notice(error);
  if (!writer) return nullptr;
  return std::unique_ptr<TelemetryPublisher>(new TelemetryPublisher(config, std::move(writer)));
}

TelemetryPublisher::TelemetryPublisher(const node::DeviceConfig& config,
                                       std::unique_ptr<node::TelemetryWriter> writer)
    : config_(config), writer_(std::move(writer)) {}

void TelemetryPublisher::publish(const EngineGroup& group, TimeNs now) {
  due_at_ = now + kIdlePeriodNs;  // also where memory is out
  // What others do with the processor meanwhile is not ours.
  const std::int64_t used = clock_ns(CLOCK_THREAD_CPUTIME_ID);
  body_ = {};
  body_.written_ns = now;
  body_.written_unix_ns = clock_ns(CLOCK_REALTIME);
  describe(group);
  const bool moved = sweep(group, now - swept_at_);
  const DurationNs took = clock_ns(CLOCK_THREAD_CPUTIME_ID) - used;
  swept_at_ = now;
  sweep_ns_ += took;
  body_.sweeps = ++sweeps_;
  body_.sweep_ns = static_cast<std::uint64_t>(sweep_ns_);
  writer_->write(body_);
  due_at_ = now + std::max(moved ? kPeriodNs : kIdlePeriodNs, kPatience * took);
}

void TelemetryPublisher::describe(const EngineGroup& group) {
  body_.process = node::own_process();
  body_.device.set(config_.name);
  body_.gid = node::TelemetryAddress::of(config_.planes.front().address);
  body_.engine_count = static_cast<std::uint32_t>(
      std::min<std::size_t>(group.engines.size(), node::kTelemetryEngines));
  for (std::size_t i = 0; i < body_.engine_count; ++i)
    body_.engines[i] = {.cpu_ns = group.engines[i]->cpu_ns(),
                        .queue_pairs = group.engines[i]->qp_count()};
  EnginePump& lead = group.lead().pump();
  const EngineGuard guard(group.lead());
  body_.path_mtu = lead.backend().path_mtu();
  body_.port_bits_per_second = lead.backend().port_bits_per_second();
  body_.plane_count = lead.backend().port_count();
  const PortMask link = lead.backend().link_up();
  for (unsigned i = 0; i < body_.plane_count; ++i) {
    const auto port = static_cast<PortId>(i + 1);
    node::TelemetryPlane& plane = body_.planes[i];
    plane.port = i + 1;
    plane.enabled = lead.ports_enabled().contains(port) ? 1 : 0;
    plane.link_up = link.contains(port) ? 1 : 0;
    if (i >= config_.planes.size()) continue;
    plane.interface.set(config_.planes[i].interface);
    plane.address = node::TelemetryAddress::of(config_.planes[i].address);
  }
}

// Whether packets moved.
bool TelemetryPublisher::sweep(const EngineGroup& group, DurationNs elapsed) {
  TelemetrySweep sweep{.body = body_, .elapsed_ns = static_cast<std::uint64_t>(elapsed)};
  for (const auto& engine : group.engines) {
    EnginePump& pump = engine->pump();
    for (unsigned page = 0; page < QpTable::kPages;) {
      const EngineGuard guard(*engine);
      page = pump.telemetry().collect(pump, page, sweep);
    }
    const EngineGuard guard(*engine);
    pump.telemetry().add_sums(pump, engine->index() == 0, body_);
  }
  std::sort(body_.list.begin(), body_.list.begin() + body_.listed_queue_pairs,
            [](const auto& a, const auto& b) { return a.bytes_per_second > b.bytes_per_second; });
  return sweep.moved;
}

}  // namespace mrc::nic
