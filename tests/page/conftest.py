"""Models written for pages, and the page's scripts under Node."""

import copy
import json
import shutil
import subprocess
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import torch
from torch import Tensor

import minivit
import vitlab
from book.tools.address import ROOT
from vitlab.convert.page import rounded, script

ENGINE = ROOT / "book/_static/live/engine.js"
JOBS = Path(__file__).with_name("jobs.js")
RUN = """
const { readFileSync } = require("fs");
const { files, models, given, call } = JSON.parse(readFileSync(0));
for (const file of models) new Function(readFileSync(file, "utf16le"))();
const scripts = files.map((file) => readFileSync(file, "utf8")).join("\\n");
const found = new Function("given", `${scripts}\\n${call}`)(given);
const plain = (key, value) => (ArrayBuffer.isView(value) ? [...value] : value);
console.log(JSON.stringify(found, plain));
"""


def node(call: str, given: object, *scripts: str, **models: minivit.ViT | bytes) -> Any:
    """What lines of JavaScript return, under Node, below some of the page's scripts.

    Models, or scripts of them, are in ``minivitModels`` by their names.
    """
    if shutil.which("node") is None:
        pytest.skip("node is not installed, which runs the page's scripts outside a browser")
    with TemporaryDirectory() as folder:
        stored = {name: f"{folder}/{name}.js" for name in models}
        for name, path in stored.items():
            held = models[name]
            Path(path).write_bytes(held if isinstance(held, bytes) else script(held, name))
        files = [str(ENGINE.parent / f"{name}.js") for name in scripts]
        task = {"files": files, "models": list(stored.values()), "given": given, "call": call}
        command = ["node", "-e", RUN]
        done = subprocess.run(command, input=json.dumps(task), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@cache
def loaded(name: str) -> minivit.ViT:
    return rounded(minivit.load(name)).requires_grad_(False)


def model(name: str) -> minivit.ViT:
    """A shipped model that holds the numbers that the page has: a copy, to do with as one likes."""
    return copy.deepcopy(loaded(name))


def with_every_half() -> minivit.ViT:
    """A model that has every finite number of half precision, and names beyond ASCII."""
    codes = torch.arange(2**16).to(torch.uint16)
    every = codes.view(torch.float16).float()
    every = every[every.isfinite()]
    of = minivit.create("vit_8px", dim=128, depth=1, mlp_ratio=4)  # 65,536 weights in `up`
    with torch.no_grad():
        of.blocks[0].mlp.up.weight.flatten()[: len(every)] = every
    of.preprocess = minivit.Preprocess((8, 8), (8, 8), mean=(0.5,), std=(0.5,))
    of.classes = ["é", '"', "\\", "猫", "🐈", "\n", "$", "`", "\u2028", "9"]
    return rounded(of)


def images(of: minivit.ViT, count: int) -> Tensor:
    """Images of digits, and noise for models that see colours: uint8, as on disk."""
    if of.config.channels == 1:
        return vitlab.data.load_data("DIGITS").test.images[:count]
    size = (count, of.config.channels, *of.config.image_size)
    draws = torch.Generator().manual_seed(0)
    return torch.randint(0, 256, size, generator=draws, dtype=torch.uint8)


def job(image: int, *ask: str, **switches: object) -> dict:
    return {"image": image, "ask": ask, "switches": switches}


@pytest.fixture
def answers():
    """Runs jobs in the page's engine: what it answers, as tensors."""
    call = f"{JOBS.read_text()}; return runJobs(minivitEngine(), minivitModels.model, given)"

    def run(of: minivit.ViT, pictures: Tensor, jobs: list[dict]) -> list[dict[str, Tensor]]:
        given = {"images": pictures.permute(0, 2, 3, 1).flatten(1).tolist(), "jobs": jobs}
        answered = node(call, given, "engine", model=of)
        return [{k: torch.tensor(v, dtype=torch.float64) for k, v in a.items()} for a in answered]

    return run
