// The families of metrics: their names, and how each is made from a page.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "commands/exporter/metrics.h"

namespace mrc::tool::exporter {

enum class Kind { kCounter, kGauge, kHistogram };

// Of the exporter itself.
struct Overview {
  std::size_t devices = 0;
  std::size_t left_out = 0;
  std::size_t ended = 0;
  std::size_t unreadable = 0;
  std::size_t closed_folders = 0;
};

class Samples;

struct Family {
  std::string_view name;  // without _total
  Kind kind;
  const char* unit;  // "" where there is none; else the end of the name
  const char* help;
  void (*device)(Samples& samples);  // or
  void (*overview)(const Overview& overview, Samples& samples) = nullptr;
};
std::span<const Family> families();

// The text as it grows, family by family.
class Samples {
 public:
  Samples(Format format, std::size_t queue_pairs) : format_(format), queue_pairs_(queue_pairs) {}

  void head(const Family& family);
  void of(const node::TelemetryReading& reading);
  void of_nobody() { common_.clear(); }
  std::string take() {
    if (format_ == Format::kOpenMetrics) text_ += "# EOF\n";
    return std::move(text_);
  }

  // --- For the families. `labels` beside those that all samples of a device have.
  const node::TelemetryBody& body() const { return *body_; }
  std::size_t queue_pairs() const { return queue_pairs_; }
  template <typename Number>
  void value(Number number, std::string_view labels = {}) {
    line({}, labels, static_cast<double>(number));
  }
  void histogram(const node::TelemetryHistogram& histogram);

 private:
  void line(std::string_view suffix, std::string_view labels, double value);

  Format format_;
  std::size_t queue_pairs_;
  const Family* family_ = nullptr;
  const node::TelemetryBody* body_ = nullptr;
  std::string common_;
  std::string text_;
};

}  // namespace mrc::tool::exporter
