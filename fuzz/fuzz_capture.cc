// A capture file of anybody, as `mrc dialect detect` reads it.
#include "capture/capture_file.h"
#include "capture/dialect_finder.h"
#include "fuzz/fuzz_support.h"

using mrc::fuzz::require;
namespace capture = mrc::capture;
namespace wire = mrc::wire;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto file = std::as_bytes(std::span(data, size));
  capture::DialectFinder finder;
  capture::CapturedFrame frame;
  for (capture::CaptureFile survey(file); survey.next(frame);)
    finder.survey(frame);
  std::uint64_t frames = 0;
  for (capture::CaptureFile study(file); study.next(frame); ++frames)
    finder.study(frame);

  const capture::Traffic& traffic = finder.traffic();
  require(traffic.frames == frames && traffic.mrc + traffic.other == frames);
  require(traffic.verified + traffic.unverified == traffic.mrc);
  for (const capture::Finding& finding : finder.findings()) {
    wire::Dialect dialect;
    require((finding.verdict == capture::Verdict::kOpen) == finding.evidence.empty());
    for (const capture::Evidence& each : finding.evidence) {
      require(each.packets > 0 && wire::set_dialect_field(dialect, *finding.field, each.value));
    }
  }
  return 0;
}
