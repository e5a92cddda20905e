#!/usr/bin/env python3
"""Runs `mrc fabric export --format frr8` with Debian's FRR, sends packets along every path.

Usage: frr_tables_test.py <mrc>. As linux_tables_test.py, but every switch is a network namespace
with a zebra and a staticd of its own, which get the exported configuration by vtysh; the commands
in its comments are run before, and nothing else. Exit status 1 when something is wrong, 77 when
this machine cannot do it: FRR 8 (Debian's package frr) and root are needed.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

import linux_tables_test as tables
from programs import skip  # found through the module above

DAEMONS = pathlib.Path("/usr/lib/frr")
COMMAND = "!$ "  # in front of what is to be run before FRR starts
FABRICS = {
    "two tiers": (["--hosts", "4", "--t0", "2", "--t1", "2"], [(0, 1), (0, 3), (3, 0)]),
    "several cables": (["--hosts", "2", "--t0", "2", "--t1", "1", "--cables", "2"], [(0, 1)]),
}


class FrrFabric(tables.Fabric):
    """Switches whose tables are FRR's."""

    def __init__(self, program, flags, plane):
        super().__init__(program, flags, plane)
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="mrc-frr-"))
        self.processes = []

    def inside(self, switch, *command):
        return subprocess.run(["ip", "netns", "exec", self.namespaces[switch], *command],
                              capture_output=True, text=True, check=False)

    def configure_switches(self):
        for switch in self.neighbours:
            self.configure(switch)

    def configure(self, switch):
        folder = self.folder / self.namespaces[switch]
        folder.mkdir()
        shutil.chown(folder, "frr", "frr")
        os.chmod(self.folder, 0o755)
        exported = subprocess.run(
            [self.program, "fabric", "export", "--format", "frr8", "--switch", switch, *self.flags],
            capture_output=True, text=True, check=True).stdout
        configuration = folder / "frr.conf"
        configuration.write_text(exported)
        for port in self.neighbours[switch]:
            tables.ip("-n", self.namespaces[switch], "link", "set", f"swp{port + 1}", "up")
        commands = [line.removeprefix(COMMAND) for line in exported.splitlines()
                    if line.startswith(COMMAND)]
        subprocess.run(["ip", "netns", "exec", self.namespaces[switch], "sh", "-e"],
                       input="\n".join(commands), text=True, check=True)
        for daemon in ("zebra", "staticd"):
            self.processes.append(subprocess.Popen(
                ["ip", "netns", "exec", self.namespaces[switch], DAEMONS / daemon,
                 "-i", folder / f"{daemon}.pid", "-z", folder / "zserv.api",
                 "--vty_socket", folder, "-A", "127.0.0.1", "-P", "0"],
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
            self.wait_for(folder / f"{daemon}.vty")
        told = self.inside(switch, "vtysh", "--vty_socket", str(folder), "-f", str(configuration))
        if told.returncode != 0 or "Unknown command" in told.stdout + told.stderr:
            raise SystemExit(f"{switch}: vtysh: {told.stdout}{told.stderr}")

    def configure_hosts(self):
        super().configure_hosts()
        # FRR installs a route once its port has a carrier, which takes the other end.
        for switch in self.neighbours:
            self.wait_for_addresses(switch)
            self.wait_for_routes(switch)

    def wait_for_addresses(self, switch):
        """Neighbours do not find one that is still looked at for another of its kind."""
        for _ in range(200):
            if not tables.ip("-n", self.namespaces[switch], "-6", "addr", "show",
                             "tentative").stdout.strip():
                return
            time.sleep(0.05)
        raise SystemExit(f"{switch}: its addresses stay tentative")

    @staticmethod
    def wait_for(path):
        for _ in range(200):
            if path.exists():
                return
            time.sleep(0.05)
        raise SystemExit(f"{path} does not come")

    def wait_for_routes(self, switch):
        wanted = {route["prefix"] for route in self.tables[switch]["routes"]}
        for _ in range(200):
            listed = tables.ip("-n", self.namespaces[switch], "-6", "route", "show").stdout
            missing = wanted - {line.split()[0] for line in listed.splitlines()}
            if not missing:
                return
            time.sleep(0.05)
        raise SystemExit(f"{switch}: FRR has not installed {sorted(missing)}")

    def close(self):
        for process in self.processes:
            process.terminate()
        for process in self.processes:
            process.wait()
        super().close()
        shutil.rmtree(self.folder)


def main():
    if not (DAEMONS / "staticd").exists():
        skip("FRR is not installed (package frr)")
    if os.geteuid() != 0:
        skip("FRR needs root")
    version = subprocess.run([DAEMONS / "zebra", "-v"], capture_output=True, text=True,
                             check=False).stdout.split("\n")[0]
    tables.enter_private_namespaces()
    tables.check_kernel()
    print(version)
    return tables.check_fabrics(sys.argv[1], FABRICS, FrrFabric)


if __name__ == "__main__":
    sys.exit(main())
