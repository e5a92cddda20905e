#include "commands/check/remote_task.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

namespace mrc::tool::check {
namespace {

using doctor::Finding;
using doctor::Findings;
using doctor::Verdict;

// As ssh and shells end.
constexpr int kUnreachable = 255;
constexpr int kNotFound = 127;
// For a server to end once its client has.
constexpr double kGraceS = 5;

std::chrono::nanoseconds seconds(double count) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(count));
}

std::vector<std::string> words_for(const FleetOptions& options, const Host& host,
                                   const std::vector<std::string>& arguments) {
  std::vector<std::string> words = options.ssh;
  words.push_back(host.address);
  words.insert(words.end(), options.program.begin(), options.program.end());
  words.insert(words.end(), {"check", "--json"});
  words.insert(words.end(), arguments.begin(), arguments.end());
  return words;
}

bool same(const Finding& a, const Finding& b) { return a.what == b.what && a.found == b.found; }

}  // namespace

RemoteProcess::RemoteProcess(const FleetOptions& options, const Host& host,
                             const std::vector<std::string>& arguments, double patience_s)
    : address_(host.address),
      ssh_(options.ssh.front()),
      no_file_(options.no_file),
      patience_s_(patience_s),
      deadline_(Clock::now() + seconds(patience_s)),
      child_(words_for(options, host, arguments)) {}

void RemoteProcess::look() {
  child_.look();
  if (child_.ended() || late_ || Clock::now() < deadline_) return;
  late_ = true;
  child_.kill();
}

void RemoteProcess::add_descriptors(std::vector<pollfd>& list) const {
  list.push_back({child_.output_descriptor(), POLLIN, 0});
  list.push_back({child_.errors_descriptor(), POLLIN, 0});
}

Finding RemoteProcess::explain() const {
  // Banners and warnings come first.
  std::string said = last_shown(child_.errors());
  if (said.empty()) said = last_shown(child_.output());
  if (said.empty()) said = fmt::format("{} ended with {} and no word", ssh_, child_.code());
  if (late_)
    return {Verdict::kBroken, "ssh", fmt::format("no answer for {:.0f} s", patience_s_),
            fmt::format("does `{} {} true` end? --timeout says how long to wait", ssh_, address_)};
  if (child_.code() == kNotFound && said.starts_with(ssh_ + ": cannot be started"))
    return {Verdict::kBroken, "ssh", said, "say with --ssh what goes to a host"};
  if (child_.code() == kUnreachable && no_file_)
    return {Verdict::kBroken, "ssh", "unreachable: " + said,
            fmt::format("there is neither a file {} nor, so it seems, a host", address_)};
  if (child_.code() == kUnreachable)
    return {Verdict::kBroken, "ssh", "unreachable: " + said,
            fmt::format("`{} {} true` must work without a question", ssh_, address_)};
  if (child_.code() == kNotFound)
    return {Verdict::kBroken, "ssh", "not found: " + said,
            "install OpenMRC there, or say with --mrc where it is"};
  return {Verdict::kBroken, "mrc check", fmt::format("exit status {}: {}", child_.code(), said),
          "run `mrc check` there; is it of this version?"};
}

namespace {

// A host by itself.
class HostTask final : public Task {
 public:
  HostTask(const FleetOptions& options, std::size_t host, FleetReport& report)
      : options_(options), host_(host), report_(report) {}

  std::vector<std::size_t> hosts() const override { return {host_}; }
  void start() override {
    process_.emplace(options_, options_.hosts[host_], std::vector<std::string>(),
                     options_.patience_s);
  }
  void add_descriptors(std::vector<pollfd>& list) const override {
    process_->add_descriptors(list);
  }
  void fail(const std::string& why) override {
    report().findings.push_back({Verdict::kBroken, "ssh", why, "fewer at a time: --parallel"});
  }
  bool step() override {
    process_->look();
    if (!process_->ended()) return false;
    std::optional<RemoteAnswer> answer = read_answer(process_->output());
    if (!answer) {
      report().findings.push_back(process_->explain());
      return true;
    }
    report().answered = true;
    report().version = answer->version;
    report().findings = std::move(answer->findings);
    const std::string own = "mrc " MRC_VERSION;
    if (answer->version != own)
      report().findings.push_back({Verdict::kBroken, "version",
                                   fmt::format("{} there, {} here", answer->version, own),
                                   "install one version on all hosts of a job"});
    return true;
  }

 private:
  HostReport& report() { return report_.hosts[host_]; }

  const FleetOptions& options_;
  std::size_t host_;
  FleetReport& report_;
  std::optional<RemoteProcess> process_;
};

// A server, then its client.
class PairTask final : public Task {
 public:
  PairTask(const FleetOptions& options, std::size_t pair, FleetReport& report)
      : options_(options), pair_(pair), report_(report) {}

  std::vector<std::size_t> hosts() const override { return {pair().client, pair().server}; }
  void start() override;
  bool step() override;
  void add_descriptors(std::vector<pollfd>& list) const override {
    server_->add_descriptors(list);
    if (client_) client_->add_descriptors(list);
  }
  void fail(const std::string& why) override {
    pair().findings.push_back({Verdict::kBroken, "ssh", why, "fewer at a time: --parallel"});
  }

 private:
  PairReport& pair() { return report_.pairs[pair_]; }
  const PairReport& pair() const { return report_.pairs[pair_]; }
  const Host& host(std::size_t index) const { return options_.hosts[index]; }
  double patience_s() const { return options_.patience_s + options_.transfer.seconds; }
  std::vector<std::string> common_words(std::uint16_t port) const;
  void start_client(std::uint16_t port);
  void take_answer();

  const FleetOptions& options_;
  std::size_t pair_;
  FleetReport& report_;
  std::optional<RemoteProcess> server_;
  std::optional<RemoteProcess> client_;
  std::chrono::steady_clock::time_point done_at_;
  bool done_ = false;
};

std::vector<std::string> PairTask::common_words(std::uint16_t port) const {
  const TransferOptions& transfer = options_.transfer;
  std::vector<std::string> words = {"-p", std::to_string(port), "--timeout",
                                    fmt::format("{}", transfer.timeout_s)};
  if (!transfer.device.empty()) words.insert(words.end(), {"-d", transfer.device});
  return words;
}

void PairTask::start() {
  std::vector<std::string> words = common_words(options_.transfer.port);
  words.insert(words.end(),
               {"--serve", "--once", "--wait", fmt::format("{:.0f}", std::ceil(patience_s()))});
  server_.emplace(options_, host(pair().server), words, 2 * patience_s());
}

void PairTask::start_client(std::uint16_t port) {
  const TransferOptions& transfer = options_.transfer;
  std::vector<std::string> words = common_words(port);
  words.insert(
      words.end(),
      {"--peer", host(pair().server).place(), "--seconds", fmt::format("{}", transfer.seconds),
       "-q", std::to_string(transfer.qps), "--loss", fmt::format("{}", transfer.most_loss)});
  client_.emplace(options_, host(pair().client), words, patience_s());
}

void PairTask::take_answer() {
  std::optional<RemoteAnswer> answer = read_answer(client_->output());
  if (!answer) {
    pair().findings.push_back(client_->explain());
    return;
  }
  pair().transfer = answer->transfer;
  // What the host said by itself has been told.
  const Findings& told = report_.hosts[pair().client].findings;
  for (Finding& finding : answer->findings) {
    const auto is_this = [&](const Finding& other) { return same(other, finding); };
    if (std::ranges::none_of(told, is_this)) pair().findings.push_back(std::move(finding));
  }
}

bool PairTask::step() {
  server_->look();
  if (done_) {
    if (std::chrono::steady_clock::now() > done_at_ + seconds(kGraceS)) server_->kill();
    return server_->ended();
  }
  if (!client_) {
    if (const auto port = read_port(server_->output())) {
      start_client(*port);
    } else if (server_->ended()) {
      Finding finding = server_->explain();
      finding.what = fmt::format("server on {}", host(pair().server).name);
      pair().findings.push_back(std::move(finding));
      return true;
    }
    return false;
  }
  client_->look();
  if (!client_->ended()) return false;
  take_answer();
  done_ = true;
  done_at_ = std::chrono::steady_clock::now();
  return server_->ended();
}

}  // namespace

std::unique_ptr<Task> make_host_task(const FleetOptions& options, std::size_t host,
                                     FleetReport& report) {
  return std::make_unique<HostTask>(options, host, report);
}

std::unique_ptr<Task> make_pair_task(const FleetOptions& options, std::size_t pair,
                                     FleetReport& report) {
  return std::make_unique<PairTask>(options, pair, report);
}

}  // namespace mrc::tool::check
