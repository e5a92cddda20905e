#include "commands/exporter/metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string_view>

#include "commands/exporter/families.h"

namespace mrc::tool::exporter {
namespace {

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\' || c == '"') out += '\\';
    out += c;
  }
  return out;
}

std::string labels_of(const node::TelemetryReading& reading) {
  return fmt::format(R"(pid="{}",process="{}",device="{}")", reading.body.process.pid,
                     escaped(reading.body.process.name.text()),
                     escaped(reading.body.device.text()));
}

const char* text_of(Kind kind) {
  switch (kind) {
    case Kind::kCounter:
      return "counter";
    case Kind::kGauge:
      return "gauge";
    case Kind::kHistogram:
      return "histogram";
  }
  return "unknown";
}

}  // namespace

void Samples::head(const Family& family) {
  family_ = &family;
  std::string name(family.name);
  if (family.kind == Kind::kCounter && format_ == Format::kPrometheus) name += "_total";
  fmt::format_to(std::back_inserter(text_), "# HELP {} {}\n# TYPE {} {}\n", name, family.help, name,
                 text_of(family.kind));
  if (format_ == Format::kOpenMetrics && family.unit[0] != '\0')
    fmt::format_to(std::back_inserter(text_), "# UNIT {} {}\n", name, family.unit);
}

void Samples::of(const node::TelemetryReading& reading) {
  common_ = labels_of(reading);
  body_ = &reading.body;
}

void Samples::line(std::string_view suffix, std::string_view labels, double value) {
  const bool both = !common_.empty() && !labels.empty();
  const std::string all = fmt::format("{}{}{}", common_, both ? "," : "", labels);
  const bool counter = family_->kind == Kind::kCounter;
  fmt::format_to(std::back_inserter(text_), "{}{}{}{}{}{} {}\n", family_->name,
                 counter ? "_total" : "", suffix, all.empty() ? "" : "{", all,
                 all.empty() ? "" : "}", value);
}

void Samples::histogram(const node::TelemetryHistogram& histogram) {
  std::uint64_t count = 0;
  for (std::size_t i = 0; i + 1 < histogram.buckets.size(); ++i) {
    count += histogram.buckets[i];
    const double bound = static_cast<double>(node::TelemetryHistogram::bound_ns(i)) / 1e9;
    line("_bucket", fmt::format(R"(le="{}")", bound), static_cast<double>(count));
  }
  line("_bucket", R"(le="+Inf")", static_cast<double>(histogram.count()));
  line("_sum", {}, static_cast<double>(histogram.sum_ns) / 1e9);
  line("_count", {}, static_cast<double>(histogram.count()));
}

std::string metrics_text(const node::TelemetryListing& listing, Format format,
                         const Limits& limits) {
  std::vector<const node::TelemetryReading*> alive;
  for (const node::TelemetryReading& reading : listing.readings)
    if (reading.alive) alive.push_back(&reading);
  const std::size_t shown = std::min(alive.size(), limits.devices);
  Samples samples(format, limits.queue_pairs);
  const Overview overview{.devices = shown,
                          .left_out = alive.size() - shown,
                          .ended = listing.readings.size() - alive.size(),
                          .unreadable = listing.problems.size(),
                          .closed_folders = listing.closed_folders};
  for (const Family& family : families()) {
    samples.head(family);
    if (family.overview != nullptr) {
      samples.of_nobody();
      family.overview(overview, samples);
      continue;
    }
    for (const node::TelemetryReading* reading : std::span(alive).first(shown)) {
      samples.of(*reading);
      family.device(samples);
    }
  }
  return samples.take();
}

}  // namespace mrc::tool::exporter
