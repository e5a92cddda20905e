#include "strangers/keys.h"

#include <array>
#include <limits>
#include <set>
#include <vector>

#include "base/prng.h"
#include "core/endpoint.h"
#include "support/engine_driver.h"

namespace mrc::strangers {
namespace {

constexpr Address kVictim{0, 1};
constexpr Address kPeer{0, 2};
constexpr QpNumber kQp{0x300};
constexpr ProtectionDomain kOurs{1};
constexpr ProtectionDomain kTheirs{2};
constexpr std::uint32_t kLength = 1 << 20;  // of each region
constexpr std::uint32_t kMtu = 1024;
constexpr unsigned kRegions = 32;  // of each sort
constexpr unsigned kBetweenAnswers = 64;

enum class Misuse : std::uint8_t {
  kRandom,
  kBefore,
  kBehind,
  kWraps,
  kNoRight,
  kOtherDomain,
  kWithdrawn,
  kCount,
};
constexpr std::array<const char*, static_cast<std::size_t>(Misuse::kCount)> kMisuses = {
    "random key",
    "live key, bytes before",
    "live key, bytes behind",
    "live key, wraps round",
    "live key, no right",
    "live key, another domain",
    "withdrawn key"};

void must(const Status& status) {
  if (!status.ok()) broken(std::string("set-up: ") + status.what());
}

// An engine that is only written to, with regions of all sorts.
class Keyholder : public test::EngineWorld {
 public:
  explicit Keyholder(std::uint64_t seed) : prng_(seed), keys_(seed + 1) {
    const std::array<core::EvEntry, 1> paths = {{{0x1000, PortId{1}}}};
    profile_ = core::EvProfile::create(paths).value();
    must(driver_.start({.address = kVictim, .max_regions = 4 * kRegions}));
    for (unsigned i = 0; i < kRegions; ++i) {
      add(live_, i, kOurs, true);
      add(no_right_, i, kOurs, false);
      add(other_domain_, i, kTheirs, true);
      add(withdrawn_, i, kOurs, true);
      must(engine().invalidate_memory(withdrawn_.back()));
    }
    must(engine().create_qp({.number = kQp, .domain = kOurs}));
    must(engine().init_qp(kQp, {.ev_profile = &profile_}));
    must(engine().ready_to_receive(kQp, {.remote = kPeer, .remote_qp = kQp, .path_mtu = kMtu}));
    must(engine().ready_to_send(0, kQp, {}));
  }

  void attempt(Misuse misuse) {
    wire::Packet packet;
    packet.bth.opcode = wire::Opcode::kWriteOnly;
    packet.bth.destination = kQp;
    wire::Write write{.message_length = 1 + prng_.below(kMtu)};
    aim(misuse, write);
    packet.body = write;
    const core::Arrival arrival{
        .source = kPeer, .entropy = 0x1000, .payload_length = write.message_length};
    driver_.deliver(now_, arrival, packet, [](const core::RxResult& result) {
      if (result.placement.length != 0) broken("a key opened memory that it is not for");
      if (result.drop != DropReason::kAccessDenied) broken("a wrong key was not refused as such");
    });
    now_ += 100;
    if (++attempts_ % kBetweenAnswers == 0) answer();
  }

  Misuse next_misuse() {
    if (prng_.below(8) != 0) return Misuse::kRandom;
    return static_cast<Misuse>(1 + prng_.below(static_cast<std::uint32_t>(Misuse::kCount) - 1));
  }

  // The world of the driver: answers leave, and nobody reads them.
  PortMask free_ports() { return PortMask::first(1); }
  void send(const core::TxPacket& /*packet*/, PortMask /*free*/) {}

  void finish() {
    const core::QpStatus status = engine().query_qp(kQp).value();
    if (status.state != core::QpState::kReadyToSend) broken("a wrong key ended a queue pair");
    if (status.expected_psn != Psn{}) broken("a wrong key took the place of a packet");
  }

 private:
  core::Endpoint& engine() { return driver_.engine(); }
  static std::uint64_t base(unsigned region) {
    return 0x10'0000'0000 + std::uint64_t{region} * 4 * kLength;
  }

  void add(std::vector<Rkey>& keys, unsigned region, ProtectionDomain domain, bool writable) {
    const core::MemoryRegion memory{
        .address = base(region), .length = kLength, .domain = domain, .remote_write = writable};
    auto added = engine().register_memory(memory, keys_);
    must(added.status());
    keys.push_back(added.value());
    used_.insert(static_cast<std::uint32_t>(added.value()));
  }

  void aim(Misuse misuse, wire::Write& write) {
    const unsigned region = prng_.below(kRegions);
    const std::uint32_t length = write.message_length;
    write.key = live_[region];
    write.address = base(region) + prng_.below(kLength - length + 1);
    switch (misuse) {
      case Misuse::kRandom:
        do {
          write.key = Rkey{prng_.next32()};
        } while (used_.contains(static_cast<std::uint32_t>(write.key)) ||
                 write.key == core::kSendKey);
        break;
      case Misuse::kBefore:
        write.address = base(region) - 1 - prng_.below(2 * length);
        break;
      case Misuse::kBehind:
        write.address = base(region) + kLength - length + 1 + prng_.below(2 * length);
        break;
      case Misuse::kWraps:
        write.address = std::numeric_limits<std::uint64_t>::max() - prng_.below(length);
        break;
      case Misuse::kNoRight:
        write.key = no_right_[region];
        break;
      case Misuse::kOtherDomain:
        write.key = other_domain_[region];
        break;
      default:
        write.key = withdrawn_[region];
        break;
    }
  }

  void answer() {
    driver_.pump(now_);
    if (driver_.timer_due(now_)) driver_.fire(now_);
  }

  Prng prng_;
  test::SeededKeys keys_;
  core::EvProfile profile_;
  test::EngineDriver<Keyholder> driver_{*this};
  std::vector<Rkey> live_, no_right_, other_domain_, withdrawn_;
  std::set<std::uint32_t> used_;
  TimeNs now_ = kSecondNs;
  std::uint64_t attempts_ = 0;
};

}  // namespace

void try_keys(std::uint64_t packets, std::uint64_t seed, Tally& tally) {
  Keyholder holder(seed);
  std::array<std::uint64_t, kMisuses.size()> counts{};
  for (std::uint64_t i = 0; i < packets; ++i) {
    const Misuse misuse = holder.next_misuse();
    holder.attempt(misuse);
    ++counts[static_cast<std::size_t>(misuse)];
  }
  holder.finish();
  for (std::size_t i = 0; i < counts.size(); ++i)
    tally.rows.push_back({kMisuses[i], counts[i]});
}

}  // namespace mrc::strangers
