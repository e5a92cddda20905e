#include "os/notice.h"

#include <atomic>

namespace mrc::os {
namespace {

std::atomic<NoticeSink> the_sink{nullptr};

}  // namespace

void set_notice_sink(NoticeSink sink) { the_sink.store(sink, std::memory_order_release); }

void notice(const std::string& line) {
  const NoticeSink sink = the_sink.load(std::memory_order_acquire);
  if (sink != nullptr) sink(line.c_str());
}

}  // namespace mrc::os
