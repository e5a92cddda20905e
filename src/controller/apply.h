// Takes a device from one setup to another, or leaves it as it was.
#pragma once

#include "controller/session.h"
#include "controller/setup_file.h"

namespace mrc::controller {

struct Applied {
  unsigned created = 0;
  unsigned removed = 0;
  unsigned kept = 0;
};

// A failure that leaves the device other than it was before; the message says in what.
class DeviceChanged : public CtlError {
 public:
  using CtlError::CtlError;
};

// CtlError with the place in the file when `to` wants an id that somebody else has taken.
void refuse_taken(const Session& session, const Setup& from, const Setup& to);

// `from` is what was set before by the same hand; everything else on the device is left alone, and
// an id that is taken by it is an error. Profiles that are the same in both stay as they are;
// others are removed and created anew, which is refused while somebody uses them. EVs that `to`
// denies are denied whatever they were; those that only `from` denied are allowed again. An id that
// `from` has in another form as well, or only in another, stays if the device has just what `to`
// wants. What `from` says of EVs and ports that are not there does not matter.
//
// CtlError or InputError with the place in the file. What had been done by then is undone, to what
// the device had rather than to what `from` says; DeviceChanged when some of it could not be.
Applied apply_setup(const Session& session, const Setup& from, const Setup& to);

}  // namespace mrc::controller
