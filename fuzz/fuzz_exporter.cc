// Requests to `mrc exporter`, from whoever can reach its port.
#include <algorithm>
#include <string>
#include <string_view>

#include "commands/exporter/http_request.h"
#include "fuzz/fuzz_support.h"

using mrc::fuzz::require;
namespace exporter = mrc::tool::exporter;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view head(reinterpret_cast<const char*>(data),
                              std::min(size, exporter::kMaxHeadBytes));
  const exporter::HttpRequest request = exporter::parse_http_request(head);
  if (request.status == 200) {
    require(request.path.starts_with('/') && request.path.find('?') == std::string::npos);
    require(head.starts_with("GET ") || head.starts_with("HEAD "));
  }
  require(request.path.size() + request.accept.size() <= head.size());
  const std::string text = exporter::http_text({.status = request.status, .body = "x"}, false);
  require(exporter::is_whole_head(text) && text.ends_with("\r\n\r\nx"));
  return 0;
}
