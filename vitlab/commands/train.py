"""``minivit train``."""

import re
import sys
from dataclasses import asdict, dataclass, field, make_dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal, get_type_hints

import torch
from tyro.conf import FlagCreatePairsOff, arg, create_mutex_group

from minivit.model import Model
from minivit.patches import pair
from minivit.shapes import Size
from vitlab.calls import expect
from vitlab.commands.command import Command, ModelName, draw, load, open_ours
from vitlab.data.dataset import Data
from vitlab.data.loading import SOURCES
from vitlab.extras import device_of
from vitlab.training.evaluate import Results
from vitlab.training.loop import train
from vitlab.training.optimiser import freeze
from vitlab.training.recipe import DEFAULTS, Recipe, continued, model_for, recipe_for


def _default(name: str) -> str:
    """The default of a field of the recipe, for each source of data where they differ."""
    if name == "precision":
        return "(default: bfloat16 where it is fast, but not for DIGITS)"
    values = {source: getattr(recipe, name) for source, (_, recipe) in DEFAULTS.items()}
    if len(set(values.values())) == 1:
        return f"(default: {values['FOLDER']})"
    return f"(default: {', '.join(f'{value} for {source}' for source, value in values.items())})"


# The fields of Recipe, each None unless it is given: the defaults depend on the data.
FIELDS = [
    (name, Annotated[kind | None, arg(help_behavior_hint=_default(name))], None)
    for name, kind in get_type_hints(Recipe).items()
]
UNCHECKED = {"__post_init__": lambda self: None}
Changes = make_dataclass("Changes", FIELDS, bases=(Recipe,), namespace=UNCHECKED, frozen=True)
ONE_OF = create_mutex_group(required=False)


@dataclass(kw_only=True)
class Train(Command):
    """Train a model."""

    data: str  # DIGITS, CIFAR10, SHAPES, or a folder with a folder of images for each class
    size: int | None = None  # side in pixels of the images (None: the data's, or the model's)
    channels: Literal[1, 3] | None = None  # grey or colour (None: the data's, or the model's)
    fraction: float = 1.0  # of the training images
    model: Annotated[str | None, ONE_OF] = None  # a name that `models` lists (None: a small ViT)
    # begin with a trained model, given as to `predict`: positions are resampled to the size of the
    # images, and the head is new unless the classes are the same
    start: Annotated[ModelName | None, ONE_OF, arg(name="from", metavar="MODEL")] = None
    # leave parts as they are: a number, for as many first blocks and all before them; backbone, for
    # all but the head; or names, such as "patch_embedding,blocks.[0-3]"
    freeze: Annotated[str | None, arg(metavar="PARTS")] = None
    # a trained model of the same classes, given as to `predict`, whose decisions on the augmented
    # images count as much as the labels
    teacher: Annotated[str | None, arg(metavar="MODEL")] = None
    out: Path | None = None  # folder for all output (None: runs/DATA_MODEL)
    resume: FlagCreatePairsOff[bool] = False  # continue from --out, or start anew
    save_every: float = 60  # seconds between saved states
    recipe: Annotated[Any, arg(constructor=Changes)] = field(default_factory=Changes)
    """Defaults are for any data unless it is named."""

    def run(self, typed: str) -> int:
        device = device_of(self.device)
        given = {name: value for name, value in asdict(self.recipe).items() if value is not None}
        recipe = recipe_for(self.data, device, **given)
        start = open_ours(self.start) if self.start else None
        teacher = open_ours(self.teacher) if self.teacher else None
        name = self.model or DEFAULTS.get(self.data, DEFAULTS["FOLDER"])[0]
        size: Size | None = self.size
        channels: int | None = self.channels
        if self.start and start:
            name = re.sub(r"[^\w.-]+", "_", Path(self.start).stem)  # a library's has a colon
            size = size or pair(start.config.image_size)
            channels = channels or start.config.channels
        source = Path(self.data).resolve()
        out = self.out or Path("runs", f"{source.name.lower()}_{name}")
        inside = source.is_dir() and out.resolve().is_relative_to(source)
        outside = self.data in SOURCES or not inside
        expect(outside, "--out outside the images", f"{out} in {self.data}")
        data = load(self.data, size=size, channels=channels, fraction=self.fraction)
        torch.manual_seed(recipe.seed)
        model = continued(start, data) if start else model_for(self.data, data, self.model)
        if start:
            data = _as_before(data, start, self.start)
        if self.freeze:
            freeze(model, self.freeze)
        results = train(
            model.to(device),
            data,
            recipe,
            out=out,
            resume=self.resume,
            save_every=self.save_every,
            progress=True,
            command=typed,
            start=self.start,
            teacher=teacher,
        )
        print(f"validation  {results.validation}")
        print(f"test        {results.test}")
        _draw(out, results, data)
        print(f"{results.steps} steps in {results.seconds:.0f} s; written to {out}")
        return 0


def _as_before(data: Data, start: Model, name: str | None) -> Data:
    """The data with mean and standard deviation as the trained model reads them, and its terms."""
    preprocess: Any = start.preprocess
    terms = f"{data.licence or 'none stated'}; weights of {name}: {start.licence}"
    licence = terms if start.licence else data.licence
    return replace(data, mean=preprocess.mean, std=preprocess.std, licence=licence)


def _draw(out: Path, results: Results, data: Data) -> None:
    """Draws the curve and the confusion matrix into the folder."""
    try:
        from vitlab.figures import confusion_figure, curve
    except ModuleNotFoundError as error:
        print(f"no figures of the training, but --resume will draw them: {error}", file=sys.stderr)
        return
    for name in ("curve.png", "curve.svg"):
        draw(out / name, curve(results.lines))
    draw(out / "confusion.png", confusion_figure(results.confusion, data.classes))
