#include "api/qp_registry.h"

#include <map>
#include <mutex>
#include <new>
#include <string>
#include <utility>

#include "api/log.h"

namespace mrc::api {
namespace {

struct Registry {
  std::mutex mutex;
  std::map<std::pair<const nic::Device*, std::uint32_t>, QueuePair*> pairs;
};

// Never destroyed: programs destroy queue pairs as late as in their own exit handlers.
Registry& registry() {
  static Registry* const kInstance = new Registry;
  return *kInstance;
}

}  // namespace

void add_to_registry(nic::Device& device, QueuePair& pair) {
  const std::lock_guard lock(registry().mutex);
  registry().pairs[{&device, pair.number()}] = &pair;
}

void remove_from_registry(nic::Device& device, const QueuePair& pair) {
  const std::lock_guard lock(registry().mutex);
  registry().pairs.erase({&device, pair.number()});
}

void log_failure(nic::Device& device, QpNumber number) {
  if (!logs(LogLevel::kWarn)) return;
  const std::lock_guard lock(registry().mutex);
  const auto found = registry().pairs.find({&device, static_cast<std::uint32_t>(number)});
  if (found == registry().pairs.end() || !found->second->first_failure()) return;
  const char* name = device.config().name.c_str();
  try {
    const nic::QpReport report = found->second->nic().report();
    log(LogLevel::kWarn, "%s queue pair 0x%06x: %s", name, static_cast<std::uint32_t>(number),
        report.explanation.c_str());
  } catch (const std::bad_alloc&) {
    log(LogLevel::kWarn, "%s queue pair 0x%06x failed", name, static_cast<std::uint32_t>(number));
  }
}

}  // namespace mrc::api
