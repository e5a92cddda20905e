// mrc key: the secret that the nodes of a cluster seal their traffic with.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "command.h"
#include "commands/key/open_capture.h"
#include "failure.h"
#include "seal/crypto.h"
#include "seal/key_file.h"
#include "seal/key_ring.h"

namespace mrc::tool {
namespace {

class KeyCommand final : public Command {
 public:
  CLI::App* declare(CLI::App& program) override;
  ExitCode run() override;

 private:
  void declare_rotate(CLI::App& app);
  void run_new() const;
  void run_check() const;
  void run_rotate() const;
  void declare_open(CLI::App& app);
  void run_open() const;

  CLI::App* new_ = nullptr;
  CLI::App* check_ = nullptr;
  CLI::App* rotate_ = nullptr;
  CLI::App* open_ = nullptr;
  std::string file_;
  std::string capture_;
  std::string output_;
  bool promote_ = false;
  bool drop_ = false;
};

CLI::App* KeyCommand::declare(CLI::App& program) {
  CLI::App* app = program.add_subcommand("key", "Cluster keys, which sealed traffic is made with");
  app->require_subcommand(1);
  new_ = app->add_subcommand("new", "Write a new key to a file that does not exist yet");
  new_->footer(
      "All nodes of a cluster need the same file: copy it over a channel you trust, with its mode\n"
      "(scp -p FILE node:FILE). Whoever can read it is a member of the cluster.");
  check_ = app->add_subcommand("check", "Say whether a key file can be used, and what is in it");
  check_->footer(
      "Prints a line for each key: its number, its fingerprint (the first 8 digits of the SHA-256\n"
      "of the secret, equal on all nodes), and what it is used for; never the key itself.\n"
      "Exit code 2 when the file cannot be read, is open to others, or holds no right key.");
  declare_rotate(*app);
  declare_open(*app);
  for (CLI::App* command : {new_, check_, rotate_, open_})
    command->add_option("file", file_, "Key file")->required();
  open_->add_option("capture", capture_, "Capture with sealed packets, pcapng or pcap")->required();
  open_->add_option("output", output_, "The same with these packets opened; a new file")
      ->required();
  return app;
}

void KeyCommand::declare_rotate(CLI::App& app) {
  rotate_ = app.add_subcommand("rotate", "Replace the key by a new one, in three steps");
  CLI::Option* promote =
      rotate_->add_flag("--promote", promote_, "Second step: seal with the new key");
  CLI::Option* drop = rotate_->add_flag("--drop", drop_, "Third step: remove the old key");
  promote->excludes(drop);
  rotate_->footer(
      "No traffic is lost when every node has taken a step before any node takes the next:\n"
      "  1. mrc key rotate FILE             adds a new key; all nodes learn to open with it\n"
      "  2. mrc key rotate --promote FILE   all nodes seal with it, and still open with the old\n"
      "  3. mrc key rotate --drop FILE      the old key is gone\n"
      "Run each step on one node, then copy FILE to all others (scp -p), and let every process\n"
      "read it. `mrc key check FILE` prints the same on every node then.");
}

void KeyCommand::declare_open(CLI::App& app) {
  open_ = app.add_subcommand("open", "Make the sealed packets of a capture readable");
  open_->footer(
      "Writes the capture again with each sealed packet as if it had been sent plain, for\n"
      "Wireshark, `mrc dialect detect` and others. Times and all else stay as they are. OUTPUT\n"
      "holds what was secret and is readable for its owner alone.\n"
      "Exit code 1 when there are sealed packets and none of them opens with the keys of FILE.");
}

const seal::Crypto& load_crypto() {
  const auto loaded = seal::Crypto::load();
  if (!loaded.ok()) throw Failure(loaded.status().what());
  return *loaded.value();
}

seal::ClusterKeys load_keys(const std::string& file) {
  seal::KeyFileResult result = seal::load_key_file(file);
  if (!result.ok()) throw Failure(result.error, FailureKind::kUsage);
  return result.keys;
}

void require_done(const std::string& error) {
  if (!error.empty()) throw Failure(error, FailureKind::kUsage);
}

void print_keys(const seal::ClusterKeys& keys) {
  const seal::Crypto& crypto = load_crypto();
  for (const seal::ClusterKey& key : keys) {
    fmt::print("key {} {} {}\n", static_cast<unsigned>(key.id), seal::fingerprint(crypto, key),
               key == keys.front() ? "seals and opens" : "opens");
  }
}

void KeyCommand::run_new() const {
  load_crypto();
  const seal::ClusterKeys keys = {seal::draw_cluster_key(seal::KeyId{0})};
  require_done(seal::create_key_file(file_, keys));
  print_keys(keys);
  fmt::print("written to {}; copy it to all nodes of the cluster: scp -p\n", file_);
}

void KeyCommand::run_check() const { print_keys(load_keys(file_)); }

void KeyCommand::run_rotate() const {
  using enum seal::RotationStep;
  load_crypto();
  seal::ClusterKeys keys = load_keys(file_);
  const seal::RotationStep step = promote_ ? kPromote : drop_ ? kDrop : kAdd;
  const std::string error = seal::rotate_keys(keys, step);
  if (!error.empty()) throw Failure(file_ + ": " + error, FailureKind::kUsage);
  require_done(seal::replace_key_file(file_, keys));
  print_keys(keys);
  if (step == kDrop) {
    fmt::print("copy {} to all nodes: scp -p; the old key is of no use any more\n", file_);
  } else {
    fmt::print(
        "copy {0} to all nodes: scp -p; when every process has read it: mrc key rotate {1} {0}\n",
        file_, step == kAdd ? "--promote" : "--drop");
  }
}

void KeyCommand::run_open() const {
  const seal::KeyRing ring(load_crypto(), load_keys(file_));
  const OpenedCapture counts = open_capture(ring, capture_, output_);
  if (!counts.damage.empty()) fmt::print(stderr, "mrc key open: {}: {}\n", capture_, counts.damage);
  if (counts.sealed > 0 && counts.opened == 0) {
    throw Failure(fmt::format("none of {} sealed packets in {} opens with the keys in {}",
                              counts.sealed, capture_, file_));
  }
  fmt::print("{} frames, {} sealed, {} opened\n", counts.frames, counts.sealed, counts.opened);
}

ExitCode KeyCommand::run() {
  const char* name = new_->parsed()      ? "new"
                     : check_->parsed()  ? "check"
                     : rotate_->parsed() ? "rotate"
                                         : "open";
  try {
    if (new_->parsed()) run_new();
    if (check_->parsed()) run_check();
    if (rotate_->parsed()) run_rotate();
    if (open_->parsed()) run_open();
    return ExitCode::kOk;
  } catch (const Failure& failure) {
    fmt::print(stderr, "mrc key {}: {}\n", name, failure.what());
    return exit_code_of(failure);
  }
}

}  // namespace

std::unique_ptr<Command> make_key_command() { return std::make_unique<KeyCommand>(); }

}  // namespace mrc::tool
