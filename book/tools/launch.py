"""The branch that Colab opens: the book's files, with notebooks that work alone.

    python -m book.tools.launch

lets the branch point to a commit of HEAD's files, but for workflows, which a workflow's token may
not push.
"""

import os
import sys
import tempfile
from pathlib import Path

import nbformat

from book.tools.address import git, repository, site
from book.tools.alone import alone

BRANCH = "launch"


def launch(url: str) -> None:
    """Makes the branch, in a repository whose address this is."""
    head = git("rev-parse", "HEAD").decode().strip()
    with tempfile.TemporaryDirectory() as folder:
        beside = os.environ | {"GIT_INDEX_FILE": str(Path(folder) / "index")}
        git("read-tree", head, environment=beside)
        git("rm", "--cached", "--quiet", "-r", "--ignore-unmatch", ".github", environment=beside)
        for path in git("ls-tree", "-r", "--name-only", head, "book").decode().splitlines():
            if path.endswith(".ipynb"):
                notebook = nbformat.reads(git("show", f"{head}:{path}").decode(), as_version=4)
                text = nbformat.writes(alone(notebook, path.removesuffix(".ipynb"), site(url)))
                blob = git("hash-object", "-w", "--stdin", given=text.encode()).decode().strip()
                git("update-index", "--cacheinfo", f"100644,{blob},{path}", environment=beside)
        tree = git("write-tree", environment=beside).decode().strip()
    # No parent: one commit is all that Colab fetches, and none of the history moves with a push.
    commit = git("commit-tree", tree, "-m", f"The files of {head}, with notebooks that work alone")
    git("update-ref", f"refs/heads/{BRANCH}", commit.decode().strip())


if __name__ == "__main__":
    address = repository()
    if not address:
        sys.exit("No address: set MINIVIT_REPOSITORY, or add a remote `origin` that is on GitHub.")
    launch(address)
    print(f"`{BRANCH}` has notebooks that work alone: git push --force origin {BRANCH}")
