#include "core/cc/congestion.h"

#include "core/cc/none.h"
#include "core/cc/nscc.h"

namespace mrc::core {

std::unique_ptr<CongestionController> make_controller(const CcProfile& profile,
                                                      const CcEnvironment& environment) {
  switch (profile.algorithm) {
    case CcAlgorithm::kNone:
      return std::make_unique<NoCongestionControl>(profile.nscc.base_rtt_ns);
    case CcAlgorithm::kNscc:
      break;
  }
  return std::make_unique<Nscc>(profile, environment);
}

}  // namespace mrc::core
