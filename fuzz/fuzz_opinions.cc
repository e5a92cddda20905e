// The files in which processes of all users of a host say what they think of EVs: one record as it
// comes, with a right checksum, and a whole file of records among the users of a device.
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "fuzz/fuzz_support.h"
#include "fuzz/own_folder.h"
#include "node/node_state.h"
#include "node/opinion_record.h"
#include "wire/byte_order.h"
#include "wire/icrc.h"

using mrc::fuzz::require;
namespace node = mrc::node;
namespace wire = mrc::wire;

namespace {

constexpr std::uint64_t kProfile = 1;

node::OpinionBytes with_sum(node::OpinionBytes bytes) {
  constexpr std::size_t kSumAt = node::kOpinionBytes - 4;
  const std::uint32_t sum =
      ~wire::crc32_update(0xFFFF'FFFF, std::span<const std::byte>(bytes).first(kSumAt));
  wire::store_big_endian(bytes.data() + kSumAt, sum);
  return bytes;
}

void check(const node::OpinionBytes& bytes) {
  const auto record = node::decode_opinion(bytes);
  if (!record) return;
  require(record->opinion.state <= mrc::core::EvState::kDenied);
  require(static_cast<unsigned>(record->opinion.port) <= mrc::kMaxPorts);
  const auto again = node::decode_opinion(node::encode_opinion(*record));
  require(again && again->profile_id == record->profile_id);
  require(again->opinion.value == record->opinion.value);
  require(again->opinion.port == record->opinion.port);
  require(again->opinion.state == record->opinion.state);
}

// A device with a profile of two EVs, and a stranger's file among its users.
class Device {
 public:
  Device() {
    std::string error;
    state_ = node::NodeState::open(folder_.path(), error);
    require(state_ != nullptr);
    require(state_->update([](node::NodeSnapshot& s) {
      node::NodeEvProfile& profile = s.ev_profiles[kProfile];
      profile.evs.resize(2);
      profile.evs[0].port = mrc::PortId{1};
      profile.evs[1].port = mrc::PortId{2};
      return 0;
    }) == 0);
    const std::string path = folder_ / "users/opinions-stranger";
    file_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    require(file_ >= 0);
    // While it is locked, its process lives.
    require(::flock(file_, LOCK_EX) == 0);
  }

  void believe(std::span<const std::byte> bytes) {
    require(::ftruncate(file_, 0) == 0);
    require(::pwrite(file_, bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()));
    const auto opinions = state_->ev_opinions(kProfile);
    require(opinions.size() <= 2);  // of EVs that the profile has
    for (const auto& opinion : opinions) {
      require(opinion.value == wire::EvValue{});
      require(opinion.port == mrc::PortId{1} || opinion.port == mrc::PortId{2});
    }
  }

 private:
  mrc::fuzz::OwnFolder folder_;
  std::unique_ptr<node::NodeState> state_;
  int file_ = -1;
};

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static Device device;
  const auto input = std::as_bytes(std::span(data, std::min<std::size_t>(size, 1'024)));
  std::vector<std::byte> file;
  for (std::size_t at = 0; at < input.size(); at += node::kOpinionBytes) {
    const auto part = input.subspan(at, std::min(node::kOpinionBytes, input.size() - at));
    node::OpinionBytes bytes{};
    std::copy(part.begin(), part.end(), bytes.begin());
    check(bytes);
    bytes = with_sum(bytes);
    check(bytes);
    file.insert(file.end(), bytes.begin(), bytes.end());
  }
  file.insert(file.end(), input.begin(), input.end());  // among what has no right sum
  device.believe(file);
  return 0;
}
