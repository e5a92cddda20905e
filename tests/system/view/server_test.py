#!/usr/bin/env python3
"""The server of `mrc view`: who is let in, what is answered, what is refused.

Usage: server_test.py <path of mrc>
"""

import json
import os
import pathlib
import resource
import signal
import socket
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "support"))
import labs
import programs
from pages import Stream, View

FRAMES = 20
FRAME_NS = 250_000_000  # LabSource::kPeriodMs
PLACES = 64  # PageServer::kMaxConnections
FEW_DESCRIPTORS = 14
SOON_S = 5  # on a busy machine; who waits for a lab waits 30
MOST_SHARE = 0.02  # of a processor, for each viewer; processor time, not time on the wall
SIM = ("sim", "--hosts", "16", "--planes", "2", "--bytes", "200kB")


def exchange(port, request, asleep=None):
    """The status of the answer, its head and its body. A server that sleeps meanwhile finds the
    request together with the end of what its client says."""
    with socket.create_connection(("127.0.0.1", port), timeout=programs.WAIT_S) as peer:
        if asleep is not None:
            asleep.send_signal(signal.SIGSTOP)
        peer.sendall(request)
        if asleep is not None:
            peer.shutdown(socket.SHUT_WR)
            asleep.send_signal(signal.SIGCONT)
        answer = b""
        while got := peer.recv(65536):
            answer += got
    head, _, body = answer.partition(b"\r\n\r\n")
    return (int(head.split(b" ")[1]) if head else 0), head.decode(), body


def ask(view, path, headers=(), method="GET", body="", **options):
    lines = [f"{method} {path} HTTP/1.1", f"Host: 127.0.0.1:{view.port}", *headers]
    if body:
        lines.append(f"Content-Length: {len(body)}")
    text = "\r\n".join(lines) + "\r\n\r\n" + body
    return exchange(view.port, text.encode(), **options)


def processor_s(view):
    return int(pathlib.Path(f"/proc/{view.process.pid}/schedstat").read_text().split()[0]) / 1e9


class ServerTest(programs.ToolTest):
    def setUp(self):
        super().setUp()
        self.file = f"{self.folder}/run.mrcview"
        self.must(*SIM, "--record", self.file)

    def test_serves_the_page_to_who_has_the_address(self):
        view = View(self, self.file)
        status, head, body = ask(view, f"/{view.token}/")
        self.assertEqual(status, 200)
        self.assertIn("default-src 'none'", head)
        self.assertIn(b"page.js", body)
        for name in ("page.js", "page.css", "loader.js", "start.js"):
            self.assertEqual(ask(view, f"/{view.token}/{name}")[0], 200, name)

    def test_lets_nobody_else_in(self):
        view = View(self, self.file)
        page = f"/{view.token}/"
        other = "0" * len(view.token)
        for path in ("/", f"/{other}/", f"/{view.token}", f"/{view.token[:-1]}/", "/stream"):
            self.assertEqual(ask(view, path)[0], 403, path)
        evil = ["Origin: http://evil.example"]
        self.assertEqual(ask(view, page, evil)[0], 403)
        self.assertEqual(ask(view, page + "stream", evil)[0], 403)
        status, _, _ = exchange(view.port, f"GET {page} HTTP/1.1\r\nHost: evil.example:{view.port}"
                                "\r\n\r\n".encode())
        self.assertEqual(status, 403)

    def test_refuses_odd_requests(self):
        view = View(self, self.file)
        page = f"/{view.token}/"
        for path in (page + "../etc/passwd", page + "%2e%2e/x", page + "x?y"):
            self.assertEqual(ask(view, path)[0], 404, path)
        self.assertEqual(ask(view, page + "none.js")[0], 404)
        self.assertEqual(ask(view, page, method="DELETE")[0], 405)
        self.assertEqual(ask(view, page, ["X: " + "a" * 9000])[0], 431)
        self.assertEqual(ask(view, page + "act", ["Content-Type: application/json"], "POST",
                                  "x" * 5000)[0], 413)
        self.assertEqual(ask(view, page + "act", (), "POST", "{}")[0], 415)
        self.assertEqual(exchange(view.port, b"\x16\x03\x01\x00\r\n\r\n")[0], 400)
        deed = json.dumps({"verb": "cut", "target": "t0:0/plane:0", "value": ""})
        status, _, body = ask(view, page + "act", ["Content-Type: application/json"], "POST",
                              deed)
        self.assertEqual((status, body), (409, b"nothing here can be broken"))

    def connect(self, view, count, words=b""):
        for _ in range(count):
            peer = socket.create_connection(("127.0.0.1", view.port), timeout=programs.WAIT_S)
            self.addCleanup(peer.close)
            peer.sendall(words)

    def test_strangers_do_not_lock_the_owner_out(self):
        view = View(self, self.file)
        stream = Stream(view.url)
        self.addCleanup(stream.close)
        for _ in range(3):
            self.connect(view, PLACES)
            self.assertEqual(ask(view, f"/{view.token}/")[0], 200)
        stream.socket.setblocking(False)
        try:
            while stream.socket.recv(1 << 20):
                pass
            self.fail("a viewer had to go for a stranger")
        except BlockingIOError:
            pass

    def test_without_descriptors_strangers_go_and_the_server_rests(self):
        view = View(self, self.file)
        resource.prlimit(view.process.pid, resource.RLIMIT_NOFILE,
                         (FEW_DESCRIPTORS, FEW_DESCRIPTORS))
        self.connect(view, 30)
        self.assertEqual(ask(view, f"/{view.token}/")[0], 200)
        # Whoever has the address may stay, and the server waits for one of them to leave.
        self.connect(view, 30, f"GET /{view.token}/stream HTTP/1.1\r\n"
                     f"Host: 127.0.0.1:{view.port}\r\n\r\n".encode())
        time.sleep(0.5)
        before = processor_s(view)
        time.sleep(1)
        self.assertLess(processor_s(view) - before, 0.3)

    def test_answers_who_has_closed_its_half(self):
        view = View(self, self.file)
        for path, status in ((f"/{view.token}/", 200), (f"/{view.token}/none", 404)):
            self.assertEqual(ask(view, path, asleep=view.process)[0], status)
        self.assertEqual(exchange(view.port, b"GET / HT", asleep=view.process)[0], 0)

    def test_says_the_words_of_its_status(self):
        view = View(self, self.file)
        host = f"Host: 127.0.0.1:{view.port}\r\n\r\n"
        _, head, _ = exchange(view.port, f"GET / HTTP/1.0\r\n{host}".encode())
        self.assertTrue(head.startswith("HTTP/1.1 505 HTTP Version Not Supported\r\n"), head)
        _, head, _ = exchange(view.port, "GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n"
                              f"{host}".encode())
        self.assertTrue(head.startswith("HTTP/1.1 501 Not Implemented\r\n"), head)

    def test_streams_the_recording_as_it_is(self):
        view = View(self, self.file)
        lines = pathlib.Path(self.file).read_text(encoding="utf-8").splitlines()
        stream = Stream(view.url)
        self.addCleanup(stream.close)
        self.assertEqual([stream.line() for _ in lines], lines)

    def test_says_what_is_wrong_in_one_line(self):
        view = View(self, self.file)
        self.assertIn(f"port {view.port}", self.must_fail("--port", str(view.port), self.file))
        whole = pathlib.Path(self.file).read_text(encoding="utf-8")
        cut = pathlib.Path(f"{self.folder}/cut")
        cut.write_text(whole[:len(whole) // 2], encoding="utf-8")
        self.assertIn("was cut short", self.refused(2, "view", str(cut)))
        cut.write_text(whole.replace('"view":2', '"view":9', 1), encoding="utf-8")
        self.assertIn("version 9", self.refused(2, "view", str(cut)))
        self.refused(2, "view", self.file, "--host")
        self.refused(2, "view", self.file, "--lab", "lab")
        self.refused(1, "view", "--lab", "none", "--dir", self.folder)
        self.refused(2, "view", "")
        self.refused(2, "view", "--lab", "")

    def must_fail(self, *words):
        return self.refused(1, "view", *words)

    def test_keeps_a_token_in_a_file(self):
        token = f"{self.folder}/token"
        first = View(self, self.file, "--token-file", token)
        first.stop()
        second = View(self, self.file, "--token-file", token, "--port", str(first.port))
        self.assertEqual(first.url, second.url)
        self.assertEqual(os.stat(token).st_mode & 0o777, 0o600)

    def refuse_token(self, why, path):
        self.assertIn(why, self.refused(2, "view", self.file, "--token-file", str(path)))

    def test_takes_no_token_that_others_may_know(self):
        token = pathlib.Path(self.folder, "token")
        token.write_text("a" * 32 + "\n", encoding="ascii")
        token.chmod(0o640)
        self.refuse_token("others than you have access", token)
        token.chmod(0o600)
        link = pathlib.Path(self.folder, "link")
        link.symlink_to(token)
        self.refuse_token("is a symbolic link", link)
        os.mkfifo(f"{self.folder}/pipe", 0o600)
        self.refuse_token("is no regular file", f"{self.folder}/pipe")
        self.refuse_token("is no regular file", self.folder)
        for text in ("", "short\n", "a" * 65, "a" * 32 + "\nmore\n"):
            token.write_text(text, encoding="ascii")
            self.refuse_token("holds no token", token)
        token.write_text("a" * 32 + "\n", encoding="ascii")
        self.assertEqual(View(self, self.file, "--token-file", str(token)).token, "a" * 32)
        if os.geteuid() == 0:
            os.chown(token, 12345, -1)
            self.refuse_token("belongs to somebody else", token)


class ViewersTest(labs.LabTest):
    def cost(self, view, streams):
        """Processor seconds of the server for some frames with these viewers, what they heard."""
        before = processor_s(view)
        heard = [[stream.frame() for _ in range(FRAMES)] for stream in streams]
        return processor_s(view) - before, heard

    def test_ten_viewers_hear_the_same_and_cost_the_server_next_to_nothing(self):
        self.up()
        job = self.start("perf", "allreduce", "--lab", "lab", "--lab-dir", self.lab.folder, "-b",
                         "256K", "-e", "256K", "-w", "0", "-D", "3600", "--json")
        view = View(self, "--lab", "lab", "--dir", self.lab.folder)
        streams = [Stream(view.url)]
        alone, _ = self.cost(view, streams)
        streams += [Stream(view.url) for _ in range(9)]
        newest = streams[0].frame()["t"]
        for stream in streams:
            self.addCleanup(stream.close)
        for stream in streams[1:]:
            while stream.frame()["t"] < newest:
                pass
        together, heard = self.cost(view, streams)
        share = (together - alone) / 9 / (FRAMES * FRAME_NS / 1e9)
        self.assertLess(share, MOST_SHARE)
        # Whatever two of them heard of the same time is the same.
        known = {}
        for frame in (frame for frames in heard for frame in frames):
            self.assertEqual(known.setdefault(frame["t"], frame), frame)
        self.assertIsNone(job.poll())

    def next_with(self, stream, member):
        while member not in (value := stream.value()):
            pass
        return value

    def test_a_lab_that_does_not_answer_holds_up_nobody(self):
        self.up()
        view = View(self, "--lab", "lab", "--dir", self.lab.folder)
        stream = Stream(view.url)
        self.addCleanup(stream.close)
        stream.frame()
        lab = self.lab.process()
        self.addCleanup(os.kill, lab, signal.SIGCONT)
        os.kill(lab, signal.SIGSTOP)
        self.assertIn("does not answer", self.next_with(stream, "silent")["silent"])
        before = time.monotonic()
        self.assertEqual(ask(view, f"/{view.token}/")[0], 200)
        self.assertLess(time.monotonic() - before, SOON_S)
        deed = json.dumps({"verb": "cut", "target": "t0:0/t1:1/plane:0", "value": ""})
        status, _, body = ask(view, f"/{view.token}/act", ["Content-Type: application/json"],
                              "POST", deed)
        self.assertEqual(status, 504, body)
        self.assertIn(b"does not answer", body)
        os.kill(lab, signal.SIGCONT)
        stream.frame()
        os.kill(lab, signal.SIGSTOP)
        self.next_with(stream, "silent")
        view.process.send_signal(signal.SIGINT)
        before = time.monotonic()
        view.process.wait(timeout=programs.WAIT_S)
        self.assertLess(time.monotonic() - before, SOON_S)

    def test_a_lab_that_comes_up_again_is_shown_again(self):
        self.up()
        view = View(self, "--lab", "lab", "--dir", self.lab.folder)
        stream = Stream(view.url)
        self.addCleanup(stream.close)
        stream.frame()
        os.kill(self.lab.process(), signal.SIGKILL)
        self.assertIn("mrc lab up", self.next_with(stream, "gone")["gone"])
        self.lab.do("up", "--hosts", "6", "--planes", "2")
        self.assertEqual(self.next_with(stream, "view")["geometry"]["rows"][0]["count"], 6)
        stream.frame()
        late = Stream(view.url)
        self.addCleanup(late.close)
        self.assertEqual(late.value()["geometry"]["rows"][0]["count"], 6)


if __name__ == "__main__":
    programs.main()
