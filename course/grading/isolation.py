"""Shutting answers in: no network, files that can only be read, processes of their own, limits.

Linux's ``unshare`` makes the namespaces, where the system allows it to an ordinary user. Elsewhere
the limits alone hold, and whoever grades is told. An examiner is started with ``namespaces``, calls
``protect_files`` and ``hide_memory`` once, and ``limit`` in each process that runs an answer.
"""

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

UNSHARE = (
    *("unshare", "--map-root-user", "--net", "--ipc", "--uts", "--mount", "--mount-proc"),
    *("--pid", "--fork", "--kill-child"),
)
SYSTEM = {"bin", "sbin", "usr", "lib", "lib32", "lib64", "libx32", "proc", "sys", "dev", "nix"}
LINKER = Path("/etc/ld.so.cache"), Path("/etc/alternatives")  # that shared libraries are found by
NO_SUID, NO_DEVICES, BIND, RECURSIVE = 2, 4, 0x1000, 0x4000
MOUNT_SETATTR, AT_FDCWD, AT_RECURSIVE, ATTR_RDONLY = 442, -100, 0x8000, 1
SET_PDEATHSIG, SET_DUMPABLE, SET_NO_NEW_PRIVS = 1, 4, 38

_first = False  # whether this process is the first of a namespace, and all others are an answer's


def namespaces() -> tuple[tuple[str, ...], list[str]]:
    """What to write before a command to run it in namespaces of its own, and what is lacking."""
    if sys.platform != "linux":
        return (), [f"no namespaces on {sys.platform}"]
    try:
        subprocess.run([*UNSHARE, "true"], capture_output=True, text=True, check=True)
    except subprocess.CalledProcessError as error:
        return (), [f"namespaces are refused ({error.stderr.strip()})"]
    except OSError as error:
        return (), [f"namespaces cannot be made ({error})"]
    return UNSHARE, []


def libraries() -> set[Path]:
    """What Python may need besides its own folders: those of the shared libraries that it has."""
    lines = Path("/proc/self/maps").read_text().splitlines()
    files = {Path(line.split(maxsplit=5)[5]) for line in lines if ".so" in line}
    return {*LINKER, *(f.parent for f in files if f.parent.name.startswith("lib"))}


def protect_files(scratch: Path, hidden: Iterable[Path], needed: Iterable[Path]) -> list[str]:
    """In new namespaces: make all files read-only, and folders look empty; say what failed.

    ``scratch`` becomes empty, of limited size, the only folder to write to; those ``hidden`` look
    empty but for what they hold of ``needed``.
    """
    global _first
    _first = True
    libc = ctypes.CDLL(None, use_errno=True)

    def succeed(failed: int) -> None:
        if failed:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))

    def empty(folder: Path, options: bytes) -> None:
        flags = NO_SUID | NO_DEVICES
        succeed(libc.mount(b"none", os.fsencode(folder), b"tmpfs", flags, options))

    try:
        paths = {path for given in needed for path in (given, given.resolve()) if path.exists()}
        kept = {path: os.open(path, os.O_PATH) for path in paths}
        is_file = {path: path.is_file() for path in paths}
        for folder in sorted(hidden):
            if not folder.is_dir():  # within another that is hidden
                continue
            empty(folder, b"size=4k")
            for path, file in kept.items():
                if path.is_relative_to(folder):
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.touch() if is_file[path] else path.mkdir(exist_ok=True)
                    source, target = f"/proc/self/fd/{file}".encode(), os.fsencode(path)
                    succeed(libc.mount(source, target, None, BIND | RECURSIVE, None))
        scratch.mkdir(parents=True, exist_ok=True)
        attributes = (ctypes.c_uint64 * 4)(ATTR_RDONLY)
        size = ctypes.c_size_t(ctypes.sizeof(attributes))
        succeed(libc.syscall(MOUNT_SETATTR, AT_FDCWD, b"/", AT_RECURSIVE, attributes, size))
        empty(scratch, b"size=64m,mode=700")
    except OSError as error:
        return [f"files are not protected ({error.strerror})"]
    return []


def hide_memory() -> None:
    """Let no other process of the same user read or change this one's memory."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(SET_DUMPABLE, 0)


def limit(seconds: float, megabytes: int) -> None:
    """Limit what this process may use from here on, beyond what it has, and take its privileges."""
    import resource  # Windows has none

    limits = {
        resource.RLIMIT_CPU: int(seconds) + 1,
        resource.RLIMIT_FSIZE: 16 * 2**20,
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_DATA: data_size() + megabytes * 2**20,
        resource.RLIMIT_NPROC: 256,  # root's are not counted
    }
    for what, most in limits.items():
        hard = resource.getrlimit(what)[1]
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(what, (most, most))
    if sys.platform == "linux":
        libc = ctypes.CDLL(None)
        libc.prctl(SET_PDEATHSIG, signal.SIGKILL)
        libc.prctl(SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        header = (ctypes.c_uint32 * 2)(0x20080522, 0)  # version 3, this process
        libc.capset(header, (ctypes.c_uint32 * 6)())


def data_size() -> int:
    """Bytes of data that this process has now; 0 where the system does not say."""
    try:
        text = Path("/proc/self/status").read_text()
    except OSError:
        return 0
    return next(int(line.split()[1]) for line in text.splitlines() if "VmData" in line) * 1024


def end_what_is_left() -> None:
    """End what an answer left running, where the others of the namespace are all an answer's."""
    if _first and os.getpid() == 1:
        with suppress(ProcessLookupError):
            os.kill(-1, signal.SIGKILL)
