"""``minivit train``."""

import sys
from dataclasses import asdict, dataclass, field, make_dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal, get_type_hints

import torch
from tyro.conf import FlagCreatePairsOff, arg, create_mutex_group

from minivit.commands.command import Command, load, open_model
from minivit.data.loading import SOURCES
from minivit.hub.zoo import weights
from minivit.networks.patches import pair
from minivit.networks.shapes import Size
from minivit.training.defaults import DEFAULTS, continued, device_of, model_for, recipe_for
from minivit.training.loop import train
from minivit.training.recipe import Recipe


def _default(name: str) -> str:
    """The default of a field of the recipe, for each source of data where they differ."""
    if name == "precision":
        return "(default: bfloat16 where it is fast, but not for DIGITS)"
    values = {source: getattr(recipe, name) for source, (_, recipe) in DEFAULTS.items()}
    if len(set(values.values())) == 1:
        return f"(default: {values['FOLDER']})"
    return f"(default: {', '.join(f'{value} for {source}' for source, value in values.items())})"


# The fields of Recipe, each None unless it is given: the defaults depend on the data.
Changes = make_dataclass(
    "Changes",
    [
        (name, Annotated[kind | None, arg(help_behavior_hint=_default(name))], None)
        for name, kind in get_type_hints(Recipe).items()
    ],
    namespace={"__doc__": Recipe.__doc__},
)
ONE_OF = create_mutex_group(required=False)


@dataclass(kw_only=True)
class Train(Command):
    """Train a model."""

    data: str  # DIGITS, CIFAR10, SHAPES, or a folder with a folder of images for each class
    size: int | None = None  # side in pixels to make a folder's images
    channels: Literal[1, 3] | None = None  # grey or colour, for a folder
    fraction: float = 1.0  # of the training images
    model: Annotated[str | None, ONE_OF] = None  # a name that `models` lists (None: a small ViT)
    start: Annotated[str | None, ONE_OF, arg(name="from", metavar="TRAINED")] = None
    """begin with a trained model, given as to `predict`"""
    out: Path | None = None  # folder (None: runs/DATA_MODEL)
    resume: FlagCreatePairsOff[bool] = False  # go on from --out, or begin
    save_every: float = 60  # seconds
    recipe: Annotated[Any, arg(constructor=Changes)] = field(default_factory=Changes)
    """Defaults are for any data unless it is named."""

    def run(self, typed: str) -> int:
        device = device_of(self.device)
        given = {name: value for name, value in asdict(self.recipe).items() if value is not None}
        recipe = recipe_for(self.data, device, **given)
        start = open_model(self.start) if self.start else None
        name = self.model or DEFAULTS.get(self.data, DEFAULTS["FOLDER"])[0]
        size: Size | None = self.size
        channels: int | None = self.channels
        if self.start and start:
            name = Path(self.start).stem
            size = size or pair(start.config.image_size)
            channels = channels or start.config.channels
        source = Path(self.data).resolve()
        out = self.out or Path("runs", f"{source.name.lower()}_{name}")
        if self.data not in SOURCES and source.is_dir() and out.resolve().is_relative_to(source):
            raise ValueError(f"give --out a folder outside the images: {out} is in {self.data}")
        data = load(self.data, size=size, channels=channels, fraction=self.fraction)
        if not start and weights().get(name):
            untrained = "it begins untrained: to use the weights that there are, give --from"
            print(f"{untrained} {name}", file=sys.stderr)
        torch.manual_seed(recipe.seed)
        model = continued(start, data) if start else model_for(self.data, data, self.model)
        if start and start.licence:
            terms = f"{data.licence or 'none stated'}; weights of {self.start}: {start.licence}"
            data = replace(data, licence=terms)
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
        )
        print(f"validation  {results.validation}")
        print(f"test        {results.test}")
        print(f"{results.steps} steps in {results.seconds:.0f} s; written to {out}")
        return 0
