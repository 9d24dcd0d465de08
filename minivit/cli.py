"""The command line: ``python -m minivit train``, ``eval``, ``predict``, ``models``.

It reads options and prints; everything else is in ``minivit.training``. Bad input gives one line
that begins with "error:", and exit code 2; `predict` goes on to the next picture.
"""

import dataclasses
import io
import os
import re
import shlex
import sys
from argparse import ArgumentParser, ArgumentTypeError, BooleanOptionalAction, Namespace
from pathlib import Path
from typing import Any, get_args

import torch

import minivit
from minivit.data.loading import SOURCES, Data, load_data
from minivit.data.pictures import open_picture
from minivit.hub.files import MODEL
from minivit.hub.zoo import weights
from minivit.networks.model import Model
from minivit.networks.patches import pair
from minivit.training.defaults import DEFAULTS, continued, model_for, recipe_for
from minivit.training.evaluate import Scores, evaluate
from minivit.training.loop import Stopped, train
from minivit.training.recipe import Recipe

DATA = "DIGITS, CIFAR10, SHAPES, or a folder with a folder of pictures for each class"


def main(arguments: list[str] | None = None) -> int:
    """Runs one command; gives the exit code: 0, or 2 for bad input, or 128 + a signal's number."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # for names that are not UTF-8
    arguments = sys.argv[1:] if arguments is None else arguments
    options = parser().parse_args(arguments)
    typed = shlex.join(["python", "-m", "minivit", *arguments])
    try:
        if options.threads:
            torch.set_num_threads(options.threads)
        code: int = options.run(options, typed)
        sys.stdout.flush()
        return code
    except BrokenPipeError:  # who reads this has read enough; what is left goes nowhere
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + 13  # SIGPIPE, which Windows does not have
    except (ValueError, OSError, ImportError, FloatingPointError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except (MemoryError, RuntimeError) as error:
        if not isinstance(error, MemoryError) and not re.search(
            "out of memory|allocate memory", str(error)
        ):
            raise
        print("error: out of memory: try a smaller --batch-size", file=sys.stderr)
        return 2
    except Stopped as stopped:
        again = typed if options.resume else f"{typed} --resume"
        print(f"{stopped}. To go on:\n    {again}", file=sys.stderr)
        return 128 + stopped.signum
    except KeyboardInterrupt:
        return 130


def run_train(options: Namespace, typed: str) -> int:
    device = device_of(options.device)
    chosen = {f.name: getattr(options, f.name) for f in dataclasses.fields(Recipe)}
    given = {name: value for name, value in chosen.items() if value is not None}
    recipe = recipe_for(options.data, device, **given)
    start = open_model(options.start) if options.start else None
    name = options.model or DEFAULTS.get(options.data, DEFAULTS["FOLDER"])[0]
    if start:
        name = Path(options.start).stem
        options.size = options.size or pair(start.config.image_size)
        options.channels = options.channels or start.config.channels
    source = Path(options.data).resolve()
    out = options.out or Path("runs", f"{source.name.lower()}_{name}")
    if options.data not in SOURCES and source.is_dir() and out.resolve().is_relative_to(source):
        raise ValueError(f"give --out a folder outside of the pictures: {out} is in {options.data}")
    data = load(
        options.data, size=options.size, channels=options.channels, fraction=options.fraction
    )
    if not start and weights().get(name):
        print(f"it begins untrained: to use the weights that there are, give --from {name}",
              file=sys.stderr)  # fmt: skip
    torch.manual_seed(recipe.seed)
    model = continued(start, data) if start else model_for(options.data, data, options.model)
    if start and start.licence:
        terms = f"{data.licence or 'none stated'}; weights of {options.start}: {start.licence}"
        data = dataclasses.replace(data, licence=terms)
    model = model.to(device)
    results = train(
        model, data, recipe, out=out, resume=options.resume, save_every=options.save_every,
        progress=True, command=typed, start=options.start,
    )  # fmt: skip
    print(f"validation  {described(results.validation)}")
    print(f"test        {described(results.test)}")
    print(f"{results.steps} steps in {results.seconds:.0f} s; written to {out}")
    return 0


def run_eval(options: Namespace, typed: str) -> int:
    model = open_model(options.checkpoint).to(device_of(options.device))
    config = model.config
    data = load(options.data, size=pair(config.image_size), channels=config.channels)
    if list(model.classes) != list(data.classes):
        raise ValueError(
            f"the model tells {', '.join(model.classes)} apart: {data.name} has "
            f"{', '.join(data.classes)}"
        )
    print(described(evaluate(model, getattr(data, options.part), options.batch_size)))
    return 0


def run_predict(options: Namespace, typed: str) -> int:
    model = open_model(options.model).to(device_of(options.device))
    device, code = next(model.parameters()).device, 0
    for path in options.pictures:
        try:
            image = model.preprocess(open_picture(path)).to(device)
        except Exception as error:  # broken files raise many kinds
            why = f"{type(error).__name__}: {error}"
            print(f"error: expected a picture at {path}; reading it failed: {why}", file=sys.stderr)
            code = 2
            continue
        with torch.no_grad():
            chances = model(image).cpu().double().softmax(1)[0]
        best = chances.topk(min(options.top, len(chances)))
        print(path)
        for chance, place in zip(best.values.tolist(), best.indices.tolist(), strict=True):
            print(f"  {chance:7.2%}  {model.classes[place]}")
    return code


def run_models(options: Namespace, typed: str) -> int:
    print(minivit.models())
    return 0


def load(source: str, **options: Any) -> Data:
    """Loads data, and says what was left out."""
    data = load_data(source, **options)
    for picture in data.skipped:
        print(f"left out: {picture}", file=sys.stderr)
    return data


def open_model(name: str) -> Model:
    """A model from a file, from the folder of a training, or by name."""
    path = Path(name)
    model = minivit.load(str(path / MODEL) if path.is_dir() else name)
    if getattr(model, "preprocess", None) is None:
        raise ValueError(f"{name} does not say how its pictures are prepared: expected preprocess")
    return model


def described(scores: Scores) -> str:
    return (
        f"accuracy {scores.accuracy:.2%}, mean log-likelihood {scores.log_likelihood:.4f}, "
        f"calibration error {scores.calibration_error:.2%}, {scores.pictures} pictures"
    )


def whole(text: str) -> int:
    """A number of things, at least one."""
    if not text.isdecimal() or int(text) < 1:
        raise ArgumentTypeError(f"expected a whole number, at least 1: got {text}")
    return int(text)


def device_of(name: str) -> torch.device:
    """The device with this name, or for ``"auto"`` the fastest there is."""
    if name == "auto":
        mps = torch.backends.mps.is_available()
        name = "cuda" if torch.cuda.is_available() else "mps" if mps else "cpu"
    if (name == "cuda" and not torch.cuda.is_available()) or (
        name == "mps" and not torch.backends.mps.is_available()
    ):
        raise ValueError(f"there is no {name} device here")
    return torch.device(name)


def parser() -> ArgumentParser:
    """The options of every command."""
    common = ArgumentParser(add_help=False)
    common.add_argument("--device", choices=["auto", "cuda", "mps", "cpu"], default="auto",
                        help="default: auto, the first there is")  # fmt: skip
    common.add_argument("--threads", type=whole, help="processor threads (default: torch's choice)")
    common.set_defaults(resume=False)
    top = ArgumentParser("python -m minivit", description="Vision transformers, small to read.")
    top.add_argument("--version", action="version", version=f"minivit {minivit.__version__}")
    commands = top.add_subparsers(required=True, metavar="COMMAND")

    one = commands.add_parser("train", parents=[common], help="train a model")
    one.add_argument("--data", required=True, help=DATA)
    one.add_argument("--size", type=int, help="side in pixels to make a folder's pictures")
    one.add_argument("--channels", type=int, choices=[1, 3], help="grey or colour, for a folder")
    one.add_argument("--fraction", type=float, default=1.0,
                     help="of the training pictures (default: 1.0)")  # fmt: skip
    which = one.add_mutually_exclusive_group()
    which.add_argument("--model", help="a name that `models` lists (default: a small ViT)")
    which.add_argument("--from", dest="start", metavar="TRAINED",
                       help="begin with a trained model, given as to `predict`")  # fmt: skip
    one.add_argument("--out", type=Path, help="folder (default: runs/DATA_MODEL)")
    one.add_argument("--resume", action="store_true", help="go on from --out, or begin")
    one.add_argument("--save-every", type=float, default=60, help="seconds (default: 60)")
    add_recipe(one)
    one.set_defaults(run=run_train)

    one = commands.add_parser("eval", parents=[common], help="score a trained model")
    one.add_argument("checkpoint", help="a .safetensors file, or the folder of a training")
    one.add_argument("--data", required=True, help=DATA)
    one.add_argument("--part", choices=["train", "validation", "test"], default="test",
                     help="default: test")  # fmt: skip
    one.add_argument("--batch-size", type=whole, default=256,
                     help="pictures at a time (default: 256)")  # fmt: skip
    one.set_defaults(run=run_eval)

    one = commands.add_parser("predict", parents=[common], help="name what pictures show")
    one.add_argument("pictures", nargs="+", metavar="PICTURE")
    one.add_argument("--model", required=True, help="a .safetensors file, the folder of a "
                     "training, or a name with weights, such as vit_b_32")  # fmt: skip
    one.add_argument("--top", type=whole, default=5, help="how many classes (default: 5)")
    one.set_defaults(run=run_predict)

    one = commands.add_parser("models", help="list the models")
    one.set_defaults(run=run_models, resume=False, threads=None)
    return top


def add_recipe(command: ArgumentParser) -> None:
    """An option for each field of the recipe, with what its docstring says."""
    group = command.add_argument_group("recipe", "Defaults are for any data unless it is named.")
    said = dict(re.findall(r"^        (\w+): ((?:.|\n {12})*)", Recipe.__doc__ or "", re.M))
    for field in dataclasses.fields(Recipe):
        kind = [k for k in get_args(field.type) or [field.type] if k is not type(None)]
        values = {source: getattr(recipe, field.name) for source, (_, recipe) in DEFAULTS.items()}
        default = ", ".join(f"{value} for {source}" for source, value in values.items())
        if len(set(values.values())) == 1:
            default = str(values["FOLDER"])
        settings: dict[str, Any] = {"type": kind[0]}
        if field.name == "precision":
            settings, default = {"choices": kind}, "bfloat16 where it is fast, but not for DIGITS"
        elif kind == [bool]:
            settings = {"action": BooleanOptionalAction}
        text = " ".join(said[field.name].split()).replace("``", "").replace("%", "%%")
        group.add_argument(
            f"--{field.name.replace('_', '-')}", help=f"{text} (default: {default})", **settings
        )
