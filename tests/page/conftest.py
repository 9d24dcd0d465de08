"""Models written for pages, and the page's engine under Node."""

import copy
import json
import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest
import torch
from torch import Tensor

import minivit
import vitlab
from vitlab.convert.page import export_page, rounded, script

ROOT = Path(__file__).resolve().parents[2]
ENGINE = ROOT / "book/_static/live/engine.js"
RUN = Path(__file__).with_name("run.mjs")
CALL = """
const { readFileSync } = require("fs");
const { folder, file, given, call } = JSON.parse(readFileSync(0));
const text = (name) => readFileSync(`${folder}/${name}.js`, "utf8");
const engine = new Function(`${text("engine")}; return minivitEngine()`)();
const solve = new Function(`${text("solve")}; return minivitSolve()`)();
const made = new Function("engine", "solve", `${text("unwind")}; return minivitUnwind(engine, solve)`);
const way = made(engine, solve);
const level = new Function("solve", `${text("level")}; return minivitLevel(solve)`)(solve);
if (file) new Function(readFileSync(file, "utf16le"))();
const model = file && engine.open(minivitModels.model);
const plain = (key, value) => (ArrayBuffer.isView(value) ? [...value] : value);
const run = new Function("engine", "way", "solve", "level", "model", "given", call);
console.log(JSON.stringify(run(engine, way, solve, level, model, given), plain));
"""


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
    height, width = of.config.image_size
    draws = torch.Generator().manual_seed(0)
    size = (count, of.config.channels, height, width)
    return torch.randint(0, 256, size, generator=draws, dtype=torch.uint8)


def asked(pictures: Tensor, jobs: list[dict]) -> str:
    """Images and jobs as jobs.js takes them, in JSON."""
    pixels = pictures.permute(0, 2, 3, 1).flatten(1).tolist()  # channels last
    return json.dumps({"images": pixels, "jobs": jobs})


def told(text: str) -> list[dict[str, Tensor]]:
    """What jobs.js answers, as tensors."""
    answers = json.loads(text)
    return [{k: torch.tensor(v, dtype=torch.float64) for k, v in one.items()} for one in answers]


def job(image: int, *ask: str, **switches: object) -> dict:
    return {"image": image, "ask": ask, "switches": switches}


@pytest.fixture
def answers(tmp_path: Path):
    """Runs jobs in the page's engine: what it answers, as tensors."""
    if shutil.which("node") is None:
        pytest.skip("node is not installed, which runs the page's script outside a browser")

    def run(of: minivit.ViT, pictures: Tensor, jobs: list[dict]) -> list[dict[str, Tensor]]:
        (tmp_path / "model.js").write_bytes(script(of, "model"))
        (tmp_path / "jobs.json").write_text(asked(pictures, jobs))
        command = ["node", RUN, ENGINE, tmp_path / "model.js", tmp_path / "jobs.json"]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return told(done.stdout)

    return run


@pytest.fixture
def node(tmp_path: Path):
    """Runs lines of JavaScript with the page's engine, solvers and a model: what they return."""
    if shutil.which("node") is None:
        pytest.skip("node is not installed, which runs the page's script outside a browser")

    def run(call, given, of=None):
        file = str(tmp_path / "model.js") if of is not None else None
        if of is not None:
            export_page(of, file)
        task = {"folder": str(ENGINE.parent), "file": file, "given": given, "call": call}
        done = subprocess.run(
            ["node", "-e", CALL], input=json.dumps(task), capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run


@pytest.fixture
def many(name: str) -> int:
    """How many images the logits are compared for."""
    return 100 if name.startswith("digits") else 4
