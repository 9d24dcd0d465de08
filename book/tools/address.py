"""Where the repository is, here and on the web: its address stands in no file."""

import os
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SITE = ROOT / "_build/html"
FIGURES = ROOT / "_build/figures"  # drawn by book.tools.figures
GITHUB = re.compile(
    r"(?:https://(?:[^@/]*@)?|ssh://git@|git@)github\.com[:/]([\w-]+/[\w.-]+?)(?:\.git)?/?"
)


def normal(address: str) -> str:
    """An address as a browser takes it, or nothing for what is no repository on GitHub."""
    match = GITHUB.fullmatch(address.strip())
    return f"https://github.com/{match[1]}" if match else ""


def git(*arguments: str, given: bytes = b"", environment: Mapping[str, str] = os.environ) -> bytes:
    """What git says, run in the repository."""
    command = ["git", "-C", str(ROOT), *arguments]
    return subprocess.check_output(command, input=given, env=environment)


def repository(environment: Mapping[str, str] = os.environ) -> str:
    """``https://github.com/OWNER/NAME``, or nothing where the repository has no address.

    The variable ``MINIVIT_REPOSITORY`` decides, else the workflow, else git's ``origin``.
    """
    named = environment.get("MINIVIT_REPOSITORY")
    if named and not normal(named):
        raise ValueError(f"MINIVIT_REPOSITORY is like https://github.com/OWNER/NAME: got {named}")
    if named is not None:
        return normal(named)
    if "GITHUB_REPOSITORY" in environment:
        return normal(f"{environment['GITHUB_SERVER_URL']}/{environment['GITHUB_REPOSITORY']}")
    try:
        return normal(git("config", "--get", "remote.origin.url").decode())
    except (OSError, subprocess.CalledProcessError):
        return ""


def site(url: str) -> str:
    owner, name = url.lower().split("/")[-2:]
    home = f"https://{owner}.github.io/"
    return home if name == f"{owner}.github.io" else f"{home}{url.rpartition('/')[2]}/"
