"""Runs JavaScript under Node, as the page's scripts run in a browser."""

import json
import os
import shutil
import subprocess
from typing import Any

import pytest


def run(script: str, task: object, **environment: str) -> Any:
    """What a script prints in JSON; it reads its task, in JSON as well, from standard input."""
    if shutil.which("node") is None:
        pytest.skip("node is not installed, which runs the page's scripts outside a browser")
    done = subprocess.run(["node", "-e", script], input=json.dumps(task), capture_output=True,
                          text=True, env=os.environ | environment)  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
