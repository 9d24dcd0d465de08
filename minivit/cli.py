"""The command line: ``minivit train``, ``eval``, ``predict``, ``models``.

A command is a dataclass whose fields are its options, and the comments beside them its help. Bad
input gives a message and exit code 2; `predict` goes on to the next image.
"""

import io
import os
import re
import shlex
import sys
from dataclasses import asdict, dataclass, field, make_dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal, get_type_hints

import torch
import tyro
from tyro.conf import FlagCreatePairsOff, Positional, arg, create_mutex_group

import minivit
from minivit.data.loading import SOURCES, Data, load_data
from minivit.data.pictures import open_picture
from minivit.hub.files import MODEL
from minivit.hub.zoo import weights
from minivit.networks.model import Model
from minivit.networks.patches import pair
from minivit.networks.shapes import Size
from minivit.training.defaults import DEFAULTS, continued, device_of, model_for, recipe_for
from minivit.training.evaluate import evaluate
from minivit.training.loop import Stopped, train
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
MANY = arg(metavar="IMAGE ...", help_behavior_hint="(required)")


@dataclass(kw_only=True)
class Command:
    device: Literal["auto", "cuda", "mps", "cpu"] = "auto"  # auto is the first there is
    threads: int | None = None  # processor threads (None: torch's choice)


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


@dataclass(kw_only=True)
class Eval(Command):
    """Score a trained model."""

    checkpoint: Positional[str]  # a .safetensors file, or the folder of a training
    data: str  # as for `train`
    part: Literal["train", "validation", "test"] = "test"  # of the data
    batch_size: int = 256  # images at a time

    def run(self, typed: str) -> int:
        model = open_model(self.checkpoint).to(device_of(self.device))
        config = model.config
        data = load(self.data, size=pair(config.image_size), channels=config.channels)
        if list(model.classes) != list(data.classes):
            raise ValueError(
                f"the model tells {', '.join(model.classes)} apart: {data.name} has "
                f"{', '.join(data.classes)}"
            )
        print(evaluate(model, getattr(data, self.part), self.batch_size))
        return 0


@dataclass(kw_only=True)
class Predict(Command):
    """Name what images show."""

    pictures: Annotated[Positional[tuple[str, ...]], MANY]  # files of images
    model: str
    """a .safetensors file, the folder of a training, or a name with weights, such as vit_b_32"""
    top: int = 5  # how many classes

    def run(self, typed: str) -> int:
        if not self.pictures:
            raise ValueError("expected the path of at least one image: got none")
        model = open_model(self.model).to(device_of(self.device))
        device = next(model.parameters()).device
        code = 0
        for path in self.pictures:
            try:
                image = model.preprocess(open_picture(path)).to(device)
            except Exception as error:  # broken files raise many kinds
                why = f"{type(error).__name__}: {error}"
                code = complain(f"expected an image at {path}; reading it failed: {why}")
                continue
            with torch.no_grad():
                probabilities = model(image).cpu().double().softmax(1)[0]
            best = probabilities.topk(min(self.top, len(probabilities)))
            print(path)
            for probability, index in zip(best.values.tolist(), best.indices.tolist(), strict=True):
                print(f"  {probability:7.2%}  {model.classes[index]}")
        return code


@dataclass
class Models:
    """List the models."""

    def run(self, typed: str) -> int:
        print(minivit.models())
        return 0


def main(arguments: list[str] | None = None) -> int:
    """Runs one command; gives the exit code: 0, or 2 for bad input, or 128 + a signal's number."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # for names that are not UTF-8
    arguments = sys.argv[1:] if arguments is None else arguments
    if arguments == ["--version"]:
        print(f"minivit {minivit.__version__}")
        return 0
    command: Any = tyro.cli(
        Train | Eval | Predict | Models,
        prog="minivit",
        description="Vision transformers, small to read. --version tells which.",
        args=arguments,
        config=(tyro.conf.DisallowNone, tyro.conf.OmitArgPrefixes),
    )
    typed = shlex.join(["python", "-m", "minivit", *arguments])
    try:
        for option in ("threads", "top"):
            if (count := getattr(command, option, None)) is not None and count < 1:
                raise ValueError(f"expected a whole number, at least 1: got --{option} {count}")
        if getattr(command, "threads", None):
            torch.set_num_threads(command.threads)
        code: int = command.run(typed)
        sys.stdout.flush()
        return code
    except BrokenPipeError:  # who reads this has read enough; what is left goes nowhere
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + 13  # SIGPIPE, which Windows does not have
    except (ValueError, OSError, ImportError, FloatingPointError) as error:
        return complain(error)
    except (MemoryError, RuntimeError) as error:
        full = re.search("out of memory|allocate memory", str(error))
        if not full and not isinstance(error, MemoryError):
            raise
        return complain("out of memory: try a smaller --batch-size")
    except Stopped as stopped:
        again = typed if command.resume else f"{typed} --resume"
        print(f"{stopped}. To go on:\n    {again}", file=sys.stderr)
        return 128 + stopped.signum
    except KeyboardInterrupt:
        return 130


def complain(error: object) -> int:
    """Prints an error; gives the exit code for bad input."""
    print(f"error: {error}", file=sys.stderr)
    return 2


def load(source: str, **options: Any) -> Data:
    """Loads data, and reports what was left out."""
    data = load_data(source, **options)
    for picture in data.skipped:
        print(f"left out: {picture}", file=sys.stderr)
    return data


def open_model(name: str) -> Model:
    """A model from a file, from the folder of a training, or by name."""
    path = Path(name)
    model = minivit.load(str(path / MODEL) if path.is_dir() else name)
    if getattr(model, "preprocess", None) is None:
        raise ValueError(f"{name} does not say how its images are prepared: expected preprocess")
    return model
