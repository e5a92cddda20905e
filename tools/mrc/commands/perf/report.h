// Shows a measurement: the look of perftest for people, JSON for programs.
#pragma once

#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>

#include "commands/perf/audience.h"

namespace mrc::tool::perf {

class Report final : public Audience {
 public:
  explicit Report(const Options& options);

  void waiting() override;
  void begin(const Plan& plan, const Endpoint& endpoint, const std::string& peer_host) override;
  void interval(const Interval& interval, std::uint64_t message_bytes) override;
  void add(const Result& result) override;
  void data_wrong(const std::string& what) override;
  // Ends the table and writes the JSON document. `problem` is what ended the run early, or empty.
  void end(const std::string& problem);

 private:
  void print_banner(const Endpoint& endpoint, const std::string& peer_host);
  void print_row(const Result& result);
  void print_waits(const Waits& waits);
  void add_json(const Result& result);

  const Options& options_;
  Plan plan_;
  std::FILE* out_;  // where text for people goes
  bool begun_ = false;
  nlohmann::ordered_json document_;
};

}  // namespace mrc::tool::perf
