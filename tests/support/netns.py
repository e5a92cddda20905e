"""Two hosts in network namespaces, joined by one veth pair per plane.

Everything lives in namespaces of this process (network, mounts, processes), so that all of it,
children included, vanishes with the process however it ends. Used by tests and by bench/macro.
"""

import ctypes
import fcntl
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

from programs import skip

CLONE_NEWNS = 0x00020000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000
MS_REC_PRIVATE = 0x4000 | 0x40000
PR_SET_PDEATHSIG = 1
SIOCGIFFLAGS = 0x8913
SIOCSIFFLAGS = 0x8914
IFF_UP = 1

HOSTS = ("a", "b")
LIBC = ctypes.CDLL(None, use_errno=True)


def write_file(path, text):
    with open(path, "w", encoding="ascii") as file:
        file.write(text)


def map_root(uid, gid):
    """Makes an ordinary user root of the new user namespace."""
    write_file("/proc/self/setgroups", "deny")
    write_file("/proc/self/uid_map", f"0 {uid} 1")
    write_file("/proc/self/gid_map", f"0 {gid} 1")


def mount(kind, target, flags=0):
    if LIBC.mount(b"none", target.encode(), kind.encode(), flags, None) != 0:
        skip(f"cannot mount {target}: {os.strerror(ctypes.get_errno())}")


def watch_over(child):
    """The part of the outer process: waits, and takes the inner one along at its end."""
    def end(number, _frame):
        os.kill(child, signal.SIGKILL)
        os._exit(128 + number)

    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGHUP, end)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the inner one gets it too and sums up
    _, status = os.waitpid(child, 0)
    os._exit(os.waitstatus_to_exitcode(status) if os.WIFEXITED(status) else 1)


def enter():
    """Continues in private namespaces. Exits with 77 and a sentence where that is not allowed."""
    uid, gid = os.getuid(), os.getgid()
    flags = CLONE_NEWNET | CLONE_NEWNS | CLONE_NEWPID | (CLONE_NEWUSER if uid != 0 else 0)
    if LIBC.unshare(flags) != 0:
        why = os.strerror(ctypes.get_errno())
        skip(f"no private network namespaces here ({why}); run as root")
    if uid != 0:
        map_root(uid, gid)
    sys.stdout.flush()
    child = os.fork()
    if child:
        watch_over(child)
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    mount("none", "/", MS_REC_PRIVATE)
    mount("tmpfs", "/run")
    mount("proc", "/proc")
    tempfile.tempdir = "/run"  # whatever is written vanishes as well


def ip(*words):
    done = subprocess.run(["ip", *words], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        skip(f"ip {' '.join(words)}: {done.stderr.strip()}")
    return done.stdout


class Process:
    """A program on a host. Output goes to files, so that nobody waits for a reader; what it used
    of the processor and of memory is known once it has ended."""

    def __init__(self, words, environment):
        self.words = [str(word) for word in words]
        self.output_file = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")
        self.error_file = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")
        self.popen = subprocess.Popen(self.words, env=environment, stdin=subprocess.DEVNULL,
                                      stdout=self.output_file, stderr=self.error_file)
        self.pid = self.popen.pid
        self.status = None  # exit status, or minus the signal
        self.cpu_s = None
        self.peak_rss_bytes = None

    def ended(self):
        if self.status is not None:
            return True
        pid, status, usage = os.wait4(self.pid, os.WNOHANG)
        if pid == 0:
            return False
        self.status = self.popen.returncode = os.waitstatus_to_exitcode(status)
        self.cpu_s = usage.ru_utime + usage.ru_stime
        self.peak_rss_bytes = usage.ru_maxrss * 1024
        return True

    def wait(self, timeout_s):
        """Waits for the end and returns the exit status; TimeoutError leaves it running."""
        deadline = time.monotonic() + timeout_s
        while not self.ended():
            if time.monotonic() > deadline:
                raise TimeoutError(f"{' '.join(self.words)}: not done after {timeout_s} s")
            time.sleep(0.005)
        return self.status

    def stop(self, number=signal.SIGKILL):
        if not self.ended():
            os.kill(self.pid, number)
        self.wait(10)

    def output(self):
        self.output_file.seek(0)
        return self.output_file.read()

    def errors(self):
        self.error_file.seek(0)
        return self.error_file.read()


class TwoHosts:
    """Hosts `a` and `b`: 10.77.<plane>.1 and .2, planes counted from 1, interfaces plane<n>."""

    def __init__(self, planes=4, mtu=9000):
        self.planes = planes
        for host in HOSTS:
            ip("netns", "add", host)
            ip("-n", host, "link", "set", "lo", "up")
        for plane in range(1, planes + 1):
            name = self.interface(plane)
            ip("link", "add", name, "netns", "a", "type", "veth", "peer", "name", name,
               "netns", "b")
            for host in HOSTS:
                ip("-n", host, "addr", "add", f"{self.address(host, plane)}/24", "dev", name)
                ip("-n", host, "link", "set", name, "mtu", str(mtu), "up")
        self.controls = {host: self.socket_in(host) for host in HOSTS}

    @staticmethod
    def socket_in(host, family=socket.AF_INET, kind=socket.SOCK_DGRAM, protocol=0):
        """A socket that lives on a host."""
        with open("/proc/self/ns/net", "rb") as here, open(f"/run/netns/{host}", "rb") as there:
            if LIBC.setns(there.fileno(), CLONE_NEWNET) != 0:
                raise OSError(ctypes.get_errno(), "setns")
            try:
                return socket.socket(family, kind, protocol)
            finally:
                LIBC.setns(here.fileno(), CLONE_NEWNET)

    @staticmethod
    def interface(plane):
        return f"plane{plane}"

    @staticmethod
    def address(host, plane=1):
        return f"10.77.{plane}.{HOSTS.index(host) + 1}"

    def set_link(self, host, plane, state):
        """`state` is "up" or "down"; with a veth pair the other end sees its carrier go. Done when
        it returns, and without a process of its own, so that the moment is known."""
        name = self.interface(plane).encode()
        request = bytearray(struct.pack("16sh14x", name, 0))
        fcntl.ioctl(self.controls[host], SIOCGIFFLAGS, request)
        flags, = struct.unpack("16xh14x", request)
        flags = flags | IFF_UP if state == "up" else flags & ~IFF_UP
        fcntl.ioctl(self.controls[host], SIOCSIFFLAGS, struct.pack("16sh14x", name, flags))

    def carried_bytes(self, host):
        """Bytes sent and received so far, one pair per plane."""
        links = json.loads(ip("-n", host, "-s", "-j", "link", "show"))
        stats = {link["ifname"]: link["stats64"] for link in links}
        return [tuple(stats[self.interface(plane)][way]["bytes"] for way in ("tx", "rx"))
                for plane in range(1, self.planes + 1)]

    @staticmethod
    def start(host, words, variables=None):
        environment = {**os.environ, **(variables or {})}
        return Process(["ip", "netns", "exec", host, *words], environment)
