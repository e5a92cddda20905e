"""Our own measurements, all through `mrc perf`; data is verified in every one of them."""

import json
import time

import peers

PLANE_LOST = 2
QPS_OPEN = 1000
QPS_COMPARED = (1, 2, 4, 16, 64)
INTERVAL_S = 0.005
DIP_WITHIN_S = 0.5


def variables(hosts, more):
    """What makes a device of all planes of a host; the state lives in a private /run."""
    interfaces = ",".join(hosts.interface(p) for p in range(1, hosts.planes + 1))
    return lambda host: {"MRC_IFACES": interfaces, "MRC_CONFIG": "/dev/null",
                         "MRC_STATE_DIR": f"/run/mrc-{host}", **more}


class Ours:
    def __init__(self, program, more_variables=None):
        self.program = program
        self.more_variables = more_variables or {}

    def perf(self, hosts, test, words, timeout_s, meanwhile=None):
        """Runs both sides; returns the client, ended."""
        command = [self.program, "perf", test, "--json"]
        _, client = peers.run_pair(
            hosts, command, [*command, *words, hosts.address("b")], timeout_s,
            ready="Waiting for client", meanwhile=meanwhile,
            variables=variables(hosts, self.more_variables))
        return client

    def result(self, hosts, test, words, seconds):
        client = self.perf(hosts, test, [*words, "-D", str(seconds)], 4 * seconds + 40)
        document = json.loads(client.output())
        row = document["results"][0]
        if not row["verified"]:
            raise peers.BenchError(f"{test} did not verify its data")
        return document, row

    def write_bw(self, hosts, seconds):
        _, row = self.result(hosts, "write_bw", ["-s", "1M"], seconds)
        return {"bandwidth_gbps": row["bandwidth_gbps"], "cpu_s_per_gb": row["cpu_s_per_gb"]}

    def header_checks(self, hosts, seconds):
        """The UDP checksum answers for the payload instead of the ICRC."""
        return Ours(self.program, {"MRC_PAYLOAD_CHECK": "headers"}).write_bw(hosts, seconds)

    def write_lat(self, hosts, seconds):
        _, row = self.result(hosts, "write_lat", ["-s", "64"], seconds)
        return {"latency_us_median": row["latency_us_median"],
                "latency_us_p99": row["latency_us_p99"]}

    def spinning_lat(self, hosts, seconds):
        """The program watches memory and polls for nothing, so that our thread does the work."""
        _, row = self.result(hosts, "write_lat", ["-s", "64", "--spin"], seconds)
        return {"latency_us_median": row["latency_us_median"]}

    def busy_bw(self, hosts, seconds):
        with peers.busy_loops():
            return self.write_bw(hosts, seconds)

    def message_rate(self, hosts, seconds):
        _, row = self.result(hosts, "write_bw", ["-s", "64"], seconds)
        return {"message_rate_mpps": row["message_rate_mpps"]}

    def immediates(self, hosts, seconds):
        _, row = self.result(hosts, "write_imm", ["-s", "1M"], seconds)
        return {"bandwidth_gbps": row["bandwidth_gbps"]}

    def many_qps(self, hosts, seconds):
        """The same data over more and more queue pairs, in long and in short messages."""
        figures = {}
        for size in ("1M", "64K"):
            for count in QPS_COMPARED:
                _, row = self.result(hosts, "write_bw", ["-s", size, "-q", str(count)], seconds)
                figures[f"gbps_{size}_{count}"] = row["bandwidth_gbps"]
        return figures

    def thousand_qps(self, hosts, seconds):
        document, row = self.result(
            hosts, "write_bw", ["-s", "4096", "-q", str(QPS_OPEN), "-t", "16"], seconds)
        return {"memory_kb_per_qp": document["memory_bytes_per_qp"] / 1e3,
                "bandwidth_gbps": row["bandwidth_gbps"]}

    def plane_loss(self, hosts, seconds):
        """One of the planes goes down in the middle of a transfer: how long until the rest carry
        as much as they do later on."""
        killed = []

        def kill(_client):
            time.sleep(1 + seconds / 2)
            killed.append(time.monotonic())
            hosts.set_link("a", PLANE_LOST, "down")

        words = ["-s", "1M", "-D", str(2 * seconds), "--report-every", str(INTERVAL_S)]
        try:
            client = self.perf(hosts, "write_bw", words, 8 * seconds + 40, kill)
        finally:
            hosts.set_link("a", PLANE_LOST, "up")
        lines = [json.loads(line) for line in client.output().splitlines()]
        if not lines[-1]["results"][0]["verified"]:
            raise peers.BenchError("plane_loss did not verify its data")
        return recovery(lines[:-1], killed[0])


def median(values):
    ordered = sorted(values)
    return ordered[len(ordered) // 2] if ordered else 0.0


def recovery(intervals, killed):
    """The rate before, the rate of the last second, and the time from the cut to the end of the dip
    that it made: from the first interval below half of the final rate to the next one with nine
    tenths of it. Without such an interval the dip is shorter than can be seen."""
    before = median([i["bandwidth_gbps"] for i in intervals if i["clock_s"] < killed])
    after = [i for i in intervals if i["clock_s"] >= killed]
    final = median([i["bandwidth_gbps"] for i in after if i["clock_s"] > after[-1]["clock_s"] - 1])
    low = [i for i in after
           if i["clock_s"] < killed + DIP_WITHIN_S and i["bandwidth_gbps"] < 0.5 * final]
    recovered = killed
    if low:
        later = [i["clock_s"] for i in after
                 if i["clock_s"] > low[0]["clock_s"] and i["bandwidth_gbps"] >= 0.9 * final]
        if not later:
            raise peers.BenchError("the rate did not come back")
        recovered = later[0]
    return {"before_gbps": before, "after_gbps": final, "recovery_ms": 1e3 * (recovered - killed)}
