// The control socket of a lab: requests of a user who writes them himself, separated by zeros, to a
// lab that runs. Whatever they are, the lab answers, and is there for the next; and what it says of
// itself is understood. The first byte odd: the input is such an answer.
#include <algorithm>
#include <memory>
#include <thread>

#include "fuzz/own_folder.h"
#include "fuzz/text_support.h"
#include "lab/daemon.h"
#include "launch/lab_status.h"

using mrc::fuzz::require;
namespace lab = mrc::lab;

namespace {

constexpr std::size_t kMostRequests = 8;
constexpr unsigned kHosts = 4;

class RunningLab {
 public:
  RunningLab() : directory_(base_.path(), "f") {
    require(directory_.lock());
    directory_.set_up(kHosts);
    lab::ClusterOptions options;
    options.topology.hosts = kHosts;
    options.topology.planes = 2;
    options.topology.t0 = 2;
    options.topology.t1 = 2;
    daemon_ = std::make_unique<lab::Daemon>(directory_, options);
    thread_ = std::thread([this] { daemon_->run(); });
  }
  ~RunningLab() {
    daemon_->stop();
    thread_.join();
    daemon_.reset();
    directory_.remove();
  }
  RunningLab(const RunningLab&) = delete;
  RunningLab& operator=(const RunningLab&) = delete;

  lab::ControlClient call() const {
    lab::ControlClient client;
    require(client.connect(directory_.control_path()));
    return client;
  }
  std::string capture_file() const { return base_ / "capture"; }

 private:
  mrc::fuzz::OwnFolder base_;
  lab::Directory directory_;
  std::unique_ptr<lab::Daemon> daemon_;
  std::thread thread_;
};

// Captures go to our own file, and the lab goes on.
void ask(lab::ControlClient& client, const RunningLab& running, const std::string& request) {
  std::vector<std::string> words = lab::parse_request(request);
  if (words[0].empty() || words[0] == "down") return;
  if (words[0] == "capture" && words.size() > 2) words[2] = running.capture_file();
  const lab::Reply reply = client.ask(words);
  if (!reply.ok) mrc::fuzz::require_one_line(reply.text);
  require(reply.text != "the lab went away" && reply.text != "the lab does not answer");
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const RunningLab running;
  if (size == 0) return 0;
  const std::string text = mrc::fuzz::text_of(data + 1, std::min<std::size_t>(size - 1, 4'096));
  if (data[0] % 2 == 1) {
    mrc::tool::parse_status(text);
    return 0;
  }
  lab::ControlClient client = running.call();
  std::size_t from = 0;
  for (std::size_t i = 0; i < kMostRequests && from <= text.size(); ++i) {
    const std::size_t end = std::min(text.find('\0', from), text.size());
    ask(client, running, text.substr(from, end - from));
    from = end + 1;
  }
  for (const std::string& line : lab::parse_request(client.ask({"status"}).text))
    require(!line.starts_with("program") || std::ranges::count(line, '\t') == 3);
  const mrc::tool::LabStatus status = mrc::tool::ask_status(client);
  require(status.hosts == kHosts && status.planes.size() == 2);
  require(client.ask({"heal", "all"}).ok);
  return 0;
}
