// mrc exporter: the counters of all processes of this host over HTTP, for Prometheus.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>

#include "command.h"
#include "commands/exporter/http_server.h"
#include "commands/exporter/metrics.h"
#include "os/interrupt.h"

namespace mrc::tool {
namespace {

constexpr const char* kOpenMetricsType =
    "application/openmetrics-text; version=1.0.0; charset=utf-8";
constexpr const char* kPrometheusType = "text/plain; version=0.0.4; charset=utf-8";

class ExporterCommand final : public Command {
 public:
  CLI::App* declare(CLI::App& program) override;
  ExitCode run() override;

 private:
  exporter::HttpAnswer answer(const exporter::HttpRequest& request) const;
  std::string scrape(exporter::Format format) const;
  ExitCode serve(const std::string& host, int port);

  std::string listen_ = "127.0.0.1:9477";
  exporter::Limits limits_;
  node::TelemetryQuery query_;
  bool once_ = false;
};

CLI::App* ExporterCommand::declare(CLI::App& program) {
  CLI::App* app = program.add_subcommand("exporter", "Serve counters to Prometheus");
  app->add_option("-l,--listen", listen_, "Address and port; [ADDRESS]:PORT with IPv6")
      ->type_name("ADDRESS:PORT")
      ->capture_default_str();
  app->add_option("--devices", limits_.devices, "So many devices at the most")
      ->check(CLI::Range(1, 1'024))
      ->capture_default_str();
  app->add_option("-q,--queue-pairs", limits_.queue_pairs,
                  "Queue pairs of each device, the busiest ones")
      ->check(CLI::Range(0, 64))
      ->capture_default_str();
  app->add_flag("--once", once_, "Print one scrape and exit");
  app->footer(
      "The metrics are at /metrics, in the text format of Prometheus, or OpenMetrics for\n"
      "who asks for it. docs/metrics.md lists them, examples/monitoring has rules and a\n"
      "dashboard. Processes of other users are seen by root, and by the group they name.");
  return app;
}

// "127.0.0.1:9477" or "[::1]:9477"; false when it is neither. Port 0 is any that is free.
bool split_address(std::string_view text, std::string& host, int& port) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || colon == 0) return false;
  const std::string_view digits = text.substr(colon + 1);
  std::string_view name = text.substr(0, colon);
  const bool bracketed = name.starts_with('[') && name.ends_with(']') && name.size() > 2;
  if (bracketed) name = name.substr(1, name.size() - 2);
  if (!bracketed && name.find(':') != std::string_view::npos) return false;
  const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  host = name;
  return parsed.ec == std::errc{} && parsed.ptr == digits.data() + digits.size() && port >= 0 &&
         port <= 0xFFFF;
}

std::string ExporterCommand::scrape(exporter::Format format) const {
  return exporter::metrics_text(node::read_telemetry(query_), format, limits_);
}

exporter::HttpAnswer ExporterCommand::answer(const exporter::HttpRequest& request) const {
  if (request.path == "/") {
    return {.type = "text/html; charset=utf-8",
            .body = "<html><body><a href=\"/metrics\">metrics</a></body></html>\n"};
  }
  if (request.path != "/metrics")
    return {.status = 404, .body = "not here; the metrics are at /metrics\n"};
  const bool open = request.accept.find("application/openmetrics-text") != std::string::npos;
  const auto format = open ? exporter::Format::kOpenMetrics : exporter::Format::kPrometheus;
  return {.type = open ? kOpenMetricsType : kPrometheusType, .body = scrape(format)};
}

ExitCode ExporterCommand::serve(const std::string& host, int port) {
  const os::Interrupt interrupt;
  exporter::HttpServer server(
      [this](const exporter::HttpRequest& request) { return answer(request); });
  if (const int error = server.listen(host, port); error != 0) {
    fmt::print(stderr, "mrc exporter: cannot listen at {}: {}\n", listen_, std::strerror(error));
    return ExitCode::kFailed;
  }
  fmt::print("mrc exporter: metrics at http://{}:{}/metrics\n",
             host.find(':') == std::string::npos ? host : "[" + host + "]", server.port());
  std::fflush(stdout);
  constexpr int kStepMs = 200;
  while (!os::Interrupt::raised())
    server.step(kStepMs);
  return ExitCode::kOk;
}

ExitCode ExporterCommand::run() {
  query_.directory = node::telemetry_directory();
  if (once_) {
    fmt::print("{}", scrape(exporter::Format::kPrometheus));
    return ExitCode::kOk;
  }
  std::string host;
  int port = 0;
  if (!split_address(listen_, host, port)) {
    fmt::print(stderr,
               "mrc exporter: --listen takes ADDRESS:PORT, as in 127.0.0.1:9477, not '{}'\n",
               listen_);
    return ExitCode::kUsage;
  }
  return serve(host, port);
}

}  // namespace

std::unique_ptr<Command> make_exporter_command() { return std::make_unique<ExporterCommand>(); }

}  // namespace mrc::tool
