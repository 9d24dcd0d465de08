"""Drawings of chapters that answer: their scripts on the pages that have one, and what they show."""

import base64
import io
import json
from pathlib import Path

import torch
from PIL import Image
from sphinx.application import Sphinx

import minivit
from vitlab.convert.page import export_page
from vitlab.data import load_data
from vitlab.data.dataset import Split
from vitlab.data.photographs import photograph

FOLDER = "live/parts"
SIDE = 224  # pixels of a photograph
PHOTOGRAPHS = ("chelsea", "astronaut", "coffee")
# Seeds of untrained models: that of digits_vit's training, and another.
STARTS = (0, 1)


def write(app: Sphinx, error: Exception | None) -> None:
    """Writes what parts begin with as scripts, which pages from a folder can load.

    Sphinx calls this at the end.
    """
    if error is not None or app.builder.format != "html":
        return
    folder = Path(app.outdir) / "_static" / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    pictures = {name: picture(name) for name in PHOTOGRAPHS}
    (folder / "photographs.js").write_text(
        f"globalThis.minivitPhotographs = {json.dumps(pictures)};\n"
    )
    data = load_data("DIGITS")
    test = {**digits(data.test), "mean": data.mean, "std": data.std}
    (folder / "digits.js").write_text(
        f"globalThis.minivitDigits = {json.dumps(test)};\n"
    )
    (folder / "digits_training.js").write_text(
        f"globalThis.minivitTrainingDigits = {json.dumps(digits(data.train))};\n"
    )
    for seed in STARTS:
        export_page(start(seed), folder / f"start_{seed}.js")


def digits(split: Split) -> dict[str, str | list[int]]:
    """Images of 8 x 8 pixels, a byte each, in base64, and their labels."""
    pixels = base64.b64encode(split.images.numpy().tobytes()).decode()
    return {"pixels": pixels, "labels": split.labels.tolist()}


def start(seed: int) -> minivit.ViT:
    """digits_vit before its training, or what it would have been with another seed."""
    trained = minivit.load("digits_vit")
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        untrained = type(trained)(trained.config).eval()
    untrained.preprocess, untrained.classes = trained.preprocess, trained.classes
    return untrained


def picture(name: str) -> str:
    """A photograph as an address that holds all of it: pages may read its pixels everywhere."""
    out = io.BytesIO()
    pixels = photograph(name, SIDE).permute(1, 2, 0).numpy()
    Image.fromarray(pixels).save(out, "WEBP", quality=88)
    return f"data:image/webp;base64,{base64.b64encode(out.getvalue()).decode()}"


def on_page(app: Sphinx, page: str, template: str, context: dict, doctree) -> None:
    """Sphinx calls this for each page."""
    if 'class="live-part"' in context.get("body", ""):
        app.add_css_file(f"{FOLDER}/parts.css")
        app.add_js_file(f"{FOLDER}/parts.js", loading_method="defer")


def setup(app: Sphinx) -> dict[str, bool]:
    """Sphinx calls this."""
    app.connect("html-page-context", on_page)
    app.connect("build-finished", write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
