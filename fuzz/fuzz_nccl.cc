// What a stranger may send to the TCP port of the NCCL plug-in, and a handle from another program.
#include <algorithm>
#include <array>

#include "fuzz/fuzz_support.h"
#include "plugins/nccl/messages.h"

using mrc::fuzz::Input;
using mrc::fuzz::require;
namespace nccl = mrc::nccl;

namespace {

// The magic number and the version, without which nothing else is looked at.
template <std::size_t kSize>
std::array<std::byte, kSize> filled(Input& input, const char (&magic)[5], bool headed) {
  std::array<std::byte, kSize> bytes{};
  const auto given = input.take(kSize);
  std::copy(given.begin(), given.end(), bytes.begin());
  if (!headed) return bytes;
  for (std::size_t i = 0; i < 4; ++i)
    bytes[i] = static_cast<std::byte>(magic[i]);
  bytes[4] = std::byte{nccl::kProtocolVersion};
  bytes[5] = std::byte{0};
  return bytes;
}

void check_message(Input& input, bool headed) {
  const auto bytes = filled<nccl::Message::kBytes>(input, "MRCM", headed);
  const auto message = nccl::decode_message(bytes);
  require(nccl::explain_bad_message(bytes) != nullptr);
  if (!message) return;
  require(message->qp_number <= 0xFF'FFFF && message->first_psn <= 0xFF'FFFF);
  require(std::all_of(message->name.begin(), message->name.end(),
                      [](char c) { return c >= ' ' && c <= '~'; }));
  const nccl::MessageBytes written = nccl::encode(*message);
  const auto again = nccl::decode_message(written);
  require(again && nccl::encode(*again) == written && again->kind == message->kind);
}

void check_handle(Input& input, bool headed) {
  const auto bytes = filled<nccl::kHandleBytes>(input, "MRCH", headed);
  const auto handle = nccl::decode_handle(bytes);
  if (!handle) return;
  require(handle->port != 0 && !handle->addresses.empty());
  require(handle->addresses.size() <= nccl::Handle::kMaxAddresses);
  std::array<std::byte, nccl::kHandleBytes> written{};
  nccl::encode(*handle, written);
  const auto again = nccl::decode_handle(written);
  require(again && again->cookie == handle->cookie && again->port == handle->port &&
          again->addresses.size() == handle->addresses.size());
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Input input(data, size);
  const std::uint8_t mode = input.u8();
  const bool headed = (mode & 2) != 0;
  if ((mode & 1) != 0)
    check_handle(input, headed);
  else
    check_message(input, headed);
  return 0;
}
