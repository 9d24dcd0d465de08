"""The reader's own ViT: ``mine.load()`` is the module ``my_vit.py``, which checks have written.

``pieces.py`` has how. Beside it lie the weights of the trained model, ``my_vit.pt``.
"""

import importlib
import re
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from types import ModuleType
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course.pieces import PIECES, NotKept, executed, place, put, read, sections, write
from minivit.files import atomic_write

SIZES = (8, 2, 1, 32, 2, 4, 10)  # of the ViT that reads digits: the order of its arguments


def keep(name: str, function: Any, examine: Callable[[Any], None]) -> str:
    """Keeps a piece whose check has passed in a notebook; says so, or why not."""
    space = vars(sys.modules["__main__"])
    if name not in PIECES or "In" not in space or getattr(function, "__module__", "") != "__main__":
        return ""
    try:
        called = getattr(function, "__name__", "")
        if space.get(name) is not function or called not in (name, "<lambda>"):
            raise NotKept(f"there it would be called {name}, and so it should be here")
        parts = read()
        if hasattr(function, "of_the_book") and name in parts:
            return ""
        parts = put(parts, name, space["In"], space)
        try:
            examine(vars(executed(parts))[name])
        except Exception as error:
            raise NotKept(f"there it fails ({error}). Put what it uses into its cell") from error
        write(parts)
    except NotKept as reason:
        return f"Not kept in {place().name}: {reason}."
    lost = " Colab forgets the file: from course import mine; mine.download()" if colab() else ""
    return f"Kept in {place().name}.{lost}"


def load(*names: str) -> ModuleType:
    """The module in the file, with these pieces, or all; what it lacks is filled from the book.

    ValueError if the file is no Python, or fails.
    """
    parts = read()
    missing = [name for name in names or PIECES if name not in parts]
    for name in missing:
        parts = put(parts, name, [], {})
    try:
        module = executed(parts)
    except Exception as error:
        raise ValueError(f"{place().name} fails, and was not changed: {error!r}") from error
    if missing:
        write(parts)
        print(f"{place().name}: {', '.join(missing)} filled from the book")
        if colab():
            print("If you have a my_vit.py from another day: mine.upload()")
    return module


def colab() -> Any:
    """Colab's way to get files in and out; None elsewhere."""
    with suppress(ImportError):
        return importlib.import_module("google.colab").files
    return None


def download() -> None:
    """Gives the file to the reader's computer, in Colab; elsewhere says where it lies."""
    if (files := colab()) and place().exists():
        files.download(str(place()))
    print(f"{place()}{'' if place().exists() else ': there is none yet'}")


def upload(text: str = "") -> None:
    """Takes the file again: the text given, or a file that Colab asks for."""
    if not text and not (files := colab()):
        print(f"Put it at {place()}, or paste its text: mine.upload(r'''...''')")
        return
    text = text or b"".join(files.upload().values()).decode()
    parts = sections(text)
    try:
        if len(parts) == 1:
            raise ValueError("no line in it is like '# Chapter 1: patchify, mine.'")
        executed(parts)
    except Exception as error:
        raise ValueError(
            f"expected the text of a my_vit.py; nothing was changed: {error}"
        ) from error
    write(parts)
    print(f"{place().name}: {', '.join(filter(None, parts))}")


def digits() -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """scikit-learn's digits, of mean 0 and variance 1: images and labels, then unseen ones."""
    from vitlab.data import load_data

    data = load_data("DIGITS")
    mean, std = data.mean[0], data.std[0]
    known, unseen = ((part.images / 255 - mean) / std for part in (data.train, data.test))
    return known, data.train.labels, unseen, data.test.labels


def new(seed: int = 0) -> nn.Module:
    """The ViT in the file, untrained, of the size for digits."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return load().ViT(*SIZES)


def save(model: nn.Module) -> None:
    """Keeps a trained model's weights beside the file."""
    with atomic_write(place().with_suffix(".pt")) as scratch:
        torch.save(model.state_dict(), scratch)


def trained(seed: int = 0, steps: int = 600) -> nn.Module:
    """The ViT in the file with the weights beside it; trained for seconds, where none fit."""
    model = new(seed)
    with suppress(Exception):  # none, of another model, or damaged
        model.load_state_dict(torch.load(place().with_suffix(".pt"), weights_only=True))
        return model.eval()
    images, labels, *_ = digits()
    optimizer = torch.optim.AdamW(model.parameters(), weight_decay=0.05, fused=True)
    rate = torch.optim.lr_scheduler.OneCycleLR(optimizer, 5e-3, steps)
    draws = torch.Generator().manual_seed(seed)
    for _ in range(steps):
        some = torch.randint(len(images), (64,), generator=draws)
        noise = 0.3 * torch.randn(64, *images.shape[1:], generator=draws)
        optimizer.zero_grad()
        F.cross_entropy(model(images[some] + noise), labels[some]).backward()
        optimizer.step()
        rate.step()
    print(f"{place().stem}.pt has no weights for it: trained for {steps} steps")
    return model.eval()


def plain_name(name: str) -> str:
    """A parameter's name in a reader's ViT, from the package's."""
    name = name.replace("patch_embedding.projection", "embedding")
    name = name.replace("positions.table", "positions")
    return re.sub(r"\b(attention|mlp)\.", "", name)


@torch.no_grad()
def fill(model: nn.Module, values: Mapping[str, Tensor]) -> nn.Module:
    """Copies tensors into the parameters with these plain names; zeros where there is none."""
    for name, parameter in model.named_parameters():
        value = values.get(plain_name(name), torch.zeros_like(parameter))
        parameter.copy_(value.reshape(parameter.shape))
    return model


def as_package(model: nn.Module) -> nn.Module:
    """The package's ViT with the weights of the reader's, of the size for digits."""
    import minivit

    names = ("image_size", "patch_size", "channels", "dim", "depth", "heads", "classes")
    sizes = dict(zip(names, SIZES, strict=True))
    package = minivit.create("vit_8px", pool="class", mlp_ratio=4, **sizes)
    values = {plain_name(name): value for name, value in model.named_parameters()}
    return fill(package.to(next(model.parameters()).dtype), values).eval()
