"""Debian's chromium without a screen, driven through a pipe: no port, no driver, no package."""

import base64
import json
import os
import pathlib
import select
import shutil
import subprocess
import time

import programs

FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
         "--disable-background-networking", "--disable-component-update", "--disable-sync",
         "--disable-extensions", "--disable-dev-shm-usage", "--hide-scrollbars",
         "--remote-debugging-pipe"]


def find():
    return shutil.which("chromium")


class Browser:
    """One browser with any number of pages; its profile lies in `folder`."""

    def __init__(self, folder, width=1280, height=720):
        to_browser, self.writer = os.pipe()
        self.reader, from_browser = os.pipe()

        def place():
            # It reads descriptor 3 and writes 4; the originals may be either.
            one, two = os.dup(to_browser), os.dup(from_browser)
            os.dup2(one, 3)
            os.dup2(two, 4)
            os.set_inheritable(3, True)
            os.set_inheritable(4, True)

        self.process = subprocess.Popen(
            [find(), *FLAGS, f"--window-size={width},{height}", f"--user-data-dir={folder}",
             "about:blank"], close_fds=False, preexec_fn=place,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_browser)
        os.close(from_browser)
        self.number = 0
        self.rest = b""
        self.events = []

    def close(self):
        self.process.kill()
        self.process.wait()
        os.close(self.writer)
        os.close(self.reader)

    def processor_s(self):
        """Of all its processes so far."""
        ticks, children = {}, {}
        for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
            try:
                fields = stat.read_text(encoding="utf-8").rpartition(")")[2].split()
            except OSError:
                continue
            pid = int(stat.parent.name)
            children.setdefault(int(fields[1]), []).append(pid)
            ticks[pid] = int(fields[11]) + int(fields[12])
        family = [self.process.pid]
        for pid in family:
            family += children.get(pid, [])
        return sum(ticks.get(pid, 0) for pid in family) / os.sysconf("SC_CLK_TCK")

    def receive(self, until):
        while b"\0" not in self.rest:
            left = until - time.monotonic()
            if left <= 0 or not select.select([self.reader], [], [], left)[0]:
                raise programs.Failed("the browser does not answer")
            got = os.read(self.reader, 1 << 20)
            if not got:
                raise programs.Failed("the browser is gone")
            self.rest += got
        message, self.rest = self.rest.split(b"\0", 1)
        return json.loads(message)

    def ask(self, method, session=None, **parameters):
        self.number += 1
        request = {"id": self.number, "method": method, "params": parameters}
        if session is not None:
            request["sessionId"] = session
        os.write(self.writer, json.dumps(request).encode() + b"\0")
        until = time.monotonic() + programs.WAIT_S
        while True:
            message = self.receive(until)
            if message.get("id") == self.number:
                if "error" in message:
                    raise programs.Failed(f"{method}: {message['error']}")
                return message["result"]
            self.events.append(message)

    def page(self, url):
        return Page(self, url)


class Page:
    def __init__(self, browser, url):
        self.browser = browser
        target = browser.ask("Target.createTarget", url="about:blank")["targetId"]
        self.target = target
        self.session = browser.ask("Target.attachToTarget", targetId=target,
                                   flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network"):
            self.ask(f"{domain}.enable")
        self.open(url)

    def ask(self, method, **parameters):
        return self.browser.ask(method, self.session, **parameters)

    def open(self, url):
        self.ask("Page.navigate", url=url)

    def close(self):
        self.browser.ask("Target.closeTarget", targetId=self.target)

    def value(self, expression):
        """What an expression of the page comes to."""
        result = self.ask("Runtime.evaluate", expression=expression, returnByValue=True,
                          awaitPromise=True)
        if "exceptionDetails" in result:
            raise programs.Failed(f"{expression}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def wait(self, expression, what):
        def holds():
            try:
                return self.value(expression)
            except programs.Failed:
                return False
        programs.eventually(holds, what)

    def click(self, x, y, shift=False):
        for kind in ("mousePressed", "mouseReleased"):
            self.ask("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1,
                     modifiers=8 if shift else 0)

    def picture(self, path):
        data = self.ask("Page.captureScreenshot", format="png")["data"]
        pathlib.Path(path).write_bytes(base64.b64decode(data))

    def requests(self):
        """Every address that the page asked for."""
        self.value("0")
        return [event["params"]["request"]["url"] for event in self.browser.events
                if event.get("method") == "Network.requestWillBeSent"
                and event.get("sessionId") == self.session]

    def errors(self):
        return [event["params"] for event in self.browser.events
                if event.get("method") == "Runtime.exceptionThrown"
                and event.get("sessionId") == self.session]
