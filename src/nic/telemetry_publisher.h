// Writes the page of a device, so that others can see how it does (node/telemetry_page.h). Of the
// lead's engine thread alone, which asks when the next page is due whenever it comes by.
//
// A page is written ten times a second while packets move and once a second while none do; at most
// so often that sweeps take one part in 200 of a processor, however many queue pairs there are.
#pragma once

#include <memory>

#include "nic/engine/engine_telemetry.h"
#include "node/config.h"
#include "node/telemetry_writer.h"

namespace mrc::nic {

struct EngineGroup;

class TelemetryPublisher {
 public:
  static constexpr DurationNs kPeriodNs = 100 * kMillisecondNs;
  static constexpr DurationNs kIdlePeriodNs = kSecondNs;
  static constexpr DurationNs kPatience = 200;  // times the processor time of a sweep

  // Null where the device shall not tell, or cannot; a line then says why.
  static std::unique_ptr<TelemetryPublisher> open(const node::DeviceConfig& config);

  TimeNs due_at() const { return due_at_; }
  // No engine lock is held.
  void publish(const EngineGroup& group, TimeNs now);
  // The process ends; any thread.
  void remove() { writer_->remove(); }

 private:
  TelemetryPublisher(const node::DeviceConfig& config,
                     std::unique_ptr<node::TelemetryWriter> writer);
  void describe(const EngineGroup& group);
  bool sweep(const EngineGroup& group, DurationNs elapsed);

  node::DeviceConfig config_;
  std::unique_ptr<node::TelemetryWriter> writer_;
  node::TelemetryBody body_;
  TimeNs due_at_ = 0;
  TimeNs swept_at_ = 0;
  std::uint64_t sweeps_ = 0;
  DurationNs sweep_ns_ = 0;
};

}  // namespace mrc::nic
