// A lab in a directory of its own, its daemon in a thread. Gone with the object.
#pragma once

#include <memory>
#include <string>
#include <thread>

#include "base/assert.h"
#include "lab/daemon.h"

namespace mrc::test {

class RunningLab {
 public:
  // `base` must be there, empty, until the end.
  RunningLab(const std::string& base, const fabric::TopologySpec& topology)
      : directory_(base, "lab") {
    MRC_ASSERT(directory_.lock());
    directory_.set_up(topology.hosts);
    lab::ClusterOptions options;
    options.topology = topology;
    daemon_ = std::make_unique<lab::Daemon>(directory_, options);
    thread_ = std::thread([this] { daemon_->run(); });
  }
  ~RunningLab() {
    daemon_->stop();
    thread_.join();
    daemon_.reset();
    directory_.remove();
  }
  RunningLab(const RunningLab&) = delete;
  RunningLab& operator=(const RunningLab&) = delete;

  const lab::Directory& directory() const { return directory_; }
  lab::ControlClient call() const {
    lab::ControlClient client;
    MRC_ASSERT(client.connect(directory_.control_path()));
    return client;
  }

 private:
  lab::Directory directory_;
  std::unique_ptr<lab::Daemon> daemon_;
  std::thread thread_;
};

}  // namespace mrc::test
