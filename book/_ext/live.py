"""Scripts that pages from a folder can load: models that run there, what drawings begin with."""

import base64
import json
from pathlib import Path

import torch
from PIL import Image
from sphinx.application import Sphinx
from torch import Tensor

import minivit
from book._ext.dark import encoded
from book._ext.pages import when_built
from vitlab import dit
from vitlab.convert.page import export_page, packed, rounded
from vitlab.data import load_data
from vitlab.data.dataset import Split
from vitlab.data.photographs import photograph
from vitlab.figures.overlay import LIT

MODELS = ("digits_vit", "cifar10_vit")
PHOTOGRAPHS = dict(chelsea="a cat", rocket="a rocket", astronaut="an astronaut", coffee="a cup")
SIDE = 224  # pixels of a photograph that drawings show
SHARP = 448  # at most, of one that models see with fewer
HEAD = 112  # of a head's on the front page
RING = 3 * 8 + 3  # the patch that is marked there at first
DRAWN = ("chelsea", "astronaut", "coffee")
STARTS = (0, 1)  # seeds of untrained models: that of digits_vit's training, and another


def write(app: Sphinx) -> None:
    folder = Path(app.outdir) / "_static/live"
    write_models(folder)
    write_parts(folder / "parts")
    write_front(folder)


def write_models(folder: Path) -> None:
    """The models, each with images and torch's logits of them."""
    (folder / "models").mkdir(parents=True, exist_ok=True)
    for name in MODELS:
        file = folder / f"models/{name}.js"
        model = rounded(minivit.load(name))
        export_page(model, file)
        shown = json.dumps(samples(model))
        with file.open("a", encoding="utf-16-le") as more:
            more.write(f"(globalThis.minivitSamples ??= {{}}).{name} = {shown};\n")


@torch.no_grad()
def write_front(folder: Path) -> None:
    """Photographs that models see with fewer pixels, and where all heads look on the first one."""
    (folder / "photographs").mkdir(exist_ok=True)
    for name in PHOTOGRAPHS:
        side = min(SHARP, *photograph(name).shape[1:])
        (folder / f"photographs/{name}.webp").write_bytes(webp(photograph(name, side)))
    model, first = rounded(minivit.load("cifar10_vit")), next(iter(PHOTOGRAPHS))
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
    *colour, opaque = torch.tensor(LIT(spread.numpy())).float().movedim(-1, 0)
    lit = photograph(first, HEAD) * (1 - opaque[:, :, None])
    lit += 255 * (torch.stack(colour, 2) * opaque[:, :, None])
    sheet = lit.permute(2, 0, 3, 1, 4).flatten(3, 4).flatten(1, 2)
    (folder / f"photographs/{first}-heads.webp").write_bytes(webp(sheet))


@torch.no_grad()
def samples(model: minivit.ViT) -> list[dict]:
    """Images that the model was not trained on: names, pixels, and torch's logits."""
    if model.config.channels == 1:
        test = load_data("DIGITS").test
        guesses = model(model.preprocess(test.images)).argmax(1)
        order, labels = (3, 0, 1, 2, 4, 5, 6, 7, 8, 9), test.labels.tolist()
        missed = (guesses != test.labels).nonzero()[:2, 0].tolist()
        images = test.images[[*map(labels.index, order), *missed]]
        names = [f"A {digit}" for digit in order]
        names += [f"A {labels[i]}, which the model misreads" for i in missed]
    else:
        images = torch.stack([photograph(name, model.preprocess.size) for name in PHOTOGRAPHS])
        names = [f"A photograph of {what}" for what in PHOTOGRAPHS.values()]
    logits = model(model.preprocess(images)).tolist()
    pixels = images.permute(0, 2, 3, 1).flatten(1).tolist()  # channels last, as browsers have them
    files = [None] * len(names) if model.config.channels == 1 else PHOTOGRAPHS  # with more pixels
    return [
        {"name": name, "pixels": values, "logits": answer, "file": file}
        for name, values, answer, file in zip(names, pixels, logits, files, strict=True)
    ]


def write_parts(folder: Path) -> None:
    """Photographs, digits and untrained models for the drawings."""
    folder.mkdir(parents=True, exist_ok=True)
    data = load_data("DIGITS")
    scripts = {
        "photographs": ("minivitPhotographs", {name: embedded(name) for name in DRAWN}),
        "digits": ("minivitDigits", {**digits(data.test), "mean": data.mean, "std": data.std}),
        "digits_training": ("minivitTrainingDigits", digits(data.train)),
    }
    for file, (name, value) in scripts.items():
        (folder / f"{file}.js").write_text(f"globalThis.{name} = {json.dumps(value)};\n")
    for seed in STARTS:
        export_page(start(seed), folder / f"start_{seed}.js")
    (folder / "digits_dit.js").write_bytes(drawing_model())


def drawing_model() -> bytes:
    """The diffusion transformer of digits, as a script."""
    model = dit.load()
    config = {"heads": model.blocks[0].attention.heads, "depth": len(model.blocks)}
    return packed({"config": config}, model.state_dict(), "digits_dit")


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


def embedded(name: str) -> str:
    """A photograph as an address that holds all of it: pages may read its pixels everywhere."""
    return f"data:image/webp;base64,{base64.b64encode(webp(photograph(name, SIDE))).decode()}"


def webp(picture: Tensor) -> bytes:
    """An image [3, height, width] of bytes as a file."""
    pixels = picture.round().to(torch.uint8).permute(1, 2, 0).numpy()
    return encoded(Image.fromarray(pixels), quality=88)


def on_page(app: Sphinx, page: str, template: str, context: dict, doctree: object) -> None:
    """Has a page with a drawing load the drawings' scripts, if its model is there."""
    if "body" in context and not app.tags.has("large"):
        context["body"] = context["body"].replace(' data-part="large"', "")
    if "data-part=" in context.get("body", ""):
        app.add_css_file("live/parts/parts.css")
        app.add_js_file("live/parts/parts.js", loading_method="defer")


def setup(app: Sphinx) -> None:
    app.connect("html-page-context", on_page)
    when_built(app, write)
