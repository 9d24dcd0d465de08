"""The models that run in pages: their files, images with torch's logits, and a still picture."""

import json
from html import escape
from pathlib import Path

import torch
from sphinx.application import Sphinx

import minivit
from vitlab.convert.page import export_page, rounded
from vitlab.data import load_data
from vitlab.data.photographs import photograph

MODELS = ("digits_vit", "cifar10_vit")
FOLDER = "_static/live"
PHOTOGRAPHS = {
    "chelsea": "a cat",
    "rocket": "a rocket",
    "astronaut": "an astronaut",
    "coffee": "a cup",
}


def write(app: Sphinx, error: Exception | None) -> None:
    """Writes the files; Sphinx calls this at the end."""
    if error is not None or app.builder.format != "html":
        return
    folder = Path(app.outdir) / FOLDER
    (folder / "models").mkdir(parents=True, exist_ok=True)
    for name in MODELS:
        file = folder / f"models/{name}.js"
        model = rounded(minivit.load(name))
        export_page(model, file)
        shown = samples(model)
        with file.open("a", encoding="utf-16-le") as more:
            more.write(
                f"(globalThis.minivitSamples ??= {{}}).{name} = {json.dumps(shown)};\n"
            )
        if name == MODELS[0]:
            (folder / "still.svg").write_text(
                still(model, shown[0]), encoding="utf-8"
            )


@torch.no_grad()
def samples(model: minivit.ViT) -> list[dict]:
    """Images that the model was not trained on: names, pixels, and torch's logits."""
    if model.config.channels == 1:
        test = load_data("DIGITS").test
        guesses = model(model.preprocess(test.images)).argmax(1)
        order = 3, 0, 1, 2, 4, 5, 6, 7, 8, 9
        first = [int((test.labels == digit).nonzero()[0]) for digit in order]
        missed = (guesses != test.labels).nonzero()[:2, 0].tolist()
        images = test.images[first + missed]
        names = [f"A {int(test.labels[i])}" for i in first]
        names += [
            f"A {int(test.labels[i])}, which the model misreads" for i in missed
        ]
    else:
        size = model.preprocess.size
        images = torch.stack([photograph(name, size) for name in PHOTOGRAPHS])
        names = [f"A photograph of {what}" for what in PHOTOGRAPHS.values()]
    logits = model(model.preprocess(images)).tolist()
    # Channels last, as browsers have them.
    pixels = images.permute(0, 2, 3, 1).flatten(1).tolist()
    return [
        {"name": name, "pixels": some, "logits": answer}
        for name, some, answer in zip(names, pixels, logits, strict=True)
    ]


def still(model: minivit.ViT, sample: dict) -> str:
    """The first image and the model's answer as a drawing, for readers without scripts."""
    height, width = model.config.image_size
    parts = [
        f'<rect x="{20 * (i % width)}" y="{20 * (i // width)}" width="20" height="20" '
        f'fill="rgb({v},{v},{v})"/>'
        for i, v in enumerate(sample["pixels"])
    ]
    for i, p in enumerate(torch.tensor(sample["logits"]).softmax(0).tolist()):
        y = 16 * i + 12
        parts.append(
            f'<text x="190" y="{y}">{escape(model.classes[i])}</text>'
            f'<rect x="206" y="{y - 10}" width="{150 * p:.1f}" height="11" fill="#17624a"/>'
            f'<text x="{212 + 150 * p:.1f}" y="{y}">{100 * p:.1f} %</text>'
        )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="430" height="{20 * height}" '
        f'font-family="sans-serif" font-size="12">{"".join(parts)}</svg>\n'
    )


def setup(app: Sphinx) -> dict[str, bool]:
    """Sphinx calls this."""
    app.connect("build-finished", write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
