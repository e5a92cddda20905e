// The sending engine against a hostile receiver and a hostile network.
#include "fuzz/engine_harness.h"

namespace mrc::fuzz {
namespace {

using enum Action;
constexpr std::array kMenu{kExchange,  kDeliver,   kDeliver,   kPull,          kPull,
                           kWait,      kTimer,     kPostSend,  kPostSend,      kPostSend,
                           kForgeSack, kForgeSack, kForgeSack, kForgeNack,     kForgeNack,
                           kForgeAck,  kForgeAck,  kLose,      kForgeOther,    kPort,
                           kDeny,      kFail,      kReconnect, kEndpointProbe, kPostReceive};

}  // namespace
}  // namespace mrc::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  mrc::fuzz::Input in(data, size);
  mrc::fuzz::EngineHarness(in, 0).run(mrc::fuzz::kMenu);
  return 0;
}
