"""Shutting answers in: no network, files that can only be read, processes of their own, limits.

Namespaces are Linux's, and an ordinary user may make them where the system allows it; elsewhere
the limits alone hold, and whoever grades is told. Called in this order: ``enter`` before anything
else is imported (a namespace of users wants one thread), ``hide_memory`` once, and ``limit`` in
each process that runs an answer.
"""

import ctypes
import os
import resource
import signal
import sys
from collections.abc import Iterable
from pathlib import Path

USER, MOUNTS, NETWORK, PROCESSES, IPC = 0x10000000, 0x20000, 0x40000000, 0x20000000, 0x8000000
MS_RECURSIVE, MS_PRIVATE = 0x4000, 0x40000
NO_SUID, NO_DEVICES = 2, 4
MOUNT_SETATTR, AT_FDCWD, AT_RECURSIVE, ATTR_RDONLY = 442, -100, 0x8000, 1
SET_PDEATHSIG, SET_DUMPABLE, SET_NO_NEW_PRIVS = 1, 4, 38

_apart = False  # whether enter has made this process the first of a namespace


def enter(scratch: Path, hidden: Iterable[Path], megabytes: int = 64) -> list[str]:
    """Go on in namespaces of one's own, where this process is the first; say what is lacking.

    Files can only be read from then on but for those in ``scratch``, which is new, empty and of
    limited size; the folders in ``hidden`` look empty. The caller goes on in a child of the process
    that called, which waits for it and ends as it does.

    Returns:
        What could not be had, in words: an empty list where all of it is there.
    """
    if sys.platform != "linux":
        return [f"no namespaces on {sys.platform}"]
    libc = ctypes.CDLL(None, use_errno=True)
    user, group = os.getuid(), os.getgid()
    if libc.unshare(USER | MOUNTS | NETWORK | PROCESSES | IPC):
        return [f"namespaces are refused ({os.strerror(ctypes.get_errno())})"]
    for name, text in (
        ("setgroups", "deny"),
        ("uid_map", f"{user} {user} 1"),
        ("gid_map", f"{group} {group} 1"),
    ):
        Path(f"/proc/self/{name}").write_text(text)
    _go_on_as_first_process(libc)
    found = (_read_only(libc, scratch, hidden, megabytes), _own_proc(libc))
    return [text for text in found if text]


def _go_on_as_first_process(libc: ctypes.CDLL) -> None:
    """The child of a process that unshared its processes is number 1, and others go with it."""
    child = os.fork()
    if child:
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        os._exit(status if status >= 0 else 128 - status)
    global _apart
    _apart = True
    libc.prctl(SET_PDEATHSIG, signal.SIGKILL)


def _read_only(
    libc: ctypes.CDLL, scratch: Path, hidden: Iterable[Path], megabytes: int
) -> str | None:
    """Make every mount read-only but a new one on scratch; what failed, in words."""
    attributes = (ctypes.c_uint64 * 4)(ATTR_RDONLY, 0, 0, 0)
    size = ctypes.c_size_t(ctypes.sizeof(attributes))
    failed = (
        libc.mount(b"none", b"/", None, MS_RECURSIVE | MS_PRIVATE, None)
        or libc.syscall(MOUNT_SETATTR, AT_FDCWD, b"/", AT_RECURSIVE, attributes, size)
        or _empty(libc, scratch, f"size={megabytes}m,mode=700")
        or any(_empty(libc, folder, "size=4k,mode=500") for folder in hidden)
    )
    return f"files are not protected ({os.strerror(ctypes.get_errno())})" if failed else None


def _empty(libc: ctypes.CDLL, folder: Path, options: str) -> int:
    flags = NO_SUID | NO_DEVICES
    return libc.mount(b"tmpfs", os.fsencode(folder), b"tmpfs", flags, options.encode())


def _own_proc(libc: ctypes.CDLL) -> str | None:
    """Make /proc show the own processes alone, so that no other can be looked at there."""
    if libc.mount(b"proc", b"/proc", b"proc", NO_SUID | NO_DEVICES, None):
        return f"/proc shows all processes ({os.strerror(ctypes.get_errno())})"
    return None


def hide_memory() -> None:
    """Let no other process of the same user read or change this one's memory."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(SET_DUMPABLE, 0)


def limit(seconds: float, megabytes: int) -> None:
    """Limit what this process may use from here on, beyond what it has, and take its privileges."""
    caps = {
        resource.RLIMIT_CPU: int(seconds) + 1,
        resource.RLIMIT_FSIZE: 16 * 2**20,
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_DATA: _data() + megabytes * 2**20,
    }
    if os.getuid():  # ignored for root
        caps[resource.RLIMIT_NPROC] = 256
    for what, most in caps.items():
        hard = resource.getrlimit(what)[1]
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(what, (most, most))
    if sys.platform == "linux":
        libc = ctypes.CDLL(None)
        libc.prctl(SET_PDEATHSIG, signal.SIGKILL)
        libc.prctl(SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        header = (ctypes.c_uint32 * 2)(0x20080522, 0)  # version 3, this process
        libc.capset(header, (ctypes.c_uint32 * 6)())


def _data() -> int:
    """Bytes of data that this process has now; 0 where the system does not say."""
    try:
        text = Path("/proc/self/status").read_text()
    except OSError:
        return 0
    return next(int(line.split()[1]) for line in text.splitlines() if "VmData" in line) * 1024


def end_what_is_left() -> None:
    """End what an answer left running, where the others of the namespace are all an answer's."""
    if _apart and os.getpid() == 1:
        try:
            os.kill(-1, signal.SIGKILL)
        except ProcessLookupError:
            return
