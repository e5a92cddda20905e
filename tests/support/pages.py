"""`mrc view` as a process, and what its page hears."""

import json
import socket
import urllib.parse

import programs


class View:
    """Starts with the test and ends with it."""

    def __init__(self, test, *words):
        self.process = test.start("view", *words)
        self.url = self.process.stdout.readline().strip()
        if not self.url.startswith("http://"):
            test.fail(f"no address: {self.url!r} {self.process.communicate()}")
        parts = urllib.parse.urlsplit(self.url)
        self.port = parts.port
        self.token = parts.path.strip("/")

    def stop(self):
        self.process.terminate()
        self.process.communicate(timeout=60)


class Stream:
    """A viewer without a browser: the lines of the page at `url`, as they come."""

    def __init__(self, url):
        parts = urllib.parse.urlsplit(url)
        self.socket = socket.create_connection((parts.hostname, parts.port),
                                               timeout=programs.WAIT_S)
        self.socket.sendall(f"GET {parts.path}stream HTTP/1.1\r\nHost: {parts.netloc}\r\n\r\n"
                            .encode())
        self.rest = b""
        self.bytes = 0
        head = self.upto(b"\r\n\r\n")
        if not head.startswith(b"HTTP/1.1 200 "):
            raise programs.Failed(f"no stream at {url}: {head[:80]}")

    def upto(self, mark):
        while mark not in self.rest:
            got = self.socket.recv(65536)
            if not got:
                raise programs.Failed("the stream has ended")
            self.rest += got
            self.bytes += len(got)
        part, _, self.rest = self.rest.partition(mark)
        return part

    def line(self):
        return self.upto(b"\n\n").decode().removeprefix("data: ")

    def value(self):
        return json.loads(self.line())

    def frame(self):
        while "l" not in (value := self.value()):
            pass
        return value

    def close(self):
        self.socket.close()
