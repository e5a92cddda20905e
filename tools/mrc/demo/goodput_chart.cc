#include "demo/goodput_chart.h"

#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <vector>

#include "text.h"

namespace mrc::demo {
namespace {

constexpr unsigned kChartRows = 7;
constexpr std::size_t kChartColumns = 76;
constexpr int kLabelWidth = 10;

// How buckets become columns: several columns for one bucket, or several buckets for one column.
class Columns {
 public:
  explicit Columns(const Report& report)
      : report_(report),
        repeat_(std::max<std::size_t>(kChartColumns / std::max<std::size_t>(count(), 1), 1)),
        merge_((count() + kChartColumns - 1) / kChartColumns) {}

  DurationNs bucket_ns() const { return static_cast<DurationNs>(merge_) * kBucketNs; }
  std::size_t width() const { return (count() + merge_ - 1) / merge_ * repeat_; }
  std::size_t column_of(TimeNs at) const {
    return static_cast<std::size_t>(at / bucket_ns()) * repeat_;
  }

  // One value per column from one per bucket.
  std::vector<double> spread(const std::vector<double>& values) const {
    std::vector<double> columns;
    for (std::size_t first = 0; first < values.size(); first += merge_) {
      const std::size_t last = std::min(first + merge_, values.size());
      double sum = 0;
      for (std::size_t i = first; i < last; ++i)
        sum += values[i];
      columns.insert(columns.end(), repeat_, sum / static_cast<double>(last - first));
    }
    return columns;
  }

 private:
  std::size_t count() const { return report_.buckets.size(); }

  const Report& report_;
  std::size_t repeat_;
  std::size_t merge_;
};

std::string y_label(const Report& report, unsigned row) {
  const auto line_rate = static_cast<double>(report.line_rate_bits_per_second());
  if (row == 0) return tool::bit_rate(line_rate);
  if (row == kChartRows / 2) return tool::bit_rate(line_rate / 2);
  return "";
}

void print_columns(const Report& report, const Columns& columns, const tool::Terminal& terminal) {
  std::vector<double> rates;
  for (std::size_t i = 0; i < report.buckets.size(); ++i)
    rates.push_back(bucket_bits_per_second(report, i));
  const auto full = static_cast<double>(report.line_rate_bits_per_second());
  const auto lines = tool::column_chart(columns.spread(rates), full, kChartRows);
  for (unsigned row = 0; row < kChartRows; ++row) {
    fmt::print("{:>{}} │{}\n", y_label(report, row), kLabelWidth, terminal.cyan(lines[row]));
  }
}

// The axis with a label every 100 us, or as many as fit.
void print_axis(const Columns& columns) {
  std::string axis;
  std::string labels;
  const std::size_t width = columns.width();
  const DurationNs step_ns = columns.bucket_ns() * 5;
  for (TimeNs at = 0; columns.column_of(at) < width; at += step_ns) {
    const std::size_t column = columns.column_of(at);
    if (column < labels.size() + (labels.empty() ? 0 : 1)) continue;
    labels.resize(column, ' ');
    labels += fmt::format("{}", at / kMicrosecondNs);
  }
  for (std::size_t i = 0; i < width; ++i)
    axis += "─";
  fmt::print("{:>{}} └{}\n", "0", kLabelWidth, axis);
  fmt::print("{:>{}}  {} us, in steps of {}\n", "", kLabelWidth, labels,
             columns.bucket_ns() / kMicrosecondNs);
}

// Puts a mark into the first line that has room there.
void put_mark(std::vector<std::string>& lines, std::size_t column, const std::string& mark) {
  for (std::string& line : lines) {
    if (line.size() > column) continue;
    line.resize(column, ' ');
    line += mark;
    return;
  }
  lines.emplace_back(column, ' ');
  lines.back() += mark;
}

void print_marks(const std::vector<Moment>& moments, const Columns& columns,
                 const tool::Terminal& terminal) {
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < moments.size(); ++i) {
    if (moments[i].kind == MomentKind::kMissed) continue;
    put_mark(lines, columns.column_of(moments[i].at), fmt::format("^{}", i + 1));
  }
  for (const std::string& line : lines)
    fmt::print("{:>{}}  {}\n", "", kLabelWidth, terminal.yellow(line));
}

void print_planes(const Report& report, const Columns& columns, const tool::Terminal& terminal) {
  const double full = static_cast<double>(report.line_rate_bits_per_second()) /
                      report.options.planes * static_cast<double>(kBucketNs) / 8e9;
  for (unsigned plane = 0; plane < report.options.planes; ++plane) {
    std::vector<double> bytes;
    for (const Measurements::PlaneBytes& bucket : report.buckets)
      bytes.push_back(static_cast<double>(bucket[plane]));
    const std::string label = fmt::format("plane {}", plane + 1);
    const auto share = static_cast<double>(report.plane_bytes(plane));
    fmt::print("{:>{}}  {} {}\n", label, kLabelWidth,
               terminal.cyan(tool::spark_line(columns.spread(bytes), full)),
               tool::percent(share, static_cast<double>(report.bytes_moved)));
  }
}

}  // namespace

void print_goodput_chart(const Report& report, const std::vector<Moment>& moments,
                         const tool::Terminal& terminal) {
  if (report.buckets.empty()) return;
  const Columns columns(report);
  print_columns(report, columns, terminal);
  print_axis(columns);
  print_marks(moments, columns, terminal);
  print_planes(report, columns, terminal);
}

}  // namespace mrc::demo
