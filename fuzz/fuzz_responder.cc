// The receiving engine against a hostile sender and a hostile network.
#include "fuzz/engine_harness.h"

namespace mrc::fuzz {
namespace {

using enum Action;
constexpr std::array kMenu{kExchange,   kExchange,   kDeliver,     kDeliver,    kPull,
                           kWait,       kTimer,      kPostSend,    kPostSend,   kPostReceive,
                           kForgeWrite, kForgeWrite, kForgeWrite,  kForgeOther, kForgeWrite,
                           kLose,       kMemory,     kWindow,      kPort,       kDeny,
                           kFail,       kReconnect,  kPostReceive, kForgeSack,  kForgeAck};

}  // namespace
}  // namespace mrc::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  mrc::fuzz::Input in(data, size);
  mrc::fuzz::EngineHarness(in, 1).run(mrc::fuzz::kMenu);
  return 0;
}
