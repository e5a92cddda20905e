#include "commands/view/line_log.h"

#include <utility>

namespace mrc::tool::view_tool {

void LineLog::add(std::string line) {
  const bool tells_all = line.find(",\"k\":1,") != std::string::npos;
  const bool begins_anew = line.starts_with("{\"view\":");
  auto event = std::make_shared<const std::string>("data: " + std::move(line) + "\n\n");
  const std::lock_guard lock(mutex_);
  if (!header_ || begins_anew) {
    const bool first = !header_;
    header_ = event;
    if (first) return;
    // Whoever comes now begins with it; those who are there find it next.
    first_ += lines_.size();
    lines_.clear();
    bytes_ = 0;
  }
  bytes_ += event->size();
  lines_.push_back({std::move(event), tells_all});
  if (bytes_ > most_bytes_) forget();
}

// The oldest half, up to a frame that tells everything.
void LineLog::forget() {
  std::size_t count = 0;
  std::size_t freed = 0;
  while (count < lines_.size() && (freed < bytes_ / 2 || !lines_[count].tells_all))
    freed += lines_[count++].event->size();
  if (count == lines_.size()) return;
  lines_.erase(lines_.begin(), lines_.begin() + static_cast<std::ptrdiff_t>(count));
  first_ += count;
  bytes_ -= freed;
}

std::shared_ptr<const std::string> LineLog::at(std::uint64_t& number) const {
  const std::lock_guard lock(mutex_);
  if (number == 0) return header_;
  if (number < first_) number = first_;
  const std::uint64_t place = number - first_;
  return place < lines_.size() ? lines_[place].event : nullptr;
}

}  // namespace mrc::tool::view_tool
