// Pages of telemetry, which processes of other users write: a header and bodies as they come, and a
// whole file among those of a folder.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <vector>

#include "fuzz/fuzz_support.h"
#include "fuzz/own_folder.h"
#include "node/telemetry_reader.h"

using mrc::fuzz::require;
namespace node = mrc::node;

namespace {

void check(const node::TelemetryBody& body) {
  require(body.engine_count <= body.engines.size() && body.plane_count <= body.planes.size());
  require(body.listed_queue_pairs <= body.list.size());
  require(body.listed_paths <= body.paths.size());
  const std::string texts = body.process.name.text() + body.device.text();
  require(std::ranges::all_of(texts, [](char c) { return c >= ' ' && c <= '~'; }));
}

// Input is short beside a page: it lies at the beginning of the header and of both bodies, and
// `form` of its first byte says which of them are put right.
std::vector<std::byte> page_of(std::span<const std::byte> input, unsigned form) {
  std::vector<std::byte> page(node::kTelemetryPageBytes);
  const auto put = [&](std::size_t at, std::span<const std::byte> bytes) {
    const std::size_t length = std::min(bytes.size(), page.size() - at);
    std::copy_n(bytes.begin(), length, page.begin() + static_cast<std::ptrdiff_t>(at));
  };
  put(node::telemetry_body_at(0), input);
  put(node::telemetry_body_at(1), input);
  put(0, input.first(std::min(input.size(), sizeof(node::TelemetryHeader))));
  if ((form & 1) != 0) {
    const node::TelemetryHeader header{.magic = node::TelemetryHeader::kMagic,
                                       .layout = node::kTelemetryLayout,
                                       .body_bytes = sizeof(node::TelemetryBody),
                                       .version = 1 + (form >> 1 & 1)};
    put(0, std::as_bytes(std::span(&header, 1)));
  }
  if ((form & 4) != 0) page.resize(std::max<std::size_t>(input.size(), 1));
  return page;
}

class Folder {
 public:
  Folder() {
    const std::string own = node::telemetry_folder(folder_.path(), ::geteuid());
    require(::mkdir(own.c_str(), 0700) == 0);
    const std::string path = own + "/" + node::kTelemetryPrefix + "stranger";
    file_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    require(file_ >= 0);
  }
  void believe(std::span<const std::byte> bytes) const {
    require(::ftruncate(file_, 0) == 0);
    require(::pwrite(file_, bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()));
    const node::TelemetryListing listing = node::read_telemetry({.directory = folder_.path()});
    require(listing.readings.size() + listing.problems.size() <= 1);
    for (const node::TelemetryReading& reading : listing.readings)
      check(reading.body);
  }

 private:
  mrc::fuzz::OwnFolder folder_;
  int file_ = -1;
};

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Folder folder;
  static node::TelemetryBody body;
  if (size == 0) return 0;
  const auto input = std::as_bytes(std::span(data, size)).subspan(1);
  const std::vector<std::byte> page = page_of(input, data[0]);
  if (node::decode_telemetry(page, body).ok()) check(body);
  folder.believe(page);
  return 0;
}
