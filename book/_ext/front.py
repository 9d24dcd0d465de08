"""What the front page and the live pages show before a model is loaded: photographs, lit heads."""

import base64
import json
from pathlib import Path

import torch
from sphinx.application import Sphinx

import minivit
from book._ext.live import FOLDER, MODELS, PHOTOGRAPHS, webp
from book._ext.pages import when_built
from vitlab.convert.page import rounded
from vitlab.data.photographs import photograph

SHARP = 448  # pixels of a side of a photograph, at most
HEAD = 112  # of a head's
RING = 3 * 8 + 3  # the patch that is marked at first
DARK = 0.2  # of its light has what a head does not look at, as in lit.js


@torch.no_grad()
def write_front(folder: Path) -> None:
    """Photographs that models see with fewer pixels, and where all heads look on the first one."""
    (folder / "photographs").mkdir(exist_ok=True)
    for name in PHOTOGRAPHS:
        side = min(SHARP, *photograph(name).shape[1:])
        (folder / f"photographs/{name}.webp").write_bytes(webp(photograph(name, side)))
    model, first = rounded(minivit.load(MODELS[1])), next(iter(PHOTOGRAPHS))
    with minivit.record(model, "blocks.*.attention.weights") as seen:
        images = model.preprocess(photograph(first, model.preprocess.size)[None])
        chances = model(images)[0].softmax(0)
    weights = torch.cat([*seen.values()])  # [blocks, heads, patches, patches]
    packed = (255 * weights.sqrt()).round().to(torch.uint8).numpy().tobytes()
    stored = {
        "attention": base64.b64encode(packed).decode(),
        "says": model.classes[chances.argmax()],
        "chance": chances.max().item(),
    }
    text = f"globalThis.minivitSeen = {json.dumps(stored)};\n"
    (folder / "parts/seen.js").write_text(text, encoding="utf-8")
    across = images.shape[-1] // model.config.patch_size[0]
    rows = weights[:, :, RING].unflatten(-1, (across, across))
    light = (rows / rows.amax((-1, -2), keepdim=True)).sqrt()
    spread = light.repeat_interleave(HEAD // across, -1).repeat_interleave(HEAD // across, -2)
    lit = photograph(first, HEAD) * (DARK + (1 - DARK) * spread[:, :, None])
    sheet = lit.permute(2, 0, 3, 1, 4).flatten(3, 4).flatten(1, 2)
    (folder / f"photographs/{first}-heads.webp").write_bytes(webp(sheet))


def setup(app: Sphinx) -> None:
    when_built(app, lambda app: write_front(Path(app.outdir) / "_static" / FOLDER), priority=600)
