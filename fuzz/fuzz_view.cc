// Browsers and other strangers at the port of `mrc view`, and files that are said to be recordings.
#include <string>

#include "fuzz/text_support.h"
#include "view/http_request.h"
#include "view/stream.h"

using mrc::fuzz::require;
namespace view = mrc::view;

namespace {

void check_request(std::string_view bytes) {
  const view::HttpParse parse = view::parse_http_request(bytes);
  if (parse.state != view::HttpParse::State::kDone) return;
  const view::HttpRequest& request = parse.request;
  require(request.path.front() == '/' && request.path.find("..") == std::string::npos);
  require(request.body.size() <= view::kMaxBodyBytes);
  const view::Gate gate{.token = "0123456789abcdef", .port = 4711};
  const view::Gate::Verdict verdict = gate.judge(request);
  if (verdict.status != 200) return;
  require(request.path.starts_with("/0123456789abcdef/"));
  require(request.host.ends_with(":4711"));
  require(request.origin.empty() || request.origin == "http://" + request.host);
}

void check_deed(std::string_view body) {
  view::Deed deed;
  if (!view::parse_deed(body, deed)) return;
  const view::LabOrder order = view::lab_order(deed);
  require(order.argument.find('\n') == std::string::npos);
  require(order.verb.empty() || order.verb == "fault" || order.verb == "heal");
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(mrc::fuzz::text_of(data, size));
  check_request(text);
  check_deed(text);
  const view::RecordingCheck check = view::parse_recording(text);
  if (!check.ok()) mrc::fuzz::require_one_line(check.problem);
  return 0;
}
