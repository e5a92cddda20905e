// The control socket of a lab: requests of a user who writes them himself, separated by zeros, to a
// lab that runs. Whatever they are, the lab answers, and is there for the next; and what it says of
// itself is understood. The first byte odd: the input is such an answer, to `status` and to
// `links`.
#include <algorithm>

#include "fuzz/own_folder.h"
#include "fuzz/text_support.h"
#include "lab/daemon.h"
#include "launch/lab_links.h"
#include "launch/lab_status.h"
#include "support/running_lab.h"

using mrc::fuzz::require;
namespace lab = mrc::lab;

namespace {

constexpr std::size_t kMostRequests = 8;
constexpr unsigned kHosts = 4;

struct OwnLab {
  mrc::fuzz::OwnFolder base;
  mrc::test::RunningLab lab{base.path(), {.planes = 2, .hosts = kHosts, .t0 = 2, .t1 = 2}};
};

// Captures go to our own file, and the lab goes on.
void ask(lab::ControlClient& client, const OwnLab& own, const std::string& request) {
  std::vector<std::string> words = lab::parse_request(request);
  if (words[0].empty() || words[0] == "down") return;
  if (words[0] == "capture" && words.size() > 2) words[2] = own.base / "capture";
  const lab::Reply reply = client.ask(words);
  if (!reply.ok) mrc::fuzz::require_one_line(reply.text);
  require(reply.text != "the lab went away" && reply.text != "the lab does not answer");
}

// Of a lab of another version, or of no lab.
void read_links(const std::string& text) {
  mrc::tool::LabLinks links;
  try {
    links.parse_answer(text);
    links.parse_answer(text);
  } catch (const std::runtime_error& error) {
    mrc::fuzz::require_one_line(error.what());
    return;
  }
  require(links.fabric.has_value());
  for (const auto& link : links.links)
    require(link.number < mrc::tool::LabLinks::kMaxLinks);
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const OwnLab own;
  if (size == 0) return 0;
  const std::string text = mrc::fuzz::text_of(data + 1, std::min<std::size_t>(size - 1, 4'096));
  if (data[0] % 2 == 1) {
    mrc::tool::parse_status(text);
    read_links(text);
    return 0;
  }
  lab::ControlClient client = own.lab.call();
  std::size_t from = 0;
  for (std::size_t i = 0; i < kMostRequests && from <= text.size(); ++i) {
    const std::size_t end = std::min(text.find('\0', from), text.size());
    ask(client, own, text.substr(from, end - from));
    from = end + 1;
  }
  for (const std::string& line : lab::parse_request(client.ask({"status"}).text))
    require(!line.starts_with("program") || std::ranges::count(line, '\t') == 3);
  read_links(client.ask({"links", "0"}).text);
  const mrc::tool::LabStatus status = mrc::tool::ask_status(client);
  require(status.hosts == kHosts && status.planes.size() == 2);
  require(client.ask({"heal", "all"}).ok);
  return 0;
}
