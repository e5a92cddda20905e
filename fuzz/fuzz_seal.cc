// Sealed datagrams of strangers, and of a member whose packets are damaged on the way.
//
// The first byte says which: raw bytes as they come, raw bytes under a right header tag, so that
// what lies behind it is reached, or a packet sealed here and then cut, changed and repeated.
#include <algorithm>
#include <memory>
#include <vector>

#include "fuzz/fuzz_support.h"
#include "seal/opener.h"
#include "seal/sealer.h"
#include "wire/byte_order.h"
#include "wire/codec.h"

using mrc::fuzz::Input;
using mrc::fuzz::require;
namespace seal = mrc::seal;
namespace wire = mrc::wire;
using seal::Extent;
using seal::OpenResult;

namespace {

using Bytes = std::vector<std::byte>;

// The secret and the ends of the samples in tests/unit/seal.
seal::KeyRingRef ring() {
  static const seal::KeyRingRef kRing = [] {
    const auto crypto = seal::Crypto::load();
    require(crypto.ok());
    seal::ClusterKey key;
    for (std::size_t i = 0; i < key.secret.bytes.size(); ++i)
      key.secret.bytes[i] = static_cast<std::byte>(i);
    return std::make_shared<const seal::KeyRing>(*crypto.value(), seal::ClusterKeys{key});
  }();
  return kRing;
}

seal::Flow flow() {
  const auto host = [](unsigned number) {
    return seal::gid_of(wire::ipv6_address(0xfc00'0001'0000'0000, number));
  };
  return {host(1), host(2)};
}

// What must hold of anything that was handed in.
OpenResult open(seal::Opener& opener, Bytes datagram, Extent extent, Bytes& transport) {
  const Bytes before = datagram;
  std::span<std::byte> opened;
  const OpenResult result = opener.open(flow().source, datagram, extent, opened);
  require(result < OpenResult::kCount);
  require(opened.empty() == (result != OpenResult::kOpened));
  if (result == OpenResult::kPlain) require(datagram == before);
  if (result == OpenResult::kOpened) {
    require(opened.data() >= datagram.data());
    require(opened.data() + opened.size() <= datagram.data() + datagram.size());
    require(seal::transport_version(opened) == 0);
    require(seal::clear_length(opened) != 0 && seal::clear_length(opened) <= opened.size());
  }
  transport.assign(opened.begin(), opened.end());
  return result;
}

void open_raw(Input& input, Extent extent, bool tagged) {
  const auto rest = input.rest();
  Bytes datagram(rest.begin(), rest.end());
  const std::size_t clear = seal::clear_length(datagram);
  if (tagged && clear != 0 && datagram.size() >= clear + seal::kSealHeaderLength) {
    seal::set_transport_version(datagram, seal::kSealedVersion);
    const auto key = ring()->sealing_key().header_key.span();
    const auto covered = std::span(datagram).first(clear + seal::kTaggedLength);
    wire::store_big_endian(datagram.data() + covered.size(),
                           seal::header_tag(key, flow(), covered));
  }
  seal::Opener opener(ring(), flow().destination);
  Bytes transport;
  const OpenResult first = open(opener, datagram, extent, transport);
  Bytes copy = datagram;
  std::span<std::byte> captured;
  require(seal::open_captured(*ring(), flow(), copy, extent, captured) == first);
  require(std::equal(captured.begin(), captured.end(), transport.begin(), transport.end()));
  const OpenResult second = open(opener, datagram, extent, transport);
  require(first == OpenResult::kOpened ? second == OpenResult::kReplayed : second == first);
}

void open_damaged(Input& input) {
  constexpr std::uint8_t kOpcodes[] = {0xC6, 0xC7, 0xC8, 0xC9, 0xCA, 0xCB, 0xD1, 0xD8, 0xDC};
  const auto opcode = wire::Opcode{kOpcodes[input.u8() % std::size(kOpcodes)]};
  const bool stamped = wire::is_write(opcode) && (input.u8() & 1) != 0;
  Bytes header(wire::header_length(opcode, stamped));
  header[0] = static_cast<std::byte>(opcode);
  header[8] = stamped ? std::byte{0x10} : std::byte{0};
  const std::uint16_t where = input.u16();
  const auto change = static_cast<std::byte>(input.u8());
  const std::uint16_t cut = input.u16();
  const auto payload = input.rest();

  seal::Sealer sealer(ring(), flow());
  Bytes sealed(seal::Sealer::sealed_length(header.size(), payload.size(), 0));
  require(sealer.seal(header, {&payload, 1}, 0, sealed) == sealed.size());
  Bytes damaged = sealed;
  damaged[where % damaged.size()] ^= change;
  damaged.resize(damaged.size() - cut % (damaged.size() + 1));

  seal::Opener opener(ring(), flow().destination);
  Bytes transport;
  if (damaged != sealed) {
    require(open(opener, damaged, Extent::kWhole, transport) != OpenResult::kOpened);
    require(opener.chains() == 0);
  }
  require(open(opener, sealed, Extent::kWhole, transport) == OpenResult::kOpened);
  require(std::equal(header.begin(), header.end(), transport.begin()));
  require(std::equal(payload.begin(), payload.end(), transport.begin() + header.size(),
                     transport.end()));
  require(open(opener, sealed, Extent::kWhole, transport) == OpenResult::kReplayed);
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Input input(data, size);
  const unsigned choice = input.u8();
  if ((choice & 1) != 0) {
    open_damaged(input);
  } else {
    open_raw(input, (choice & 2) != 0 ? Extent::kTrimmed : Extent::kWhole, (choice & 4) != 0);
  }
  return 0;
}
