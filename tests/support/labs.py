"""A lab (`mrc lab`) for tests and bench/: brought up, talked to, and gone afterwards."""

import json
import pathlib

import programs


def parent_of(pid):
    try:
        text = pathlib.Path("/proc", str(pid), "stat").read_text(encoding="ascii")
    except FileNotFoundError:
        return None
    return int(text.rsplit(")", 1)[1].split()[1])


class Lab:
    """One lab in a folder, and the programs started in its hosts."""

    def __init__(self, program, folder):
        self.program = program
        self.folder = folder
        self.processes = []
        self.settings = []  # NAME=value, for our own programs in its hosts

    def words(self, verb, *rest):
        return [self.program, "lab", verb, "--dir", self.folder, *rest]

    def attempt(self, verb, *rest):
        return programs.run(self.words(verb, *rest))

    def do(self, verb, *rest):
        done = self.attempt(verb, *rest)
        if done.returncode != 0:
            raise programs.Failed(f"mrc lab {verb} {' '.join(rest)}: {done.stderr.strip()}")
        return done.stdout

    def status(self):
        return json.loads(self.do("status", "--json"))

    def process(self):
        """The number of the one that is the lab."""
        return int(pathlib.Path(self.folder, "lab", "lock").read_text(encoding="ascii"))

    def start(self, host, *command, **options):
        process = programs.start(self.words("exec", str(host), *command), **options)
        self.processes.append(process)
        return process

    def start_tool(self, host, *words):
        return self.start(host, *(["env", *self.settings] if self.settings else []), self.program,
                          *words)

    def is_listening(self, host, port):
        """As the host sees it, which in a lab of namespaces has ports of its own."""
        tables = self.do("exec", str(host), "cat", "/proc/net/tcp", "/proc/net/tcp6")
        return programs.listens(tables, port)

    def start_server(self, host, port, *words):
        """The server of an `mrc perf`, once it listens."""
        server = self.start_tool(host, "perf", *words, "-p", str(port))
        programs.eventually(lambda: server.poll() is not None or self.is_listening(host, port),
                            "no server")
        if server.poll() is not None:
            raise programs.Failed(f"no server: {server.communicate()[1]}")
        return server

    def device_of(self, process):
        """What a program in a host says of itself; `process` is the `mrc lab exec` above it."""
        done = programs.run([self.program, "stat", "--json", "--at-once"])
        devices = json.loads(done.stdout)["devices"] if done.returncode == 0 else []
        return next((each for each in devices if parent_of(each["pid"]) == process.pid), None)

    def end_programs(self):
        for process in self.processes:
            programs.end(process)

    def close(self):
        try:
            self.end_programs()
        finally:
            self.attempt("down")


class LabTest(programs.ToolTest):
    """A test with a place for a lab, `self.lab`, that is down afterwards."""

    def setUp(self):
        super().setUp()
        self.lab = Lab(self.program, f"{self.folder}/l")
        self.addCleanup(self.lab.close)

    def up(self, *flags):
        return self.lab.do("up", "--hosts", "4", "--planes", "2", *flags)
