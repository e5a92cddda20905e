#include "commands/exporter/families.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/event.h"
#include "wire/drop_reason.h"

namespace mrc::tool::exporter {
namespace {

using Plane = node::TelemetryPlane;
using QueuePair = node::TelemetryQueuePair;

template <typename Number>
double seconds(Number ns) {
  return static_cast<double>(ns) / 1e9;
}

template <typename Value>
void each_plane(Samples& samples, Value value) {
  for (std::size_t i = 0; i < samples.body().plane_count; ++i) {
    const Plane& plane = samples.body().planes[i];
    samples.value(value(plane), fmt::format(R"(plane="{}")", plane.plane()));
  }
}

template <typename Value>
void each_queue_pair(Samples& samples, Value value) {
  const node::TelemetryBody& body = samples.body();
  const std::size_t count = std::min<std::size_t>(samples.queue_pairs(), body.listed_queue_pairs);
  for (const QueuePair& pair : std::span(body.list).first(count)) {
    samples.value(value(pair), fmt::format(R"(queue_pair="{:#08x}",peer="{}")", pair.number,
                                           wire::format_address(pair.peer.address()).view()));
  }
}

void engine_times(Samples& samples) {
  for (std::size_t i = 0; i < samples.body().engine_count; ++i)
    samples.value(seconds(samples.body().engines[i].cpu_ns), fmt::format(R"(engine="{}")", i));
}

void losses(Samples& samples) {
  const core::QpCounters& traffic = samples.body().traffic;
  samples.value(traffic.lost_by_path_order, R"(reason="path_order")");
  samples.value(traffic.lost_by_time, R"(reason="time")");
  samples.value(traffic.lost_by_timeout, R"(reason="timeout")");
}

void answers(Samples& samples) {
  const core::QpCounters& traffic = samples.body().traffic;
  samples.value(traffic.sacks_sent, R"(kind="sack")");
  samples.value(traffic.nacks_sent, R"(kind="nack")");
  samples.value(traffic.acks_sent, R"(kind="ack")");
}

// The first reason is that there was none.
void drops(Samples& samples) {
  for (std::size_t i = 1; i < samples.body().drops.size(); ++i)
    samples.value(samples.body().drops[i],
                  fmt::format(R"(reason="{}")", drop_reason_name(static_cast<DropReason>(i))));
}

void calls(Samples& samples) {
  samples.value(samples.body().network.send_calls, R"(direction="send")");
  samples.value(samples.body().network.receive_calls, R"(direction="receive")");
}

void plane_names(Samples& samples) {
  for (std::size_t i = 0; i < samples.body().plane_count; ++i) {
    const Plane& plane = samples.body().planes[i];
    std::string interface = plane.interface.text();
    std::erase_if(interface, [](char c) { return c == '"' || c == '\\'; });
    samples.value(1, fmt::format(R"(plane="{}",interface="{}",address="{}")", plane.plane(),
                                 interface, wire::format_address(plane.address.address()).view()));
  }
}

void plane_paths(Samples& samples) {
  for (std::size_t i = 0; i < samples.body().plane_count; ++i) {
    const Plane& plane = samples.body().planes[i];
    for (std::size_t state = 0; state < plane.paths.size(); ++state)
      samples.value(plane.paths[state],
                    fmt::format(R"(plane="{}",state="{}")", plane.plane(),
                                core::ev_state_name(static_cast<core::EvState>(state))));
  }
}

constexpr auto kFamilies = std::to_array<Family>({
    {"mrc_exporter_devices", Kind::kGauge, "",
     "Devices of living processes in this scrape.",
     nullptr,
     [](const Overview& overview, Samples& samples) { samples.value(overview.devices); }},
    {"mrc_exporter_devices_left_out", Kind::kGauge, "",
     "Devices beyond the limit, which are not in this scrape.",
     nullptr,
     [](const Overview& overview, Samples& samples) { samples.value(overview.left_out); }},
    {"mrc_exporter_ended_processes", Kind::kGauge, "",
     "Pages of processes that were killed (mrc stat --clean).",
     nullptr,
     [](const Overview& overview, Samples& samples) { samples.value(overview.ended); }},
    {"mrc_exporter_unreadable_pages", Kind::kGauge, "",
     "Pages that are broken or of another version of OpenMRC.",
     nullptr,
     [](const Overview& overview, Samples& samples) { samples.value(overview.unreadable); }},
    {"mrc_exporter_closed_folders", Kind::kGauge, "",
     "Users whose processes the exporter may not look at.",
     nullptr,
     [](const Overview& overview, Samples& samples) { samples.value(overview.closed_folders); }},
    {"mrc_process_start_time_seconds", Kind::kGauge, "seconds",
     "When the process started, in Unix time.",
     [](Samples& samples) { samples.value(seconds(samples.body().process.started_unix_ns)); }},
    {"mrc_process_cpu_seconds", Kind::kCounter, "seconds",
     "Processor time of all threads of the process.",
     [](Samples& samples) { samples.value(seconds(samples.body().process.cpu_ns)); }},
    {"mrc_page_time_seconds", Kind::kGauge, "seconds",
     "When the process wrote these numbers, in Unix time.",
     [](Samples& samples) { samples.value(seconds(samples.body().written_unix_ns)); }},
    {"mrc_page_writes", Kind::kCounter, "",
     "How often the process wrote its numbers.",
     [](Samples& samples) { samples.value(samples.body().sweeps); }},
    {"mrc_page_write_seconds", Kind::kCounter, "seconds",
     "Processor time spent on that.",
     [](Samples& samples) { samples.value(seconds(samples.body().sweep_ns)); }},
    {"mrc_engine_cpu_seconds", Kind::kCounter, "seconds",
     "Processor time of an engine thread; programs that poll do its work, too.",
     engine_times},
    {"mrc_queue_pairs", Kind::kGauge, "",
     "Queue pairs there are.",
     [](Samples& samples) { samples.value(samples.body().queue_pairs); }},
    {"mrc_sent_packets", Kind::kCounter, "",
     "Write packets sent, resends included.",
     [](Samples& samples) { samples.value(samples.body().traffic.data_sent); }},
    {"mrc_sent_bytes", Kind::kCounter, "bytes",
     "Payload of the packets sent, resends included.",
     [](Samples& samples) { samples.value(samples.body().traffic.bytes_sent); }},
    {"mrc_received_packets", Kind::kCounter, "",
     "Write packets received, each once.",
     [](Samples& samples) { samples.value(samples.body().traffic.data_received); }},
    {"mrc_received_bytes", Kind::kCounter, "bytes",
     "Payload placed in memory.",
     [](Samples& samples) { samples.value(samples.body().traffic.bytes_received); }},
    {"mrc_resent_packets", Kind::kCounter, "",
     "Packets sent again, for whatever reason.",
     [](Samples& samples) { samples.value(samples.body().traffic.retransmitted); }},
    {"mrc_lost_packets", Kind::kCounter, "",
     "Packets declared lost, by what told.",
     losses},
    {"mrc_trimmed_packets", Kind::kCounter, "",
     "Packets whose payload a switch took away.",
     [](Samples& samples) { samples.value(samples.body().traffic.trimmed); }},
    {"mrc_refused_packets", Kind::kCounter, "",
     "Packets that the receiver sent back for another reason.",
     [](Samples& samples) { samples.value(samples.body().traffic.refused); }},
    {"mrc_speculative_packets", Kind::kCounter, "",
     "Packets that were late and sent again before they were known to be lost.",
     [](Samples& samples) { samples.value(samples.body().traffic.hedged); }},
    {"mrc_spurious_losses", Kind::kCounter, "",
     "Packets declared lost that had arrived.",
     [](Samples& samples) { samples.value(samples.body().traffic.spurious); }},
    {"mrc_marks", Kind::kCounter, "",
     "Answers that told of congestion on a path.",
     [](Samples& samples) { samples.value(samples.body().traffic.marked); }},
    {"mrc_duplicate_packets", Kind::kCounter, "",
     "Packets that had arrived before.",
     [](Samples& samples) { samples.value(samples.body().traffic.duplicates); }},
    {"mrc_probes", Kind::kCounter, "",
     "Probes of paths sent.",
     [](Samples& samples) { samples.value(samples.body().traffic.probes_sent); }},
    {"mrc_timeouts", Kind::kCounter, "",
     "Expiries of the retry timer that used up a try.",
     [](Samples& samples) { samples.value(samples.body().traffic.timeouts); }},
    {"mrc_messages", Kind::kCounter, "",
     "Messages completed.",
     [](Samples& samples) { samples.value(samples.body().traffic.messages_completed); }},
    {"mrc_failed_messages", Kind::kCounter, "",
     "Messages completed with an error.",
     [](Samples& samples) { samples.value(samples.body().failed_messages); }},
    {"mrc_immediates", Kind::kCounter, "",
     "Immediates delivered to the program.",
     [](Samples& samples) { samples.value(samples.body().traffic.immediates); }},
    {"mrc_answers", Kind::kCounter, "",
     "Answers sent, by kind.",
     answers},
    {"mrc_received_sacks", Kind::kCounter, "",
     "Selective acknowledgements received.",
     [](Samples& samples) { samples.value(samples.body().traffic.sacks_received); }},
    {"mrc_dropped_packets", Kind::kCounter, "",
     "Packets from the network that were not used, by reason.",
     drops},
    {"mrc_dropped_answers", Kind::kCounter, "",
     "Answers for which there was no room or no way out.",
     [](Samples& samples) { samples.value(samples.body().network.answers_dropped); }},
    {"mrc_system_calls", Kind::kCounter, "",
     "Calls into the kernel to send and to receive.",
     calls},
    {"mrc_kernel_refused_sends", Kind::kCounter, "",
     "Packets the kernel refused to send.",
     [](Samples& samples) { samples.value(samples.body().network.send_refused); }},
    {"mrc_kernel_dropped_packets", Kind::kCounter, "",
     "Packets the kernel dropped for want of room in our sockets.",
     [](Samples& samples) { samples.value(samples.body().network.receive_overflow); }},
    {"mrc_round_trip_seconds", Kind::kHistogram, "seconds",
     "Smoothed round trips, of each queue pair that moves, at each write of the page.",
     [](Samples& samples) { samples.histogram(samples.body().round_trips); }},
    {"mrc_message_latency_seconds", Kind::kHistogram, "seconds",
     "From the time the engine took a message to its completion.",
     [](Samples& samples) { samples.histogram(samples.body().latencies); }},
    {"mrc_plane_info", Kind::kGauge, "",
     "Always 1; interface and address of a plane.",
     plane_names},
    {"mrc_plane_up", Kind::kGauge, "",
     "Whether the link of a plane is up.",
     [](Samples& samples) {
       each_plane(samples, [](const Plane& plane) { return plane.link_up; });
     }},
    {"mrc_plane_enabled", Kind::kGauge, "",
     "Whether controllers let a plane be used.",
     [](Samples& samples) {
       each_plane(samples, [](const Plane& plane) { return plane.enabled; });
     }},
    {"mrc_plane_link_changes", Kind::kCounter, "",
     "How often the port went up or down.",
     [](Samples& samples) {
       each_plane(samples, [](const Plane& plane) { return plane.link_changes; });
     }},
    {"mrc_plane_sent_packets", Kind::kCounter, "",
     "Packets of all kinds sent on a plane.",
     [](Samples& samples) {
       each_plane(samples, [](const Plane& plane) { return plane.packets_sent; });
     }},
    {"mrc_plane_sent_bytes", Kind::kCounter, "bytes",
     "Their bytes, headers included.",
     [](Samples& samples) {
       each_plane(samples, [](const Plane& plane) { return plane.bytes_sent; });
     }},
    {"mrc_plane_received_packets", Kind::kCounter, "",
     "Packets of all kinds received on a plane.",
     [](Samples& samples) {
       each_plane(samples, [](const Plane& plane) { return plane.packets_received; });
     }},
    {"mrc_plane_received_bytes", Kind::kCounter, "bytes",
     "Their bytes, headers included.",
     [](Samples& samples) {
       each_plane(samples, [](const Plane& plane) { return plane.bytes_received; });
     }},
    {"mrc_plane_lost_packets", Kind::kCounter, "",
     "Packets declared lost on paths of a plane.",
     [](Samples& samples) {
       each_plane(samples, [](const Plane& plane) { return plane.lost; });
     }},
    {"mrc_plane_marks", Kind::kCounter, "",
     "Answers that told of congestion on paths of a plane.",
     [](Samples& samples) {
       each_plane(samples, [](const Plane& plane) { return plane.marked; });
     }},
    {"mrc_plane_silent_queue_pairs", Kind::kGauge, "",
     "Queue pairs whose peer does not answer on a plane.",
     [](Samples& samples) {
       each_plane(samples, [](const Plane& plane) { return plane.silent; });
     }},
    {"mrc_plane_paths", Kind::kGauge, "",
     "Paths (EVs) of all queue pairs on a plane, by state.",
     plane_paths},
    {"mrc_queue_pair_sent_bytes", Kind::kCounter, "bytes",
     "Payload sent by one of the busiest queue pairs.",
     [](Samples& samples) {
       each_queue_pair(samples, [](const QueuePair& pair) { return pair.counters.bytes_sent; });
     }},
    {"mrc_queue_pair_received_bytes", Kind::kCounter, "bytes",
     "Payload received by one of the busiest queue pairs.",
     [](Samples& samples) {
       each_queue_pair(samples, [](const QueuePair& pair) { return pair.counters.bytes_received; });
     }},
    {"mrc_queue_pair_resent_packets", Kind::kCounter, "",
     "Packets sent again by one of the busiest queue pairs.",
     [](Samples& samples) {
       each_queue_pair(samples, [](const QueuePair& pair) { return pair.counters.retransmitted; });
     }},
    {"mrc_queue_pair_round_trip_seconds", Kind::kGauge, "seconds",
     "Smoothed round trip.",
     [](Samples& samples) {
       each_queue_pair(samples, [](const QueuePair& pair) { return seconds(pair.round_trip_ns); });
     }},
    {"mrc_queue_pair_window_bytes", Kind::kGauge, "bytes",
     "Congestion window; queue pairs to one peer may share it.",
     [](Samples& samples) {
       each_queue_pair(samples, [](const QueuePair& pair) { return pair.window_bytes; });
     }},
    {"mrc_queue_pair_window_used_bytes", Kind::kGauge, "bytes",
     "Under way of all that share the window.",
     [](Samples& samples) {
       each_queue_pair(samples, [](const QueuePair& pair) { return pair.window_used_bytes; });
     }},
    {"mrc_queue_pair_packets_in_flight", Kind::kGauge, "",
     "Packets neither acknowledged nor declared lost.",
     [](Samples& samples) {
       each_queue_pair(samples, [](const QueuePair& pair) { return pair.packets_in_flight; });
     }},
    {"mrc_queue_pair_messages_outstanding", Kind::kGauge, "",
     "Messages posted and not yet completed.",
     [](Samples& samples) {
       each_queue_pair(samples, [](const QueuePair& pair) { return pair.messages_outstanding; });
     }},
});

}  // namespace

std::span<const Family> families() { return kFamilies; }

}  // namespace mrc::tool::exporter
