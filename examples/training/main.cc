// mrc-training: data-parallel training over MRC, small but real.
//
// Every rank has the same network and its own share of each batch. Gradients are summed by a ring
// all-reduce, whose order of addition never changes: losses are the same to the last bit, whatever
// happens to the network underneath. See README.md beside this file.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <thread>

#include "collective/collectives.h"
#include "collective/communicator.h"
#include "collective/failure.h"
#include "collective/placement_flags.h"
#include "network.h"
#include "os/interrupt.h"
#include "samples.h"

namespace training {
namespace {

using mrc::collective::Collectives;
using mrc::collective::Communicator;
using mrc::collective::CommunicatorOptions;
using mrc::collective::Element;
using mrc::collective::Failure;
using mrc::collective::FailureKind;
using mrc::collective::Memory;
using mrc::collective::PlacementRequest;
using mrc::os::Interrupt;

constexpr unsigned kClasses = 10;
constexpr unsigned kInputs = 64;
constexpr unsigned kBarColumns = 40;

struct Settings {
  std::uint64_t steps = 200;
  unsigned batch = 16;  // samples of each rank in a step
  unsigned hidden = 128;
  double rate = 0.2;
  std::uint64_t seed = 1;
  unsigned pace_ms = 0;
  unsigned show_every = 10;
  bool json = false;
};

class Trainer {
 public:
  Trainer(const Settings& settings, Communicator& communicator)
      : settings_(settings),
        communicator_(communicator),
        collectives_(communicator),
        samples_(kInputs, kClasses, settings.seed),
        network_({kInputs, settings.hidden, settings.hidden / 2, kClasses}, settings.seed + 1),
        shared_(communicator.device(), (network_.parameter_count() + 1) * sizeof(float)) {
    communicator.on_look([] {
      if (Interrupt::raised()) throw Failure("interrupted", FailureKind::kInterrupted);
    });
  }

  void run() {
    if (communicator_.rank() == 0 && !settings_.json)
      fmt::print("{} ranks, {} parameters, {} samples a step\n", communicator_.ranks(),
                 network_.parameter_count(), settings_.batch * communicator_.ranks());
    for (std::uint64_t step = 0; step < settings_.steps; ++step) {
      const auto next =
          std::chrono::steady_clock::now() + std::chrono::milliseconds(settings_.pace_ms);
      show(step, train_step(step));
      std::this_thread::sleep_until(next);
    }
    compare_parameters();
  }

 private:
  // One step on all ranks; the mean loss of the whole batch.
  float train_step(std::uint64_t step) {
    const std::span<float> sums = shared_.as<float>();
    std::fill(sums.begin(), sums.end(), 0.0F);
    const std::span<float> gradient = sums.first(network_.parameter_count());
    float& loss = sums.back();
    std::vector<float> point(kInputs);
    const std::uint64_t first =
        (step * communicator_.ranks() + communicator_.rank()) * settings_.batch;
    for (unsigned i = 0; i < settings_.batch; ++i) {
      const unsigned label = samples_.make(first + i, point);
      loss += network_.learn(point, label, gradient);
    }
    collectives_.all_reduce(shared_, Element::kFloat, sums.size_bytes());
    const auto all = static_cast<float>(settings_.batch * communicator_.ranks());
    network_.step(gradient, static_cast<float>(settings_.rate) / all);
    return loss / all;
  }

  // Rank 0 tells; the bits are for those who compare.
  void show(std::uint64_t step, float loss) const {
    if (communicator_.rank() != 0) return;
    const auto bits = std::bit_cast<std::uint32_t>(loss);
    if (settings_.json) {
      fmt::print("{{\"step\":{},\"loss\":{:.7g},\"bits\":\"{:08x}\"}}\n", step, loss, bits);
    } else if (step % settings_.show_every == 0 || step + 1 == settings_.steps) {
      const float share = std::clamp(loss / std::log(static_cast<float>(kClasses)), 0.0F, 1.0F);
      const auto columns = static_cast<std::size_t>(share * kBarColumns);
      fmt::print("step {:5}  loss {:.6f}  {:08x}  {}\n", step, loss, bits,
                 std::string(columns, '#'));
    }
    std::fflush(stdout);
  }

  // All ranks must have come to the same network.
  void compare_parameters() {
    std::uint64_t sum = 0xcbf2'9ce4'8422'2325;
    for (const float value : network_.parameters())
      sum = (sum ^ std::bit_cast<std::uint32_t>(value)) * 0x100'0000'01b3;
    const auto all = static_cast<std::uint64_t>(collectives_.sum(static_cast<std::int64_t>(sum)));
    if (all != sum * communicator_.ranks())
      throw Failure("the ranks have come to different networks", FailureKind::kWrongData);
    if (communicator_.rank() != 0) return;
    if (settings_.json) {
      fmt::print("{{\"parameters\":\"{:016x}\",\"ranks\":{}}}\n", sum, communicator_.ranks());
    } else {
      fmt::print("all ranks have the same network, {:016x}\n", sum);
    }
  }

  const Settings& settings_;
  Communicator& communicator_;
  Collectives collectives_;
  Samples samples_;
  Network network_;
  Memory shared_;  // gradient, and the loss behind it
};

void declare(CLI::App& app, Settings& settings, PlacementRequest& place,
             CommunicatorOptions& communicator) {
  app.add_option("--steps", settings.steps, "Steps of training")->capture_default_str();
  app.add_option("--batch", settings.batch, "Samples of each rank in a step")
      ->check(CLI::Range(1, 65'536))
      ->capture_default_str();
  app.add_option("--hidden", settings.hidden, "Width of the first hidden layer; the next has half")
      ->check(CLI::Range(2, 8'192))
      ->capture_default_str();
  app.add_option("--rate", settings.rate, "Learning rate")->capture_default_str();
  app.add_option("--seed", settings.seed, "The same seed gives the same losses")
      ->capture_default_str();
  app.add_option("--pace-ms", settings.pace_ms, "Least time of a step, as if it computed longer");
  app.add_option("--show-every", settings.show_every, "Steps from one line to the next")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  app.add_flag("--json", settings.json, "A line of JSON for each step");
  app.add_option("-d,--ib-dev", communicator.device.name, "Device; the first one by default");
  app.add_option("--timeout", communicator.timeout_s, "Give up when nothing moves for so long")
      ->type_name("SECONDS")
      ->check(CLI::Range(0.1, 86'400.0))
      ->capture_default_str();
  mrc::collective::declare_placement(app, place);
}

int train(const Settings& settings, const CommunicatorOptions& options) {
  const Interrupt interrupt;
  Communicator communicator(options);
  try {
    Trainer(settings, communicator).run();
    communicator.finish();
  } catch (const Failure& failure) {
    communicator.tell_failure(failure.what());
    throw;
  }
  return 0;
}

int run(int argc, char** argv) {
  CLI::App app{"Data-parallel training over MRC.", "mrc-training"};
  Settings settings;
  PlacementRequest place;
  CommunicatorOptions communicator;
  declare(app, settings, place, communicator);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);
    fmt::print(stderr, "mrc-training: {} (try: mrc-training --help)\n", error.what());
    return static_cast<int>(FailureKind::kUsage);
  }
  try {
    communicator.place = mrc::collective::resolve(place);
    return train(settings, communicator);
  } catch (const Failure& failure) {
    fmt::print(stderr, "mrc-training: {}\n", failure.what());
    return static_cast<int>(failure.kind());
  }
}

}  // namespace
}  // namespace training

int main(int argc, char** argv) {
  try {
    return training::run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "mrc-training: %s\n", error.what());
    return 1;
  }
}
