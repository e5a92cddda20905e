#include <fcntl.h>
#include <fmt/core.h>
#include <sys/prctl.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "commands/demo/parts.h"
#include "commands/view/assets.h"
#include "commands/view/lab_watch.h"
#include "commands/view/page_server.h"
#include "commands/view/serve.h"
#include "exit_code.h"
#include "os/descriptor.h"

namespace mrc::tool::demo {
namespace {

void tell(int descriptor, const std::string& line) {
  // Whoever does not hear it is gone, and so are we then.
  [[maybe_unused]] const ssize_t written = ::write(descriptor, line.data(), line.size());
}

// Says "PORT URL" or "-" and why not, once, then serves.
[[noreturn]] void be_page(const lab::Directory& directory, const PagePlace& place, int word,
                          pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);
  // Ctrl-C is for the drill, which ends us when it has ended its lab.
  ::setpgid(0, 0);
  // The terminal is the drill's, too.
  const os::Descriptor nowhere(::open("/dev/null", O_WRONLY | O_CLOEXEC));
  for (const int stream : {STDOUT_FILENO, STDERR_FILENO})
    ::dup2(nowhere.get(), stream);
  try {
    view_tool::LineLog log(view_tool::LineLog::kLiveBytes);
    view_tool::LabWatch watch(directory, [&](std::string line) { log.add(std::move(line)); });
    view_tool::PageServer server({.port = place.port, .token = place.token}, log,
                                 [&](const view::Deed& deed) { return watch.act(deed); });
    tell(word, fmt::format("{} {}", server.port(), server.url()));
    ::close(word);
    view_tool::serve(server, {});
  } catch (const std::runtime_error& error) {
    tell(word, fmt::format("-{}", error.what()));
  }
  ::_exit(0);
}

std::string all_words(int descriptor) {
  std::string text;
  std::array<char, 1024> part = {};
  for (;;) {
    const ssize_t got = ::read(descriptor, part.data(), part.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return text;
    text.append(part.data(), static_cast<std::size_t>(got));
  }
}

class LivePage final : public Page {
 public:
  LivePage(const lab::Directory& directory, PagePlace& place);
  ~LivePage() override;
  LivePage(const LivePage&) = delete;
  LivePage& operator=(const LivePage&) = delete;

  const std::string& url() const override { return url_; }
  const std::string& complaint() const override { return complaint_; }

 private:
  pid_t process_ = -1;
  std::string url_;
  std::string complaint_;
};

LivePage::LivePage(const lab::Directory& directory, PagePlace& place) {
  if (!view_tool::has_page()) {
    complaint_ = "this build has none";
    return;
  }
  if (place.token.empty()) place.token = view_tool::fresh_token();
  std::array<int, 2> ends = {};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    complaint_ = std::strerror(errno);
    return;
  }
  const os::Descriptor read_end(ends[0]);
  os::Descriptor write_end(ends[1]);
  std::fflush(nullptr);
  const pid_t self = ::getpid();
  process_ = ::fork();
  if (process_ == 0) be_page(directory, place, write_end.get(), self);
  write_end.close();
  const std::string words = all_words(read_end.get());
  const std::size_t blank = words.find(' ');
  if (process_ < 0 || words.empty() || words.front() == '-' || blank == std::string::npos) {
    complaint_ = words.empty() ? "its process did not start" : words.substr(1);
    return;
  }
  std::from_chars(words.data(), words.data() + blank, place.port);
  url_ = words.substr(blank + 1);
}

LivePage::~LivePage() {
  if (process_ < 0) return;
  ::kill(process_, SIGTERM);
  while (::waitpid(process_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

}  // namespace

std::unique_ptr<Page> make_page_part(const lab::Directory& directory, PagePlace& place) {
  return std::make_unique<LivePage>(directory, place);
}

}  // namespace mrc::tool::demo
