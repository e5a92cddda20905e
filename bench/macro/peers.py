"""The programs we are compared with: iperf3, sockperf and fi_pingpong as Debian has them."""

import contextlib
import json
import re
import subprocess
import sys
import time

MIB = 1 << 20
START_S = 20
BUSY = 2


class BenchError(Exception):
    """A measurement that did not come about, in one line."""


def check(process, what):
    if process.status != 0:
        lines = (process.errors() + process.output()).strip().splitlines()
        why = lines[-1] if lines else "no message"
        raise BenchError(f"{what} ended with {process.status}: {why}")


def wait_until_ready(server, text):
    """Until the server says `text` on its standard error; without a text, for a moment."""
    deadline = time.monotonic() + (START_S if text else 0.3)
    while time.monotonic() < deadline and not (text and text in server.errors()):
        if server.ended():
            check(server, server.words[4])
        time.sleep(0.01)


def run_pair(hosts, server_words, client_words, timeout_s, server_ends=True, ready=None,
             meanwhile=None, variables=None):
    """Runs a server on b and a client on a; returns both, ended. A server that does not end by
    itself is stopped. `meanwhile` is called with the running client."""
    server = hosts.start("b", server_words, variables("b") if variables else None)
    try:
        wait_until_ready(server, ready)
        client = hosts.start("a", client_words, variables("a") if variables else None)
        try:
            if meanwhile:
                meanwhile(client)
            client.wait(timeout_s)
            check(client, client_words[0])
            if server_ends:
                server.wait(10)
                check(server, server_words[0])
        finally:
            client.stop()
        return server, client
    finally:
        server.stop()


def iperf3(hosts, seconds):
    """TCP, one stream over one plane."""
    server, client = run_pair(
        hosts, ["iperf3", "-s", "-1"],
        ["iperf3", "-c", hosts.address("b"), "-t", str(seconds), "-J"], seconds + 20)
    end = json.loads(client.output())["end"]["sum_received"]
    return {"bandwidth_gbps": end["bits_per_second"] / 1e9,
            "cpu_s_per_gb": (server.cpu_s + client.cpu_s) / (end["bytes"] / 1e9)}


def busy_iperf3(hosts, seconds):
    with busy_loops():
        return iperf3(hosts, seconds)


@contextlib.contextmanager
def busy_loops():
    """As many programs that do nothing but use a processor as a small machine has of them."""
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(BUSY)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def sockperf(hosts, seconds):
    """UDP ping-pong of 64 bytes; times are one way, that is half a round trip."""
    address = hosts.address("b")
    _, client = run_pair(
        hosts, ["sockperf", "server", "-i", address],
        ["sockperf", "ping-pong", "-i", address, "-m", "64", "-t", str(seconds)], seconds + 20,
        server_ends=False)
    found = dict(re.findall(r"percentile ([\d.]+) = +([\d.]+)", client.output()))
    if "50.000" not in found:
        raise BenchError("sockperf printed no percentiles")
    return {"latency_us_median": float(found["50.000"]), "latency_us_p99": float(found["99.000"])}


def fi_pingpong(hosts, size, iterations, timeout_s):
    """libfabric's tcp provider as a reliable datagram endpoint; time of one transfer in us."""
    words = ["fi_pingpong", "-p", "tcp", "-e", "rdm", "-S", str(size), "-I", str(iterations)]
    _, client = run_pair(hosts, words, [*words, hosts.address("b")], timeout_s)
    lines = [line.split() for line in client.output().splitlines()]
    if len(lines) != 2 or "usec/xfer" not in lines[0]:
        raise BenchError("fi_pingpong printed no table")
    return float(lines[1][lines[0].index("usec/xfer")])


def fi_latency(hosts, _seconds):
    return {"latency_us_mean": fi_pingpong(hosts, 64, 20_000, 60)}


def fi_bandwidth(hosts, _seconds):
    return {"bandwidth_gbps": 8 * MIB / fi_pingpong(hosts, MIB, 2_000, 60) / 1e3}
