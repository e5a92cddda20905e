// The page of a drill's lab, as `mrc view` has it, from a process of its own: the drill neither
// waits for viewers nor lends them its time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "lab/directory.h"

namespace mrc::tool::demo {

// Where the pages of a demo are. The labs of a demo come one after the other, and a browser that
// has the first one's page open finds the next.
struct PagePlace {
  std::string token;
  std::uint16_t port = 0;  // 0: any
};

class Page {
 public:
  // Ends it.
  virtual ~Page() = default;

  // Empty where there can be no page; the demo goes on without.
  virtual const std::string& url() const = 0;
  // Why there is none.
  virtual const std::string& complaint() const = 0;
};

// Serves at `place`, whose port it fills in. Null in a build that lacks it (cmake/MrcFew.cmake).
std::unique_ptr<Page> make_page_part(const lab::Directory& directory, PagePlace& place);

}  // namespace mrc::tool::demo
