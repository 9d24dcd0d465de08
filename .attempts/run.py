"""Runs each attempt as its notebook would, and writes what the check says: python .attempts/run.py [chapters]"""

import contextlib
import io
import json
import runpy
import sys
import time
import traceback
from pathlib import Path

import matplotlib

matplotlib.use("agg")
HERE = Path(__file__).parent
HANDOUT = Path("_build/handout")


def imports(chapter: str) -> str:
    path = next(HANDOUT.glob(f"{chapter}_*.ipynb"))
    cells = [c for c in json.loads(path.read_text())["cells"] if c["cell_type"] == "code"]
    lines = "".join(cells[1]["source"]).split("\n")
    end = next(i for i, line in enumerate(lines) if line.startswith("plt.style"))
    return "\n".join(lines[:end])


def said(name: str, source: str, head: str) -> str:
    out = io.StringIO()
    scope: dict = {}
    exec(head, scope)
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        try:
            exec(source, scope)
            exec(f"value = check.{name}({name})", scope)
            if scope["value"] is not None:
                out.write(str(scope["value"]))  # what the cell displays
        except BaseException as error:  # a check may raise
            out.write(f"{type(error).__name__}: {error}")
            if not isinstance(error, AssertionError):
                out.write("\n" + traceback.format_exc().splitlines()[-1])
    return out.getvalue().strip()


for chapter in sys.argv[1:] or [f"{n:02}" for n in range(1, 24)]:
    data, head, rows = runpy.run_path(str(HERE / f"chapter_{chapter}.py")), imports(chapter), []
    for kind in ("WRONG", "RIGHT"):
        for name, mistake, source in data[kind]:
            start = time.time()
            message = said(name, source, head)
            rows.append({"kind": kind, "name": name, "mistake": mistake, "said": message, "s": round(time.time() - start, 1)})
    (HERE / f"said_{chapter}.json").write_text(json.dumps(rows, indent=1))
    print(chapter, len(rows), flush=True)
