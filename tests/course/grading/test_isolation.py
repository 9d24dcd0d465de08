"""An answer is shut in as far as this system lets an ordinary user, and the grader says how far."""

import os
import socket
import subprocess
import sys

import pytest

from course.check import EXERCISES
from course.grading import isolation
from course.grading.answers import ROOT, Answer
from course.grading.examiner import examined

IMPORTS = "import ctypes, os, socket, subprocess, time\nlibc = ctypes.CDLL(None)\n"
REMOUNT = "libc.mount(None, b'/', None, 0x1020, None)"  # remount and bind, no longer read-only
# What an answer does, and what comes of it where it is shut in. FOLDER and PORT are the grader's.
ATTACKS = {
    "other networks": ("x = socket.if_nameindex()", "[(1, 'lo')]"),
    "the own machine": ("socket.create_connection(('127.0.0.1', PORT))", "Network is unreachable"),
    "a file of the grader's": ("open(f'{FOLDER}/home/key')", "No such file or directory"),
    "another's notebook": ("x = os.listdir(f'{FOLDER}/handed in')", "No such file or directory"),
    "last week's class": ("x = os.listdir(f'{FOLDER}/last week')", "No such file or directory"),
    "who is on the machine": ("x = os.path.exists('/etc/passwd'), os.listdir('/home')", "(False, [])"),
    "solutions and tests": (f"x = set(os.listdir({str(ROOT)!r})) - NEEDED", "set()"),
    "deletion": ("os.remove(os.__file__)", "Read-only file system"),
    "writing": ("open('/dev/shm/x', 'w')", "Read-only file system"),
    "a full disk": ("[open(f'{i}', 'wb').write(bytes(2**24)) for i in range(9)]", "No space left"),
    "the system": ("open('/proc/sys/kernel/hostname', 'w')", "Read-only file system"),
    "a new mount": (f"x = {REMOUNT}, libc.umount2({os.fsencode(ROOT)!r}, 2)", "(-1, -1)"),
    "a new namespace": (f"libc.unshare(0x10020000); x = {REMOUNT}, libc.umount2({os.fsencode(ROOT)!r}, 2)", "(-1, -1)"),
    "other processes": ("x = [n for n in os.listdir('/proc') if n.isdecimal()][:-1]", "['1']"),
    "the examiner's memory": ("open(f'/proc/{os.getppid()}/mem', 'rb')", "Permission denied"),
    "privileges": (
        "x = subprocess.run(['grep', '-c', 'Cap[PE].*0000000000000000', '/proc/self/status'], "
        "stdout=subprocess.PIPE, check=True).stdout",
        "b'2\\n'",
    ),
    "an end of the examiner": ("x = [os.kill(1, n) for n in (2, 9, 15, 19)]", "[None, None"),
    "a longer life": (
        "beat = lambda: open('x', 'w').write(f'{time.time()}') and time.sleep(0.02)\n    "
        "os.fork() or [os.closerange(3, 99), [beat() for _ in range(999)]]; x = time.sleep(0.3)",
        "None",
    ),
    "(its end)": ("last = os.stat('x'); time.sleep(0.3); x = last == os.stat('x')", "True"),
    "the environment": ("x = 'HOME' in os.environ, 'PYTEST_VERSION' in os.environ", "(True, False)"),
}  # fmt: skip
NAMES = dict(zip(ATTACKS, EXERCISES, strict=False))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("grader's")
    for name in ("home/key", "handed in/a.ipynb", "last week/a.ipynb"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).touch()
    return folder


@pytest.fixture(scope="module")
def outcome(folder):
    """What came of each attack, and what the system lacks."""
    with socket.create_server(("127.0.0.1", 0)) as server, pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(folder / "home"))
        given = f"FOLDER, PORT = {str(folder)!r}, {server.getsockname()[1]}\n"
        given += "NEEDED = {'course', 'minivit', 'vitlab', '.venv'}\n"
        answers = [
            Answer(NAMES[attack], f"{IMPORTS}{given}def {NAMES[attack]}(*inputs):\n"
                   f"    x = 'it worked'\n    {line}\n    raise ValueError(str(x))\n")
            for attack, (line, _) in ATTACKS.items()
        ]  # fmt: skip
        outcomes, lacking = examined(answers, 20, 500, [folder / "handed in"])
    return {attack: outcomes[name].message for attack, name in NAMES.items()}, lacking


@pytest.mark.parametrize("attack", ATTACKS)
def test_where_namespaces_are_allowed_an_answer_is_shut_in(outcome, attack):
    messages, lacking = outcome
    if lacking and attack != "the environment":  # which is the examiner's own on every system
        pytest.skip(f"here: {lacking}")
    assert ATTACKS[attack][1] in messages[attack]


def test_a_system_without_namespaces_is_named(monkeypatch):
    for command, lack in {"false": "are refused ()", "no-such-command": "cannot be made ("}.items():
        monkeypatch.setattr(isolation, "UNSHARE", (command,))
        before, lacking = isolation.namespaces()
        assert before == () and lacking[0].startswith(f"namespaces {lack}")
    monkeypatch.setattr(sys, "platform", "darwin")
    assert isolation.namespaces() == ((), ["no namespaces on darwin"])


def test_what_is_left_running_is_ended_only_inside_a_namespace_of_its_own():
    with subprocess.Popen(["sleep", "60"]) as other:
        isolation.end_what_is_left()
        assert other.poll() is None
        other.kill()
