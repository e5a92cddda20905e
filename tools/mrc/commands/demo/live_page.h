// The page of a drill's lab, as `mrc view` has it, from a process of its own: the drill neither
// waits for viewers nor lends them its time.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "lab/directory.h"

namespace mrc::tool::demo {

// Where the pages of a demo are. The labs of a demo come one after the other, and a browser that
// has the first one's page open finds the next.
struct PagePlace {
  std::string token;
  std::uint16_t port = 0;  // 0: any
};

class LivePage {
 public:
  // Serves at `place`, whose port it fills in. Where there can be no page, url() is empty and the
  // demo goes on without.
  LivePage(const lab::Directory& directory, PagePlace& place);
  // Ends it.
  ~LivePage();
  LivePage(const LivePage&) = delete;
  LivePage& operator=(const LivePage&) = delete;

  const std::string& url() const { return url_; }
  // Why there is none.
  const std::string& complaint() const { return complaint_; }

 private:
  pid_t process_ = -1;
  std::string url_;
  std::string complaint_;
};

}  // namespace mrc::tool::demo
