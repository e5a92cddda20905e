#!/usr/bin/env python3
"""What processes tell of themselves while they run, as `mrc stat`, `mrc top` and `mrc exporter`
show it, and as a real Prometheus scrapes it. Usage: telemetry_test.py MRC [unittest arguments]"""

import fcntl
import http.client
import json
import os
import pathlib
import pty
import re
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import termios
import time
import unittest
import urllib.parse
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "support"))

import programs  # noqa: E402  (found through the line above)

ROOT = pathlib.Path(__file__).resolve().parents[3]
MONITORING = ROOT / "examples/monitoring"
# Prometheus as scripts/setup.sh unpacks it, or as somebody has installed it.
UNPACKED = str(ROOT / "build/tools/prometheus/usr/bin") + os.pathsep + os.environ.get("PATH", "")
PROMTOOL = shutil.which("promtool", path=UNPACKED)
PROMETHEUS = shutil.which("prometheus", path=UNPACKED)
NOBODY = 65_534
SOMEBODY = 12_345
DEPTH = 16
INTERVAL_S = 0.05
OPENMETRICS = "application/openmetrics-text;version=1.0.0"


class Telemetry(programs.ToolTest):
    """Words are those behind `mrc`."""

    def setUp(self):
        super().setUp()
        self.environment = programs.device_environment(self.folder)

    def start_transfer(self, *words, client=None, **options):
        """A server and a client; `client` more variables of it."""
        port = str(programs.free_tcp_port())
        environment = options.pop("env", self.environment)
        server = self.start("perf", "write_bw", "-p", port, env=environment, **options)
        programs.eventually(lambda: programs.is_listening(int(port)), "the server does not listen")
        both = self.start("perf", "write_bw", "-p", port, "-s", "64K", "-t", str(DEPTH), *words,
                          "127.0.0.1", env=environment | (client or {}), **options)
        return server, both

    def devices(self, *words):
        """Of `mrc stat --json`; none where it says that there are none."""
        done = self.tool("stat", "--json", "--at-once", *words)
        self.assertIn(done.returncode, (0, 1), done.stderr)
        return json.loads(done.stdout)["devices"]

    def device_of(self, process, moves=True):
        found = []

        def is_there():
            found[:] = [device for device in self.devices("--pid", str(process.pid))
                        if not moves or device["totals"]["messages_completed"] > 0]
            return found
        programs.eventually(is_there, "the process tells nothing")
        return found[0]


class Numbers(Telemetry):
    def test_AgreeWithWhatTheTransferSaysItself(self):
        _, client = self.start_transfer("-D", "3", "--report-every", str(INTERVAL_S))
        seen = [self.device_of(client)]
        while client.poll() is None:
            seen += self.devices("--pid", str(client.pid))
            time.sleep(0.1)
        lines = [json.loads(line) for line in programs.finish(client).splitlines()]
        polled = [(line["clock_s"] - line["end_s"] + line["start_s"], line["clock_s"],
                   line["messages"]) for line in lines if line["schema"] == "mrc.perf.interval"]
        self.assertGreater(len(polled), 10)
        # When a page was begun, when it was done (the next one was begun after that), and what it
        # counted in between.
        pages = {s["written_ns"] / 1e9: s["totals"]["messages_completed"] for s in seen}
        times = sorted(pages)
        samples = [(at, later, pages[at]) for at, later in zip(times, times[1:])]
        inside = [s for s in samples if polled[0][1] < s[0] and s[1] < polled[-1][0]]
        self.assertGreater(len(inside), 2, samples)
        first, last = inside[0], inside[-1]
        told = last[2] - first[2]
        least = sum(n for begin, end, n in polled if begin >= first[1] and end <= last[0])
        most = sum(n for begin, end, n in polled if end >= first[0] and begin <= last[1])
        self.assertGreater(least, 0)
        self.assertLessEqual(least - DEPTH, told)
        self.assertLessEqual(told, most + DEPTH)
        totals = seen[-1]["totals"]
        self.assertGreaterEqual(totals["sent_bytes"], totals["messages_completed"] * 65_536)
        self.assertEqual(sum(b["count"] for b in seen[-1]["message_latencies"]["buckets"]),
                         totals["messages_completed"])
        self.assertEqual(seen[-1]["failed_messages"], 0)
        programs.write_result("telemetry", messages_told=told, least=least, most=most)

    def test_BothEndsAndAllPlanesShow(self):
        server, client = self.start_transfer("-D", "2")
        one = self.device_of(client)
        other = self.device_of(server, moves=False)
        self.assertEqual([(plane["plane"], plane["port"]) for plane in one["planes"]],
                         [(0, 1), (1, 2), (2, 3), (3, 4)])
        for plane in one["planes"]:
            self.assertTrue(plane["link_up"] and plane["enabled"])
            self.assertGreater(plane["sent_bytes"], 0)
            self.assertEqual(sum(plane["paths"].values()), 8)
        self.assertEqual(one["queue_pairs"], 1)
        self.assertEqual(one["busiest_queue_pairs"][0]["peer"], other["gid"])
        self.assertEqual(one["process"], "mrc")
        programs.finish(client)
        programs.finish(server)
        self.assertEqual(self.devices(), [])  # gone with their processes

    def test_RatesAreThoseBetweenTwoLines(self):
        _, client = self.start_transfer("-D", "3")
        self.device_of(client)
        out = self.must("stat", "--json", "--watch", "0.5", "-n", "3", "--pid", str(client.pid))
        first, *later = [json.loads(line)["devices"][0] for line in out.splitlines()]
        self.assertEqual(len(later), 2)
        for before, now in zip([first, *later], later):
            seconds = (now["written_unix_ns"] - before["written_unix_ns"]) / 1e9
            grown = now["totals"]["sent_bytes"] - before["totals"]["sent_bytes"]
            self.assertAlmostEqual(now["rates"]["seconds"], seconds, places=6)
            self.assertAlmostEqual(now["rates"]["sent_bytes_per_second"], grown / seconds,
                                   delta=1e-6 * grown / seconds + 1)

    def test_OneLookIsOfTheLastSecond(self):
        _, client = self.start_transfer("-D", "60")
        self.device_of(client)
        time.sleep(1.5)
        words = ("stat", "--pid", str(client.pid))
        device, = json.loads(self.must(*words, "--json"))["devices"]
        age = (device["written_unix_ns"] - device["started_unix_ns"]) / 1e9
        self.assertGreater(device["rates"]["seconds"], 0.5)
        self.assertLess(device["rates"]["seconds"], age - 1)
        self.assertRegex(self.must(*words), r"\): rates of the last \d\.\d s\n")
        self.assertRegex(self.must("top", "--pid", str(client.pid)),
                         r": rates of the last \d\.\d s")
        device, = self.devices("--pid", str(client.pid))
        age = (device["written_unix_ns"] - device["started_unix_ns"]) / 1e9
        self.assertAlmostEqual(device["rates"]["seconds"], age, places=6)
        self.assertRegex(self.must(*words, "--at-once"), r"\): rates since its start, \d+\.\d s\n")

    def test_ProcessThatWantsToTellsNothing(self):
        server, client = self.start_transfer("-D", "1", client={"MRC_TELEMETRY": "off"})
        self.device_of(server, moves=False)
        self.assertEqual(self.devices("--pid", str(client.pid)), [])
        programs.finish(client)


class Ends(Telemetry):
    def test_KilledProcessIsToldAndCleanedUp(self):
        server, client = self.start_transfer("-D", "60")
        told = self.device_of(client)["totals"]["messages_completed"]
        server.send_signal(signal.SIGSTOP)  # it would end with its peer
        client.kill()
        client.wait(timeout=programs.WAIT_S)
        dead, = self.devices("--pid", str(client.pid))
        self.assertFalse(dead["alive"])
        self.assertGreaterEqual(dead["totals"]["messages_completed"], told)
        self.assertIn("has ended; mrc stat --clean removes it",
                      self.must("stat", "--pid", str(client.pid)))
        lines = self.must("stat").splitlines()
        ended = next(i for i, line in enumerate(lines) if ": has ended;" in line)
        self.assertIn(f"(pid {client.pid},", lines[ended])
        self.assertTrue(any(f"(pid {server.pid}," in line for line in lines[:ended]), lines)
        self.assertFalse(any(line.startswith("  !") for line in lines[ended:]), lines)
        self.assertEqual(dead["alarms"], [])
        self.assertEqual(self.must("stat", "--clean"),
                         "removed 1 page that nobody writes\n")
        self.assertEqual(self.devices("--pid", str(client.pid)), [])
        self.assertEqual(len(self.devices("--pid", str(server.pid))), 1)

    def test_NextDeviceOfTheUserCleansUp(self):
        server, client = self.start_transfer("-D", "60")
        self.device_of(client)
        server.send_signal(signal.SIGSTOP)  # it would end with its peer
        for process in (client, server):
            process.kill()
            process.wait(timeout=programs.WAIT_S)
        self.assertEqual(len(self.devices()), 2)
        self.must("info")  # opens the device
        self.assertEqual(self.devices(), [])

    def test_NothingRunsIsOneLine(self):
        for words in ((), ("--watch", "0.1", "-n", "1"), ("--json",)):
            line = self.refused(1, "stat", *words)
            self.assertIn("no process with an MRC device runs here", line)
        self.assertIn("has pid 1 and device x",
                      self.refused(1, "stat", "--pid", "1", "--device", "x"))
        self.refused(2, "stat", "--watch", "0")
        self.refused(2, "stat", "--pid", "me")

    def test_TelemetrySwitchIsChecked(self):
        done = self.tool("info", env=self.environment | {"MRC_TELEMETRY": "maybe"})
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("MRC_TELEMETRY must be on or off", done.stdout + done.stderr)


@unittest.skipUnless(os.geteuid() == 0, "needs root, to be somebody else")
class Users(Telemetry):
    """A transfer of one user, looked at by another and by root."""

    def setUp(self):
        super().setUp()
        os.chmod(self.folder, 0o1777)
        # Where another user can execute it.
        place = tempfile.mkdtemp(prefix="mrc-telemetry-program-")
        self.addCleanup(shutil.rmtree, place)
        os.chmod(place, 0o755)
        self.program = shutil.copy(self.program, place)
        state = pathlib.Path(self.folder, "mrc0")
        state.mkdir()
        os.chown(state, NOBODY, NOBODY)

    def as_user(self, user, *words, groups=()):
        return self.tool(*words, user=user, group=user, extra_groups=list(groups), cwd="/")

    def transfer(self, **variables):
        _, client = self.start_transfer(
            "-D", "60", env=self.environment | variables, user=NOBODY, group=NOBODY,
            extra_groups=[SOMEBODY], cwd="/")
        device = self.device_of(client)
        self.assertEqual(device["user"], NOBODY)
        return str(client.pid)

    def test_ProcessesOfOthersAreClosed(self):
        pid = self.transfer()
        done = self.as_user(SOMEBODY, "stat", "--pid", pid)
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stdout, "")
        self.assertIn("1 user's processes may not be looked at", done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1)

    def test_GroupThatIsNamedMayLook(self):
        pid = self.transfer(MRC_TELEMETRY_GROUP=str(SOMEBODY))
        done = self.as_user(SOMEBODY, "stat", "--json", "--pid", pid)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(json.loads(done.stdout)["devices"][0]["user"], NOBODY)
        self.assertEqual(self.as_user(SOMEBODY + 1, "stat").returncode, 1)

    def test_ServiceMayLookByACapabilityAlone(self):
        if shutil.which("setpriv") is None:
            self.skipTest("there is no setpriv")
        pid = self.transfer()
        rights = "+dac_read_search"
        done = programs.run(
            ["setpriv", f"--reuid={SOMEBODY}", f"--regid={SOMEBODY}", "--clear-groups",
             f"--inh-caps={rights}", f"--ambient-caps={rights}", f"--bounding-set=-all,{rights}",
             self.program, "exporter", "--once"], env=self.environment, cwd="/")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(f'pid="{pid}"', done.stdout)
        self.assertIn("mrc_exporter_closed_folders 0\n", done.stdout)

    def test_OthersCannotCleanUpForThem(self):
        pid = self.transfer()
        os.kill(int(pid), signal.SIGKILL)
        programs.eventually(lambda: not self.devices("--pid", pid)[0]["alive"], "it lives")
        self.must("stat", "--clean")  # of root's own
        self.assertEqual(len(self.devices("--pid", pid)), 1)


class Top(Telemetry):
    def test_OnePageWhereThereIsNoTerminal(self):
        _, client = self.start_transfer("-D", "60")
        self.device_of(client)
        page = self.must("top")
        self.assertLessEqual(page.count("\n"), 24)
        self.assertLessEqual(max(len(line) for line in page.splitlines()), 79)
        self.assertIn("plane  interface", page)
        self.assertNotIn("\x1b", page)

    def test_TerminalOf24LinesShowsAPageAndQEndsIt(self):
        _, client = self.start_transfer("-D", "60")
        self.device_of(client)
        master, slave = pty.openpty()
        self.addCleanup(os.close, master)
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        before = termios.tcgetattr(slave)
        top = subprocess.Popen([self.program, "top", "-s", "0.2"], stdin=slave, stdout=slave,
                               stderr=slave, env=self.environment | {"TERM": "xterm"})
        self.addCleanup(top.kill)
        text = b""
        deadline = time.monotonic() + programs.WAIT_S
        while text.count(b"\x1b[H") < 3 and time.monotonic() < deadline:
            if select.select([master], [], [], 1)[0]:
                text += os.read(master, 65_536)
        os.write(master, b"xq")
        self.assertEqual(top.wait(timeout=programs.WAIT_S), 0)
        while select.select([master], [], [], 0)[0]:
            text += os.read(master, 65_536)
        # The terminal is as it was.
        self.assertEqual(termios.tcgetattr(slave), before)
        os.close(slave)
        self.assertTrue(text.endswith(b"\x1b[?1049l"), text[-80:])
        pages = text.decode().split("\x1b[H")[1:]
        for page in pages[:-1]:
            lines = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", page).split("\r\n")
            self.assertLessEqual(len(lines), 24)
            self.assertLess(max(len(line.rstrip("\r")) for line in lines), 80)
        self.assertIn("plane  interface", pages[1])

    def test_NothingRuns(self):
        done = self.tool("top")
        self.assertEqual(done.returncode, 1)
        self.assertIn("no process with an MRC device runs here", done.stdout)


class Exporter(Telemetry):
    def setUp(self):
        super().setUp()
        self.port = programs.free_tcp_port()
        self.exporter = self.start("exporter", "--listen", f"127.0.0.1:{self.port}")
        self.assertIn(f"http://127.0.0.1:{self.port}/metrics", self.exporter.stdout.readline())

    def get(self, path="/metrics", method="GET", **headers):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=programs.WAIT_S)
        self.addCleanup(connection.close)
        connection.request(method, path, headers=headers)
        answer = connection.getresponse()
        return answer, answer.read().decode()

    def say(self, text):
        with socket.create_connection(("127.0.0.1", self.port), timeout=programs.WAIT_S) as link:
            link.sendall(text)
            answer = b""
            while part := link.recv(65_536):
                answer += part
        return answer

    def busy(self):
        _, client = self.start_transfer("-D", "60")
        self.device_of(client)
        return client

    def test_EveryFamilyIsDocumentedAndEveryDocumentedOneIsThere(self):
        self.busy()
        answer, text = self.get()
        self.assertEqual(answer.status, 200)
        self.assertTrue(answer.headers["Content-Type"].startswith("text/plain; version=0.0.4"))
        types = dict(re.findall(r"^# TYPE (\S+) (\S+)$", text, re.M))
        help_texts = dict(re.findall(r"^# HELP (\S+) (.+)$", text, re.M))
        units = dict(re.findall(r"^# UNIT (\S+) (\S+)$", self.get(Accept=OPENMETRICS)[1], re.M))
        labels = {}
        for name, line in re.findall(r"^(\w+?)(?:_bucket|_sum|_count)?(?:\{(.*)\})? \S+$", text,
                                     re.M):
            own = re.findall(r'(\w+)="', line)
            labels.setdefault(name, set()).update(own)
        rows = re.findall(r"^\| `(mrc_\w+)` \| (\w+) \| (\w*) ?\| ([\w, ]*?) ?\| (.+) \|$",
                          (ROOT / "docs/metrics.md").read_text(encoding="utf-8"), re.M)
        self.assertGreater(len(rows), 40)
        self.assertEqual({row[0] for row in rows}, set(types))
        for name, kind, unit, own, meaning in rows:
            with self.subTest(name):
                self.assertEqual(types[name], kind)
                self.assertEqual(units.get(name.removesuffix("_total"), ""), unit)
                self.assertEqual(help_texts[name].rstrip("."), meaning)
                expected = set(filter(None, own.split(", ")))
                if not name.startswith("mrc_exporter_"):
                    expected |= {"pid", "process", "device"}
                self.assertEqual(labels[name] - {"le"}, expected)

    def test_NumbersAreThoseOfStat(self):
        client = self.busy()
        before = self.device_of(client)["totals"]["sent_bytes"]
        scraped = re.search(rf'^mrc_sent_bytes_total{{pid="{client.pid}",process="mrc",'
                            r'device="mrc0"} (\S+)$', self.get()[1], re.M)
        after = self.device_of(client)["totals"]["sent_bytes"]
        self.assertLessEqual(before, float(scraped.group(1)))
        self.assertLessEqual(float(scraped.group(1)), after)

    def test_OpenMetricsEndsWithItsMark(self):
        self.busy()
        answer, text = self.get(Accept=OPENMETRICS)
        self.assertTrue(answer.headers["Content-Type"].startswith("application/openmetrics-text"))
        self.assertTrue(text.endswith("# EOF\n"))
        self.assertIn("# TYPE mrc_sent_bytes counter\n# UNIT mrc_sent_bytes bytes\n", text)
        self.assertIn("\nmrc_sent_bytes_total{", text)

    def test_StrangeRequestsGetOneClearAnswer(self):
        self.assertEqual(self.get("/nothing")[0].status, 404)
        self.assertEqual(self.get("/metrics?a=b")[0].status, 200)
        self.assertEqual(self.get(method="POST")[0].status, 405)
        answer, body = self.get(method="HEAD")
        self.assertEqual((answer.status, body), (200, ""))
        self.assertGreater(int(answer.headers["Content-Length"]), 0)
        for nonsense in (b"hello\r\n\r\n", b"\x16\x03\x01\x00\r\n\r\n",
                         b"GET metrics HTTP/1.1\r\n\r\n", b"GET /a\x07 HTTP/1.1\r\n\r\n"):
            self.assertTrue(self.say(nonsense).startswith(b"HTTP/1.1 400 "), nonsense)
        self.assertTrue(self.say(b"GET / HTTP/3\r\n\r\n").startswith(b"HTTP/1.1 505 "))
        self.assertTrue(self.say(b"GET / HTTP/1.1\r\nA: " + 9_000 * b"a").startswith(
            b"HTTP/1.1 431 "))
        self.assertEqual(self.get()[0].status, 200)  # as if nothing had been

    def test_SilentClientsKeepNobodyOut(self):
        silent = [socket.create_connection(("127.0.0.1", self.port)) for _ in range(100)]
        self.addCleanup(lambda: [link.close() for link in silent])
        self.assertEqual(self.get()[0].status, 200)

    def test_PortThatIsTakenIsOneLine(self):
        line = self.refused(1, "exporter", "--listen", f"127.0.0.1:{self.port}")
        self.assertIn(f"cannot listen at 127.0.0.1:{self.port}: Address already in use", line)
        for wrong in ("here", "127.0.0.1", "127.0.0.1:99999", ":1", "::1:9"):
            self.refused(2, "exporter", "--listen", wrong)

    def test_EndsInOrderWhenTold(self):
        self.exporter.terminate()
        self.assertEqual(self.exporter.wait(timeout=programs.WAIT_S), 0)

    @unittest.skipUnless(PROMTOOL, "there is no promtool here")
    def test_PromtoolFindsNothingWrong(self):
        self.busy()
        done = subprocess.run([PROMTOOL, "check", "metrics"], input=self.get()[1], text=True,
                              capture_output=True, check=False, timeout=programs.WAIT_S)
        self.assertEqual((done.returncode, done.stdout + done.stderr), (0, ""))
        for words in (("check", "rules", "mrc_rules.yml"), ("check", "config", "prometheus.yml"),
                      ("test", "rules", "mrc_rules_test.yml")):
            done = programs.run([PROMTOOL, *words], cwd=MONITORING)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_RulesDashboardAndFamiliesAreOfOnePiece(self):
        self.busy()
        types = set(re.findall(r"^# TYPE (\S+) \S+$", self.get()[1], re.M))
        for name in ("mrc_rules.yml", "mrc_rules_test.yml", "grafana_dashboard.json"):
            text = (MONITORING / name).read_text(encoding="utf-8")
            used = {word.removesuffix("_bucket") for word in re.findall(r"\bmrc_\w+", text)}
            self.assertLessEqual(used - {"mrc_rules", "mrc_rules_test"}, types, name)
        json.loads((MONITORING / "grafana_dashboard.json").read_text(encoding="utf-8"))

    @unittest.skipUnless(PROMETHEUS, "there is no Prometheus here")
    def test_PrometheusScrapesAndReadsTheRules(self):
        client = self.busy()
        text = (MONITORING / "prometheus.yml").read_text(encoding="utf-8")
        text = text.replace("127.0.0.1:9477", f"127.0.0.1:{self.port}").replace("5s", "1s")
        text = text.replace("mrc_rules.yml", str(MONITORING / "mrc_rules.yml"))
        config = pathlib.Path(self.folder, "prometheus.yml")
        config.write_text(text, encoding="utf-8")
        address = f"127.0.0.1:{programs.free_tcp_port()}"
        prometheus = programs.start([PROMETHEUS, f"--config.file={config}",
                                     f"--storage.tsdb.path={self.folder}/data",
                                     f"--web.listen-address={address}", "--log.level=error"])
        self.addCleanup(programs.end, prometheus)

        def query(expression):
            words = urllib.parse.urlencode({"query": expression})
            try:
                with urllib.request.urlopen(f"http://{address}/api/v1/query?{words}") as answer:
                    return json.load(answer)["data"]["result"]
            except OSError:
                return []
        rate = f'rate(mrc_sent_bytes_total{{pid="{client.pid}"}}[30s]) > 0'
        programs.eventually(lambda: query(rate), "Prometheus has no rate of the transfer")
        self.assertEqual(query("up")[0]["value"][1], "1")
        self.assertEqual(len(query(f'mrc_plane_up{{pid="{client.pid}"}}')), 4)
        with urllib.request.urlopen(f"http://{address}/api/v1/rules") as answer:
            rules = json.load(answer)["data"]["groups"][0]["rules"]
        programs.eventually(lambda: query("scrape_samples_scraped > 0"), "no samples")
        self.assertEqual(len(rules), 8)
        self.assertEqual({rule.get("lastError", "") for rule in rules}, {""})


if __name__ == "__main__":
    programs.main(Telemetry)
