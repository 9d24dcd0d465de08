"""Where the repository is, here and on the web: its address stands in no file, but in a branch.

    python -m book.tools.address

lets the branch ``launch``, which Binder and Colab open, point to a commit of HEAD's files with the
address in the notebooks' first cells, but for workflows, which the token of one may not push.
"""

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SITE = ROOT / "_build/html"
FIGURES = ROOT / "_build/figures"  # drawn by book.tools.figures
BRANCH = "launch"
GITHUB = re.compile(
    r"(?:https://(?:[^@/]*@)?|ssh://git@|git@)github\.com[:/]([\w-]+/[\w.-]+?)(?:\.git)?/?"
)
IN_CELL = re.compile(rb'(?<=    url = \\")[^"\\]*(?=\\")')  # in the text of a notebook's file


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


def filled(notebook: bytes, url: str) -> bytes:
    """A notebook's file with the address in its first cell, and before its drawings, for Colab."""
    text, count = IN_CELL.subn(url.encode(), notebook, count=1)
    if not count:
        raise ValueError("no place for the address: run `python -m book.tools.first_cell`")
    return text.replace(b"](_static/", f"]({url}/raw/launch/book/_static/".encode())


def launch(url: str) -> None:
    """Lets the branch ``launch`` point to HEAD's files with the address in the notebooks."""
    head = git("rev-parse", "HEAD").decode().strip()
    with tempfile.TemporaryDirectory() as folder:
        beside = os.environ | {"GIT_INDEX_FILE": str(Path(folder) / "index")}
        git("read-tree", head, environment=beside)
        git("rm", "--cached", "--quiet", "-r", "--ignore-unmatch", ".github", environment=beside)
        for path in git("ls-tree", "-r", "--name-only", head, "book").decode().splitlines():
            if path.endswith(".ipynb"):
                text = filled(git("show", f"{head}:{path}"), url)
                blob = git("hash-object", "-w", "--stdin", given=text).decode().strip()
                git("update-index", "--cacheinfo", f"100644,{blob},{path}", environment=beside)
        tree = git("write-tree", environment=beside).decode().strip()
    # No parent: one commit is all that Colab fetches, and none of the history moves with a push.
    commit = git("commit-tree", tree, "-m", f"The files of {head}, which know their address")
    git("update-ref", f"refs/heads/{BRANCH}", commit.decode().strip())


if __name__ == "__main__":
    address = repository()
    if not address:
        sys.exit("No address: set MINIVIT_REPOSITORY, or add a remote `origin` that is on GitHub.")
    launch(address)
    print(f"{address} stands in the notebooks of `{BRANCH}`: git push --force origin {BRANCH}")
