#!/usr/bin/env python3
"""Builds stranger.c against the compat prefix as public MRC programs are built, and runs it.

Usage: interop_test.py --cc CC --libraries DIR --mrc PROGRAM CASE

CASE is one of the functions below whose name begins with `test_`.
"""

import argparse
import os
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "support"))

import programs  # noqa: E402  (found through the line above)

FOUND = "mrc0 mrc=1 mlx5=0 direct=EOPNOTSUPP dmabuf=EOPNOTSUPP"
# What the shim that turns verbs programs into MRC programs looks up, and by which versions.
SHIM_MRC = ["mrc_" + name for name in """query_device create_context destroy_context create_cq
poll_cq destroy_cq create_qp_hint destroy_qp_hint create_qp modify_qp query_qp get_qpn post_send
post_recv destroy_qp""".split()]
SHIM_VERBS = ["ibv_" + name + "@IBVERBS_1.1" for name in """get_device_list free_device_list
get_device_name open_device close_device get_async_event ack_async_event query_device query_port
query_gid alloc_pd dealloc_pd reg_mr dereg_mr fork_init event_type_str""".split()] + [
    "ibv_reg_mr_iova2@IBVERBS_1.8", "ibv_query_ece@IBVERBS_1.10", "ibv_set_ece@IBVERBS_1.10",
    "ibv_reg_dmabuf_mr@IBVERBS_1.12"]


class Setup:
    def __init__(self, arguments, folder):
        self.cc, self.mrc, self.folder = arguments.cc, arguments.mrc, pathlib.Path(folder)
        self.prefix = arguments.libraries / "mrc" / "compat"
        self.libraries = next((self.prefix / "lib").iterdir())
        self.environment = programs.device_environment(folder)

    def build(self, *libraries):
        program = self.folder / "stranger"
        command = [self.cc, "-Wall", "-Wextra", "-Werror", "-std=gnu11", f"-I{self.prefix}/include",
                   HERE / "stranger.c", f"-L{self.libraries}", f"-Wl,-rpath,{self.libraries}",
                   "-o", program, *libraries, "-ldl"]
        done = programs.run(list(map(str, command)))
        assert done.returncode == 0, done.stderr
        return str(program)

    def run(self, *words, **variables):
        done = programs.run(list(map(str, words)), env=self.environment | variables)
        assert done.returncode == 0, f"{words} ended with {done.returncode}:\n{done.stdout}" \
            f"{done.stderr}"
        return done.stdout

    def under_run(self, *words, **variables):
        return self.run(self.mrc, "run", *words, **variables)


def test_order_of_libraries_does_not_matter(setup):
    for order in (["-libverbs", "-lnv_mrc"], ["-lnv_mrc", "-libverbs"]):
        program = setup.build(*order)
        assert setup.run(program, "devices").splitlines()[0] == FOUND, order
        # Here nothing has loaded a libibverbs before we look for the real one.
        assert setup.under_run(program, "devices").splitlines()[0] == FOUND, order
        print("ok   ", *order)


def test_a_plug_in_works_where_another_libibverbs_is_loaded(setup):
    """As in a process whose own InfiniBand support came first; loaded, it is not loaded again."""
    plug_in = setup.build("-shared", "-fPIC", "-libverbs", "-lnv_mrc")
    load = ("import ctypes, sys\n"
            "try:\n    ctypes.CDLL('libibverbs.so.1')\n"
            "except OSError:\n    sys.exit(0)\n"
            "words = (ctypes.c_char_p * 2)(b'stranger', b'devices')\n"
            "sys.exit(ctypes.CDLL(sys.argv[1]).main(2, words))\n")
    text = setup.run(sys.executable, "-c", load, plug_in)
    if not text:
        programs.skip("no other libibverbs")
    assert text.splitlines()[0] == FOUND, text


def test_a_program_linked_with_another_libibverbs_works_under_run(setup):
    """As many distributions have it: the real library first in line."""
    probe = programs.run([setup.cc, "-print-file-name=libibverbs.so"])
    real = probe.stdout.strip()
    if not real.startswith("/"):
        programs.skip("no libibverbs to link with")
    program = setup.build(real, "-lnv_mrc")
    assert setup.under_run(program, "devices").splitlines()[0] == FOUND


def test_sysfs_shows_our_devices_under_run_only(setup):
    program = setup.build("-libverbs", "-lnv_mrc")
    alone = setup.run(program, "sysfs")
    assert "device: mrc0" not in alone and "path: No such file" in alone, alone
    text = setup.under_run(program, "sysfs")
    wanted = ["device: mrc0", "path: /sys/devices/virtual/net/lo", "type: RoCE v2",
              "gid: 0000:0000:0000:0000:0000:ffff:7f00:0001",
              "last gid: 0000:0000:0000:0000:0000:ffff:7f00:0001",
              "no such gid: No such file or directory", "other device: -1"]
    missing = [line for line in wanted if line not in text.splitlines()]
    assert not missing, f"{missing} not in:\n{text}"
    real = sorted(os.listdir("/sys/class/infiniband")) if os.path.exists(
        "/sys/class/infiniband") else []
    shown = [line.split()[1] for line in text.splitlines() if line.startswith("device: ")]
    assert sorted(shown) == sorted([*real, "mrc0"]), shown
    assert setup.under_run("--no-sysfs", program, "sysfs") == alone
    trees = list(setup.folder.glob("mrc0/sysfs-*"))
    assert len(trees) == 1, f"the second run uses the first one's: {trees}"


def test_sysfs_of_our_devices_is_read_only(setup):
    program = setup.build("-libverbs", "-lnv_mrc")
    assert setup.under_run(program, "writing").splitlines() == [
        "write EACCES EACCES EACCES", "stream EACCES EACCES EACCES done", "make EACCES",
        "may EACCES", "elsewhere done"]
    gids = list(setup.folder.glob("mrc0/sysfs-*/class/infiniband/mrc0/ports/1/gids/0"))
    assert len(gids) == 1 and gids[0].read_text(encoding="ascii") != "", gids


def test_sysfs_of_somebody_else_is_not_believed(setup):
    """A folder in /tmp that another user was there to make first, or may write to."""
    if os.geteuid() != 0:
        programs.skip("needs root, to make folders of others")
    program = setup.build("-libverbs", "-lnv_mrc")
    settings = dict(line.removeprefix("export ").split("=", 1)
                    for line in setup.under_run("--print").splitlines())
    variables = {name: value.strip("'") for name, value in settings.items()}
    tree = variables["MRC_SYSFS_DIR"]
    assert "device: mrc0" in setup.run(program, "sysfs", **variables)
    os.chown(tree, 12345, 12345)
    assert "device: mrc0" not in setup.run(program, "sysfs", **variables)
    assert "device: mrc0" in setup.under_run(program, "sysfs"), "makes one of its own beside it"
    os.chown(tree, 0, 0)
    os.chmod(tree, 0o777)
    assert "device: mrc0" not in setup.run(program, "sysfs", **variables)


def test_sysfs_looks_nothing_up_in_a_child(setup):
    """dlsym() takes a lock that another thread of the parent may have held. The dynamic linker
    tells what it looks up and for whom."""
    program = setup.build("-libverbs", "-lnv_mrc")
    log = setup.folder / "linker"
    text = setup.under_run(program, "child", LD_BIND_NOW="1", LD_DEBUG="symbols",
                           LD_DEBUG_OUTPUT=str(log))
    _, pid, status = text.split()
    assert status == "0", text
    told = "".join(file.read_text(encoding="utf-8", errors="replace")
                   for file in setup.folder.glob("linker.*"))
    assert "symbol=opendir;" in told, "the linker tells nothing"
    late = [line for line in told.splitlines()
            if line.split(":", 1)[0].strip() == pid and "symbol=" in line]
    assert not late, late


def test_variables_name_libraries_that_have_what_is_looked_up(setup):
    program = setup.build("-libverbs", "-lnv_mrc")
    for variable, names in (("VMRC_LIBMRC_SO", SHIM_MRC), ("VMRC_LIBIBVERBS_SO", SHIM_VERBS),
                            ("NCCL_IBVERBS_LIB", SHIM_VERBS)):
        text = setup.under_run(program, "symbols", variable, *names)
        assert text == f"looked up: {len(names)}\n", f"{variable}: {text}"
    # What the user names counts.
    text = setup.under_run("--print", NCCL_IBVERBS_LIB="/elsewhere/libibverbs.so")
    assert "NCCL_IBVERBS_LIB" not in text and "VMRC_LIBMRC_SO" in text, text


def test_the_prefix_has_what_its_links_name(setup):
    for path in setup.libraries.iterdir():
        assert path.exists(), f"{path} leads nowhere"
        assert not os.path.isabs(os.readlink(path)) if path.is_symlink() else True, path


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cc", required=True)
    parser.add_argument("--libraries", type=pathlib.Path, required=True)
    parser.add_argument("--mrc", required=True)
    parser.add_argument("case")
    arguments = parser.parse_args()
    programs.leave_cleanly_when_told()
    with programs.own_folder() as folder:
        globals()["test_" + arguments.case](Setup(arguments, folder))
    return 0


if __name__ == "__main__":
    sys.exit(main())
