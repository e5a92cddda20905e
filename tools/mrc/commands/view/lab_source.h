// A running lab as a stream: asks its control socket what each link carries, and tells the
// difference. Also takes orders to break and to heal.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "commands/view/host_telemetry.h"
#include "commands/view/page_server.h"
#include "lab/control.h"
#include "launch/lab_links.h"
#include "view/stream.h"

namespace mrc::tool::view_tool {

class LabSource {
 public:
  static constexpr int kPeriodMs = 250;
  static constexpr unsigned kLooksPerTelemetry = 4;

  // `client` is connected. Throws std::runtime_error when the lab does not answer.
  LabSource(const std::string& name, std::shared_ptr<lab::ControlClient> client,
            view::LineSink sink);

  // The next frame. False: the lab is gone or has said nothing for half a minute, and the stream
  // says so. When it takes seconds to answer the stream says that meanwhile.
  bool look();
  PageServer::Outcome act(const view::Deed& deed);

 private:
  void fill(const LabLinks& now);
  void count(const LabLinks& now);

  std::shared_ptr<lab::ControlClient> client_;
  view::LineSink sink_;
  std::optional<view::Geometry> geometry_;
  std::optional<view::StreamWriter> writer_;
  view::Frame frame_;
  std::vector<std::uint64_t> link_bytes_;  // at the frame before
  std::set<std::string> faults_;
  HostTelemetry telemetry_;
  unsigned looks_ = 0;
};

}  // namespace mrc::tool::view_tool
