#!/usr/bin/env python3
"""Installs the packages of `make deb` into a Debian made for it and uses them there.

Usage: packages_test.py <folder with .deb files>. Takes root, debootstrap and a mirror of Debian
(MRC_DEBIAN_MIRROR, http://deb.debian.org/debian unless set); exit status 77 without them.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest
import urllib.error
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import programs  # noqa: E402  (found through the line above)

SUITE = "bookworm"
MIRROR = os.environ.get("MRC_DEBIAN_MIRROR", "http://deb.debian.org/debian")
NAMES = ["lib-mrc-dev", "lib-mrc1", "libnccl-net-openmrc", "openmrc", "openmrc-wireshark"]
MOST_S = 900
# Several processes on loopback, and what each says.
PERF = """
mrc perf write_bw -p 18599 >/tmp/server 2>&1 &
for i in $(seq 100); do
  if grep -q ':48A7 ' /proc/net/tcp /proc/net/tcp6; then break; fi
  sleep 0.1
done
mrc perf write_bw -p 18599 -n 200 --json 127.0.0.1 && wait $! && cat /tmp/server
"""
PROGRAM = """
#include <mrc.h>
#include <stdio.h>
int main(void) {
  int count = 0;
  struct ibv_device** list = ibv_get_device_list(&count);
  if (list == NULL || count == 0) return 1;
  puts(ibv_get_device_name(list[0]));
  ibv_free_device_list(list);
  return 0;
}
"""


def run(*command, **options):
    done = subprocess.run([str(word) for word in command], check=False, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=MOST_S,
                          **options)
    if done.returncode != 0:
        raise programs.Failed(f"{command}: {done.stdout[-4000:]}")
    return done.stdout


class Debian:
    """A fresh one in a folder. What runs there has processes and mounts of its own."""

    def __init__(self, folder):
        self.root = pathlib.Path(folder) / "debian"
        # It mounts things there, which must not outlive it.
        run("unshare", "--mount", "debootstrap", "--variant=minbase", SUITE, self.root, MIRROR)

    def run(self, script, network=False):
        # Without a network, but for apt: loopback is enough for everything of ours.
        own = ["unshare", "--mount", "--pid", "--fork", "--kill-child"]
        own += [] if network else ["--net"]
        start = ('mount -t proc proc "$0/proc" && mount -t tmpfs shm "$0/dev/shm" && '
                 + ('' if network else 'ip link set lo up && ') + 'exec chroot "$0" "$@"')
        environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root",
                       "LC_ALL": "C.UTF-8", "DEBIAN_FRONTEND": "noninteractive"}
        return run(*own, "sh", "-c", start, self.root, "sh", "-c", script, env=environment)

    def apt(self, words):
        return self.run(f"apt-get -q -y -o Acquire::Retries=3 --no-install-recommends {words}",
                        network=True)

    def files(self):
        listed = run("find", self.root / "usr", self.root / "lib/systemd", self.root / "etc",
                     "-name", "*mrc*")
        return sorted(line for line in listed.splitlines() if line)


class PackagesTest(unittest.TestCase):
    folder = None  # with the packages

    @classmethod
    def setUpClass(cls):
        place = tempfile.TemporaryDirectory(prefix="mrc-packages-")
        cls.addClassCleanup(place.cleanup)
        cls.debian = Debian(place.name)
        cls.before = cls.debian.files()
        target = cls.debian.root / "tmp" / "packages"
        target.mkdir()
        for name in NAMES:
            shutil.copy(next(cls.folder.glob(f"{name}_*.deb")), target)
        cls.debian.apt("install /tmp/packages/*.deb man-db bash-completion gcc libc6-dev "
                       "pkg-config ibverbs-utils")

    def test_1_the_program_runs(self):
        version = self.debian.run("mrc --version").split()[1]
        installed = self.debian.run("dpkg-query -W -f '${Version}' openmrc")
        self.assertEqual(installed, version)
        self.assertIn("mrc0", self.debian.run("mrc info"))
        simulation = "mrc sim --topology tiny --workload pair --bytes 64K"
        self.assertIn("hosts", self.debian.run(simulation))
        self.assertIn("mrc0", self.debian.run("mrc run ibv_devices"))

    def test_2_two_processes_on_loopback(self):
        self.assertIn("bandwidth", self.debian.run(PERF))

    def test_3_a_lab_breaks_and_heals(self):
        self.debian.run("mrc lab up --hosts 2 --planes 2 && mrc lab cut host:0/plane:1 && "
                        "mrc lab heal all && mrc perf allreduce --lab lab -e 64K; "
                        "status=$?; mrc lab down; exit $status")

    def test_3_the_demo_trains_and_ends(self):
        verdict = json.loads(self.debian.run("mrc demo --no-compare --json 2>/dev/null"))
        self.assertTrue(verdict)

    def test_4_pages_and_completions_are_found(self):
        self.debian.run("test -s /usr/share/man/man1/mrc-lab.1.gz")
        self.debian.run(
            "bash -c '. /usr/share/bash-completion/bash_completion; _completion_loader mrc; "
            "COMP_WORDS=(mrc exp); COMP_CWORD=1; _mrc; test \"$COMPREPLY\" = exporter'")

    def test_5_programs_are_built_with_it(self):
        (self.debian.root / "tmp/user.c").write_text(PROGRAM, encoding="ascii")
        out = self.debian.run("cd /tmp && gcc user.c $(pkg-config --cflags --libs mrc) -libverbs "
                              "-o user && ./user")
        self.assertEqual(out.strip(), "mrc0")

    def test_6_units_are_there_and_off(self):
        for unit in ("mrc-ctld", "mrc-exporter"):
            text = self.debian.run(f"cat /lib/systemd/system/{unit}.service")
            self.assertIn("ExecStart=/usr/bin/mrc ", text)
        self.assertNotIn("mrc", self.debian.run("ls -R /etc/systemd 2>/dev/null || true"))

    def test_9_nothing_is_left_when_they_go(self):
        self.debian.apt("purge " + " ".join(NAMES))
        self.assertEqual(self.debian.files(), self.before)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    PackagesTest.folder = pathlib.Path(sys.argv.pop()).resolve()
    if not list(PackagesTest.folder.glob("openmrc_*.deb")):
        sys.exit(f"packages_test: no packages in {PackagesTest.folder}; run make deb")
    if os.geteuid() != 0:
        programs.skip("a fresh Debian takes root")
    if shutil.which("debootstrap") is None:
        programs.skip("there is no debootstrap")
    try:
        with urllib.request.urlopen(f"{MIRROR}/dists/{SUITE}/InRelease", timeout=20):
            pass
    except (urllib.error.URLError, OSError) as error:
        programs.skip(f"{MIRROR} cannot be reached: {error}")
    programs.leave_cleanly_when_told()
    unittest.main(verbosity=2)


if __name__ == "__main__":
    main()
