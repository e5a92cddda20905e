#!/usr/bin/env python3
"""The page of `mrc view` in a real browser: what it draws is what happened.

Usage: page_test.py <path of mrc> <folder for pictures>. Skipped where there is no chromium.
"""

import json
import os
import pathlib
import signal
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "support"))
import browser
import labs
import programs
from pages import View

DRAWN = "window.mrcPage?.history?.frames.length > 0 && window.mrcPage.view.drawn > 0"
ENDED = "window.mrcPage?.history?.ended === true && window.mrcPage.view.drawn > 0"
CUT = "t0:0/t1:1/plane:1"
DOWN = 5  # of the states of a lane
INTERRUPTED = 130
# Of each frame but the first in which a lane is down: its load, that of the way back, and of all
# other cables between switches together.
AFTER_CUT = """(() => {{
  const {{ history, layout }} = mrcPage;
  const after = [];
  for (let i = 0; i < history.frames.length; ++i) {{
    const lanes = history.lanesAt(i);
    if (lanes.state[{lane}] !== 5) continue;
    const cables = layout.geometry.cables;
    const elsewhere = lanes.load.reduce((sum, load, n) => sum
      + (cables[(n >> 1) % cables.length].tier > 0 && n >> 1 !== {lane} >> 1 ? load : 0), 0);
    after.push([lanes.load[{lane}], lanes.load[{lane} + 1], elsewhere]);
  }}
  return after.slice(1);
}})()"""


def lanes_at(lines, count):
    """What a recording says of each lane after so many frames: load, queue, state."""
    lanes = {}
    seen = 0
    for line in lines:
        frame = json.loads(line)
        if "l" not in frame:
            continue
        if frame.get("k") == 1:
            lanes = {}
        flat = frame["l"]
        for i in range(0, len(flat), 4):
            lanes[flat[i]] = flat[i + 1:i + 4]
        seen += 1
        if seen == count:
            break
    return {lane: value for lane, value in lanes.items() if value != [0, 0, 0]}


PAGE_LANES = """(() => {
  const lanes = mrcPage.lanes();
  const told = {};
  lanes.load.forEach((load, i) => {
    if (load || lanes.queue[i] || lanes.state[i]) told[i] = [load, lanes.queue[i], lanes.state[i]];
  });
  return told;
})()"""


class PageTest(labs.LabTest):
    pictures = None  # set by main()

    def setUp(self):
        super().setUp()
        self.browser = browser.Browser(f"{self.folder}/profile")
        self.addCleanup(self.browser.close)
        pathlib.Path(self.pictures).mkdir(parents=True, exist_ok=True)

    def picture(self, page, name):
        page.value("new Promise(requestAnimationFrame)")  # what was just told is drawn
        page.picture(f"{self.pictures}/{name}.png")

    def page_lanes(self, page):
        return {int(lane): value for lane, value in page.value(PAGE_LANES).items()}

    def record(self, *words):
        file = f"{self.folder}/run.mrcview"
        self.must("sim", *words, "--record", file)
        return file, pathlib.Path(file).read_text(encoding="utf-8").splitlines()

    def centre_of(self, page, cable):
        """Where on the screen a cable is, from its name."""
        return page.value(f"""(() => {{
          const {{ layout, view }} = mrcPage;
          const box = view.canvas.getBoundingClientRect();
          for (let plane = 0; plane < layout.geometry.planes; ++plane)
            for (let cable = 0; cable < layout.geometry.cables.length; ++cable)
              if (layout.cableName(plane, cable) === "{cable}") {{
                const [a, b] = view.cableEnds(plane, cable);
                return [box.x + a.x * 0.62 + b.x * 0.38, box.y + a.y * 0.62 + b.y * 0.38];
              }}
        }})()""")

    def test_a_recording_is_shown_as_it_is_and_wound_back(self):
        file, lines = self.record("--topology", "anchor-128", "--bytes", "1MB",
                                  "--fail", "t0:3/t1:5/plane:0 down @20us")
        page = self.browser.page(View(self, file).url)
        page.wait(ENDED, "the recording is shown")
        frames = page.value("mrcPage.history.frames.length")
        self.assertEqual(frames, sum(1 for line in lines if '"l":[' in line))
        self.assertEqual(self.page_lanes(page), lanes_at(lines, frames))
        for number in (frames // 2, 3, frames - 1, 40 % frames):
            page.value(f"mrcPage.seek(mrcPage.history.frames[{number}].at)")
            self.assertEqual(self.page_lanes(page), lanes_at(lines, number + 1), number)
        page.value("mrcPage.seek(mrcPage.history.frames[30 % mrcPage.history.frames.length].at)")
        page.value("mrcPage.search('host:0 host:127')")
        page.wait("document.querySelectorAll('#details td').length > 20", "paths are listed")
        page.value("mrcPage.search('host:50 host:127')")
        page.wait("document.getElementById('details').innerText.includes('down')", "one is down")
        self.picture(page, "recording-cut-cable")
        page.value("mrcPage.key('t')")
        self.picture(page, "recording-light")
        self.assertEqual(page.errors(), [])
        own = page.value("location.origin")
        for address in page.requests():
            self.assertTrue(address.startswith((own, "data:", "about:")), address)

    def test_packets_are_seen_one_by_one(self):
        file, _ = self.record("--hosts", "8", "--t0", "2", "--t1", "2", "--planes", "2",
                              "--bytes", "200kB")
        page = self.browser.page(View(self, file).url)
        page.wait(ENDED, "the recording is shown")
        self.assertGreater(page.value("mrcPage.history.moves.length"), 100)
        page.value("mrcPage.clock.speed = 1e-7, mrcPage.seek(6000)")
        page.wait("mrcPage.movesNow(mrcPage.history).length > 3", "packets are under way")
        self.picture(page, "slow-motion")

    def test_a_large_fabric_is_folded(self):
        file, _ = self.record("--topology", "anchor-128", "--hosts", "1024", "--t0", "64",
                              "--t1", "16", "--planes", "4", "--bytes", "100kB")
        page = self.browser.page(View(self, file).url)
        page.wait(ENDED, "the recording is shown")
        self.assertLess(page.value("mrcPage.layout.geometry.nodes"), 1024)
        self.picture(page, "1024-hosts")

    def start_job(self):
        """All-reduces over all hosts, every element checked, until they are told to end."""
        return self.start("perf", "allreduce", "--lab", "lab", "--lab-dir", self.lab.folder, "-b",
                          "256K", "-e", "256K", "-w", "0", "-D", "3600", "--json", "--verify-all")

    def end_job(self, job):
        job.send_signal(signal.SIGINT)
        out, err = job.communicate(timeout=programs.WAIT_S)
        self.assertIn(job.returncode, (0, INTERRUPTED), err)
        report = json.loads(out)
        self.assertEqual((report["ranks"], report["wrong"]), (4, 0))
        self.assertGreater(sum(row["rounds"] for row in report["results"]), 0)

    def choose(self, page, cable):
        x, y = self.centre_of(page, cable)
        page.click(x, y)
        page.wait(f"document.querySelector('#details h2')?.textContent === '{cable}'",
                  "it is chosen")

    def press(self, page, verb):
        """Presses a button as a hand does: numbers beside it change before it is let go."""
        box = page.value(f"""(() => {{
          const box = document.querySelector('[data-verb={verb}]').getBoundingClientRect();
          return [box.x + box.width / 2, box.y + box.height / 2]; }})()""")
        at = {"x": box[0], "y": box[1], "button": "left", "clickCount": 1}
        page.ask("Input.dispatchMouseEvent", type="mousePressed", **at)
        frames = page.value("mrcPage.history.frames.length")
        page.wait(f"mrcPage.history.frames.length > {frames + 1}", "the next frames come")
        page.ask("Input.dispatchMouseEvent", type="mouseReleased", **at)

    def captured(self, link):
        """How many frames leave on a link, both ways, within a second of the lab."""
        words = self.lab.do("capture", link, f"{self.folder}/frames.pcapng", "--seconds", "1")
        return int(words.split()[0].replace(",", ""))

    def test_a_click_cuts_a_cable_and_its_traffic_goes_elsewhere(self):
        self.up()
        view = View(self, "--lab", "lab", "--dir", f"{self.folder}/l")
        job = self.start_job()
        other = self.browser.page(view.url)  # the page in front hides it
        page = self.browser.page(view.url)
        page.wait(DRAWN, "the lab is shown")
        self.choose(page, CUT)
        lane = page.value("mrcPage.layout.laneUp(1, mrcPage.view.chosen.cable)")
        page.wait(f"mrcPage.lanes().load[{lane}] > 0 && mrcPage.lanes().load[{lane + 1}] > 0",
                  "the job uses the cable")
        self.press(page, "cut")
        page.wait(f"mrcPage.lanes().state[{lane}] === {DOWN}", "the cable is red")
        self.assertIn(CUT.replace("/t1", ">t1"), json.dumps(self.lab.status()))
        newest = "mrcPage.history.lanesAt(mrcPage.history.frames.length - 1)"
        other.ask("Page.bringToFront")
        other.wait(f"{newest}.state.some((state) => state === {DOWN})", "the other page knows it")
        page.ask("Page.bringToFront")

        self.assertEqual(self.captured(CUT), 0)
        self.assertGreater(self.captured(CUT.replace("t1:1", "t1:0")), 0)
        page.wait(AFTER_CUT.format(lane=lane) + ".length >= 4", "frames after the cut")
        after = page.value(AFTER_CUT.format(lane=lane))
        self.assertEqual({(up, down) for up, down, _ in after}, {(0, 0)})
        self.assertGreater(sum(elsewhere for _, _, elsewhere in after), 0)
        self.picture(page, "lab-cut-cable")

        page.value("mrcPage.key('h')")
        page.wait(f"mrcPage.lanes().state[{lane}] === 0", "the cable is healed")
        self.assertNotIn(CUT.replace("/t1", ">t1"), json.dumps(self.lab.status()))
        page.wait(f"mrcPage.lanes().load[{lane}] > 0", "the job uses the cable again")
        self.end_job(job)
        self.assertEqual(page.errors() + other.errors(), [])

    def test_a_click_on_a_host_shows_what_its_programs_tell(self):
        self.environment = programs.bare_environment()
        self.up()
        job = self.start_job()
        page = self.browser.page(View(self, "--lab", "lab", "--dir", f"{self.folder}/l").url)
        page.wait(DRAWN, "the lab is shown")
        page.value("mrcPage.search('host:2')")
        page.wait("document.getElementById('details').innerText.includes('round trip')",
                  "queue pairs of its programs")
        text = page.value("document.getElementById('details').innerText")
        self.assertIn("EVs by plane", text)
        told = page.value("mrcPage.history.reportAt(2, mrcPage.history.lastTime)")
        process = told["devices"][0]
        stat = json.loads(self.must("stat", "--json", "-p", str(process["pid"])))["devices"][0]
        self.assertIn(f"pid {process['pid']}", text)
        self.assertGreater(len(process["list"]), 0)
        self.assertLessEqual({pair["number"] for pair in process["list"]},
                             {pair["number"] for pair in stat["busiest_queue_pairs"]})
        self.assertEqual(sum(process["planes"][0]["paths"].values()),
                         sum(stat["planes"][0]["paths"].values()))
        # EVs that a cut port takes away are told as what they are.
        self.must("lab", "cut", "--dir", self.lab.folder, "host:2/plane:0")
        page.wait("/plane 0\\s.*port down/.test("
                  "document.getElementById('details').innerText)", "its port is down")
        self.picture(page, "host-details")
        self.end_job(job)
        page.wait("mrcPage.history.reportAt(2, mrcPage.history.lastTime).devices.length === 0",
                  "its programs are gone")

    def start_transfer(self):
        port = programs.free_tcp_port()
        server = self.start("perf", "write_bw", "-p", str(port))
        programs.eventually(lambda: programs.is_listening(port), "the server does not listen")
        return server, self.start("perf", "write_bw", "-p", str(port), "-D", "3600", "127.0.0.1")

    def test_the_processes_of_this_host_are_shown_without_a_lab(self):
        self.environment = programs.device_environment(self.folder)
        view = View(self, "--dir", f"{self.folder}/l")  # no lab runs there
        page = self.browser.page(view.url)
        page.wait(DRAWN, "the page is shown")
        page.wait("document.getElementById('note').textContent.includes('no process')",
                  "nothing runs yet")
        server, client = self.start_transfer()
        page.wait("mrcPage.history.devices().names.size === 2", "both programs are there")
        names = page.value("[...mrcPage.history.devices().names]")
        self.assertEqual({int(name.split()[1]) for _, name in names}, {server.pid, client.pid})
        self.assertEqual(page.value("mrcPage.layout.geometry.planes"), 4)
        node = next(node for node, name in names if name.split()[1] == str(client.pid))
        lane = f"mrcPage.layout.laneUp(3, {node})"
        page.wait(f"mrcPage.lanes().load[{lane}] > 0", "the client sends on plane 3")
        page.wait("mrcPage.history.frames.at(-1).planeBytes.slice(0, 4).every((n) => n > 0)",
                  "goodput of each plane")
        page.value(f"mrcPage.search('{client.pid}')")
        page.wait("document.getElementById('details').innerText.includes('round trip')",
                  "its queue pairs")
        self.assertIn("EVs by plane", page.value("document.getElementById('details').innerText"))

        # A port that a controller turns off is port 4 to programs, plane 3 to people.
        self.must("ctl", "port", "disable", "4")
        page.wait(f"mrcPage.lanes().state[{lane}] === {DOWN}", "plane 3 of it is down")
        page.wait("/plane 3\\s.*port down/.test(document.getElementById('details').innerText)",
                  "its details tell")
        page.wait("mrcPage.history.faults.some((f) => f.begins && f.text.endsWith('plane 3 down'))",
                  "a mark in the charts")
        stat = json.loads(self.must("stat", "--json", "-p", str(client.pid)))["devices"][0]
        self.assertEqual([(plane["plane"], plane["port"], plane["enabled"])
                          for plane in stat["planes"]],
                         [(0, 1, True), (1, 2, True), (2, 3, True), (3, 4, False)])
        self.picture(page, "this-host")
        self.must("ctl", "port", "enable", "4")
        page.wait(f"mrcPage.lanes().state[{lane}] === 0", "plane 3 is back")
        for program in (client, server):
            programs.end(program)
        page.wait("mrcPage.history.devices().names.size === 0", "both are gone")
        self.assertEqual(page.errors(), [])

    def test_a_simulated_host_shows_what_it_thinks_of_its_paths(self):
        file, lines = self.record("--hosts", "16", "--t0", "4", "--t1", "4", "--planes", "2",
                                  "--bytes", "2MB", "--fail", "t0:1/t1:0/plane:1 down @10us")
        told = [line for line in map(json.loads, lines) if "senders" in line]
        bad = next(line for line in told if any(sender["bad"] for sender in line["senders"]))
        page = self.browser.page(View(self, file).url)
        page.wait(ENDED, "the recording is shown")
        page.value(f"mrcPage.search('host:{bad['host']}')")
        page.value(f"mrcPage.seek({bad['t']})")
        page.wait("document.getElementById('details').innerText.includes('EVs that are not good')",
                  "its bad paths")
        text = page.value("document.getElementById('details').innerText")
        sender = next(sender for sender in bad["senders"] if sender["bad"])
        self.assertIn(f"queue pair to host:{sender['peer']}", text)
        self.assertIn(f"{sender['planes'][1][2]} assumed_bad", text)
        self.assertTrue(all(plane == 1 for plane, _, _ in sender["bad"]), sender)
        self.picture(page, "host-of-simulation")

    def test_a_cable_shows_its_counters(self):
        file, lines = self.record("--topology", "anchor-128", "--bytes", "1MB",
                                  "--fail", "t0:3/t1:5/plane:0 down @20us")
        tallies = {}
        for line in lines:
            flat = json.loads(line).get("e", [])
            tallies.update({flat[i]: flat[i + 1:i + 4] for i in range(0, len(flat), 4)})
        page = self.browser.page(View(self, file).url)
        page.wait(ENDED, "the recording is shown")
        lane = page.value("""mrcPage.layout.laneUp(0, mrcPage.layout.geometry.cables.findIndex(
          (_, cable) => mrcPage.layout.cableName(0, cable) === 't0:3/t1:5/plane:0'))""")
        self.assertGreater(tallies[lane][2], 0)
        self.choose(page, "t0:3/t1:5/plane:0")
        self.assertIn(f"{tallies[lane][1]} trimmed, {tallies[lane][2]} dropped",
                      page.value("document.getElementById('details').innerText"))

    def test_a_page_finds_its_server_again(self):
        file, _ = self.record("--hosts", "16", "--planes", "2", "--bytes", "100kB")
        self.up()
        token = f"{self.folder}/token"
        words = ("--lab", "lab", "--dir", f"{self.folder}/l", "--token-file", token)
        first = View(self, *words)
        page = self.browser.page(first.url)
        page.wait(DRAWN, "the lab is shown")
        first.stop()
        page.wait("document.getElementById('state').className === 'lost'", "the loss is seen")
        View(self, *words, "--port", str(first.port))
        page.wait("document.getElementById('state').className === 'open'", "it is back")
        page.wait(DRAWN, "the lab is shown again")

    def test_a_dead_lab_looks_dead_until_it_is_up_again(self):
        self.up()
        page = self.browser.page(View(self, "--lab", "lab", "--dir", f"{self.folder}/l").url)
        page.wait(DRAWN, "the lab is shown")
        self.choose(page, CUT)
        buttons = "document.querySelectorAll('[data-verb]').length"
        page.wait(f"{buttons} === 5", "it can be broken")
        os.kill(self.lab.process(), signal.SIGKILL)
        page.wait("document.getElementById('state').className === 'gone'", "its end is seen")
        page.wait(f"{buttons} === 0", "nothing can be broken")
        page.wait("document.getElementById('details').innerText.includes('what it said last')",
                  "its numbers are old")
        self.assertIn("mrc lab up", page.value("document.getElementById('note').textContent"))
        self.assertNotIn("b/s", page.value("document.getElementById('figures').textContent"))
        self.picture(page, "dead-lab")
        self.up()
        page.wait("document.getElementById('state').className === 'open'", "it is back")
        page.wait(f"{DRAWN} && {buttons} === 5", "it is shown again, and can be broken")
        self.assertEqual(page.errors(), [])

    def test_a_page_that_nobody_sees_gives_its_stream_back(self):
        self.up()
        page = self.browser.page(View(self, "--lab", "lab", "--dir", f"{self.folder}/l").url)
        page.wait(DRAWN, "the lab is shown")
        self.choose(page, CUT)
        other = self.browser.page("about:blank")
        page.wait("document.getElementById('state').className === 'asleep'", "it is hidden")
        self.assertEqual(page.value("mrcPage.source.events"), None)
        other.close()
        page.ask("Page.bringToFront")
        page.wait(f"document.getElementById('state').className === 'open' && {DRAWN}",
                  "it is back")
        self.assertEqual(page.value("document.querySelector('#details h2').textContent"), CUT)
        page.value("""window.fetch = (_, { signal }) => new Promise((_, fail) =>
          signal.addEventListener("abort", () => fail(new Error("aborted"))))""")
        page.value("mrcPage.key('c')")
        page.wait("document.getElementById('note').textContent.includes('no answer for 10 s')",
                  "a button that nobody hears says so")

    def test_the_seventh_tab_loads_and_all_can_act(self):
        self.up()
        view = View(self, "--lab", "lab", "--dir", f"{self.folder}/l")
        tabs = []
        for _ in range(7):
            tabs.append(self.browser.page(view.url))
            tabs[-1].wait(DRAWN, f"tab {len(tabs)} is shown")
        self.assertEqual(tabs[0].value(f"mrcPage.source.act('cut', '{CUT}', '')"), f"cut {CUT}")

    def test_an_exact_name_chooses_exactly_that(self):
        file, _ = self.record("--hosts", "16", "--t0", "4", "--t1", "4", "--planes", "2",
                              "--bytes", "100kB")
        page = self.browser.page(View(self, file).url)
        page.wait(ENDED, "the recording is shown")
        for text, kind in ((CUT, "cable"), ("t1:1/plane:1", "node"), ("host:3/plane:1", "node")):
            page.value(f"mrcPage.search('{text}')")
            page.wait(f"document.querySelector('#details h2')?.textContent === '{text}'", text)
            self.assertEqual(page.value("mrcPage.view.chosen.kind"), kind)
        for text in ("t0:0/t1:1", "t0:0/t1", "t0:99", "down"):
            page.value(f"mrcPage.search('{text}')")
            self.assertEqual(page.value("mrcPage.view.chosen"), None, text)

    def test_an_odd_recording_is_told_in_a_line(self):
        rows = [{"kind": "host", "count": 1 << 20, "fold": 1, "gbps": 100, "delay_ns": 1}]
        whole = {"planes": 1, "rows": rows * 8, "cables": []}
        odd = [({"geometry": None}, "the geometry is missing"),
               ({"geometry": {"planes": 1, "rows": [None], "cables": []}}, "a row is missing"),
               ({"geometry": {**whole, "rows": rows * 16}}, "has 16 rows"),
               ({"geometry": whole}, "this page draws up to 131072"),
               ({"geometry": whole, "counters": [["drops", "x"]] * 100_000}, "100000 counters")]
        file = pathlib.Path(self.folder, "odd.mrcview")
        for header, why in odd:
            text = json.dumps({"view": 2, "title": "odd", **header}, separators=(",", ":"))
            file.write_text(text + '\n{"end":1,"t":0,"note":""}\n', encoding="ascii")
            page = self.browser.page(View(self, str(file)).url)
            page.wait(f"document.getElementById('note').textContent.includes({json.dumps(why)})",
                      why)
            self.assertEqual(page.errors(), [])
            page.close()

    def test_a_stranger_sees_nothing(self):
        file, _ = self.record("--hosts", "16", "--planes", "2", "--bytes", "100kB")
        view = View(self, file)
        page = self.browser.page(view.url.replace(view.token, "0" * len(view.token)))
        page.wait("document.body.innerText.includes('Not for you')", "a refusal")


if __name__ == "__main__":
    if browser.find() is None:
        programs.skip("there is no chromium")
    programs.main(PageTest, "pictures")
