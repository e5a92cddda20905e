#!/usr/bin/env python3
"""Runs programs of Debian that were written for RDMA cards on our devices, as they are.

Usage: verbs_test.py --libraries DIR CASE

CASE is one of the functions below whose name begins with `test_`. Exit code 77 where a program is
not installed.
"""

import argparse
import pathlib
import re
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "support"))

import programs  # noqa: E402  (found through the line above)

TIMEOUT_S = 120


class Setup:
    """Libraries, a place for the node's state and ports of our own."""

    def __init__(self, libraries, folder):
        self.libraries = libraries
        self.environment = programs.device_environment(folder)

    def way(self, name):
        """The environment of a program that shall find us, by one of the two ways."""
        environment = dict(self.environment)
        if name == "preload":
            environment["LD_PRELOAD"] = str(self.libraries / "libmrc-verbs-preload.so")
        else:
            environment["LD_LIBRARY_PATH"] = str(self.libraries / "mrc" / "verbs")
        return environment

    def run(self, way, command):
        program = shutil.which(command[0])
        if program is None:
            programs.skip(f"{command[0]} is not installed")
        return subprocess.Popen([program, *command[1:]], env=self.way(way), text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def finish(process, what):
    try:
        output, _ = process.communicate(timeout=TIMEOUT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        output, _ = process.communicate()
        raise AssertionError(f"{what} did not end:\n{output}") from None
    assert process.returncode == 0, f"{what} ended with {process.returncode}:\n{output}"
    return output


def alone(setup, way, command):
    return finish(setup.run(way, command), " ".join(command))


def pair(setup, way, command):
    """A server and a client of one program. The client is started until the server is there."""
    command = [*command, "-p", str(programs.free_tcp_port())]
    server = setup.run(way, command)
    try:
        while True:
            client = setup.run(way, [*command, "127.0.0.1"])
            output, _ = client.communicate(timeout=TIMEOUT_S)
            if client.returncode == 0:
                break
            assert server.poll() is None and re.search("refused|connect", output), output
        return finish(server, "the server of " + command[0]), output
    finally:
        server.kill()
        server.wait()


def both_ways(setup, check):
    for way in ("preload", "shadow"):
        check(setup, way)
        print(f"ok    {way}")


def test_devices_are_listed(setup):
    def check(setup, way):
        assert re.search(r"^\s*mrc0\s", alone(setup, way, ["ibv_devices"]), re.M)
    both_ways(setup, check)


def test_devinfo_shows_an_active_port_with_gids(setup):
    def check(setup, way):
        text = alone(setup, way, ["ibv_devinfo", "-v"])
        for wanted in (r"hca_id:\s+mrc0", r"PORT_ACTIVE", r"link_layer:\s+Ethernet",
                       r"GID\[\s*3\]:.*127\.0\.0\.1", r"phys_port_cnt:\s+1"):
            assert re.search(wanted, text), f"{wanted} not in:\n{text}"
    both_ways(setup, check)


def write_bw_rows(text):
    return [line.split() for line in text.splitlines() if re.match(r"\s*\d+\s+\d+\s", line)]


def test_write_bw_runs_all_sizes(setup):
    _, text = pair(setup, "preload", ["ib_write_bw", "-F", "-a", "-n", "20"])
    sizes = [int(row[0]) for row in write_bw_rows(text)]
    assert sizes == [2**n for n in range(1, 24)], text


def test_write_bw_runs_through_the_shadow(setup):
    _, text = pair(setup, "shadow", ["ib_write_bw", "-F", "-s", "65536", "-n", "100"])
    assert [row[0] for row in write_bw_rows(text)] == ["65536"], text


def test_write_bw_runs_on_several_queue_pairs_in_both_directions(setup):
    _, text = pair(setup, "preload",
                   ["ib_write_bw", "-F", "-b", "-q", "4", "-s", "4096", "-n", "100"])
    assert [row[0] for row in write_bw_rows(text)] == ["4096"], text


def test_write_lat_polls_the_last_byte(setup):
    for size in ("8", "4096", "100000"):
        _, text = pair(setup, "preload", ["ib_write_lat", "-F", "-s", size, "-n", "50"])
        assert [row[0] for row in write_bw_rows(text)] == [size], text


def test_send_bw_runs(setup):
    _, text = pair(setup, "preload", ["ib_send_bw", "-F", "-s", "4096", "-n", "500"])
    assert [row[0] for row in write_bw_rows(text)] == ["4096"], text


def test_send_lat_runs_with_events(setup):
    _, text = pair(setup, "preload", ["ib_send_lat", "-F", "-e", "-s", "64", "-n", "100"])
    assert [row[0] for row in write_bw_rows(text)] == ["64"], text


def test_pingpong_checks_its_data(setup):
    for extra in ([], ["-e"]):
        server, client = pair(setup, "preload",
                              ["ibv_rc_pingpong", "-g", "3", "-c", "-n", "200", *extra])
        assert "bytes in" in server and "bytes in" in client
        assert "invalid data" not in server + client, server + client


def test_reads_and_other_transports_are_refused(setup):
    for command in (["ib_read_bw", "-F", "-s", "64", "-n", "5"],
                    ["ib_send_bw", "-F", "-c", "UD", "-s", "64", "-n", "5"]):
        port = str(programs.free_tcp_port())
        server = setup.run("preload", [*command, "-p", port])
        client = setup.run("preload", [*command, "-p", port, "127.0.0.1"])
        output, _ = client.communicate(timeout=TIMEOUT_S)
        server.kill()
        server.communicate()
        assert client.returncode > 0, f"{command} ended with {client.returncode}:\n{output}"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--libraries", type=pathlib.Path, required=True)
    parser.add_argument("case")
    arguments = parser.parse_args()
    programs.leave_cleanly_when_told()
    with programs.own_folder() as folder:
        globals()["test_" + arguments.case](Setup(arguments.libraries, folder))
    return 0


if __name__ == "__main__":
    sys.exit(main())
