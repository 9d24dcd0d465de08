"""A valid call of every public function, on models so small that it takes milliseconds.

The arguments are by the parameter's name, those of one function alone in ``OWN``.
"""

import copy
import shutil
import tempfile
from collections import OrderedDict
from collections.abc import Callable, Iterator
from functools import wraps
from importlib import import_module
from inspect import BoundArguments, Parameter, signature
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import timm
import torch
import torchvision
import transformers
from matplotlib.figure import Figure
from PIL import Image
from torch import Tensor, nn

import minivit
import vitlab
from vitlab import data, inversion, training
from vitlab.data.pictures import open_picture

PARTS = ("instruments", "data", "figures", "inversion", "krylov", "training")
# What functions return; nobody makes one.
RECORDS = {"Importance", "Localisation", "Ridge", "Results", "Scores", "Stopped", "Diverged", "Generated", "Inversion", "Unwound", "Extremes", "Linearisation", "Data"}  # fmt: skip


class Call(NamedTuple):
    """A function, and arguments that it takes; those of ``spare`` have a default in the call."""

    name: str
    function: Callable[..., Any]
    arguments: dict[str, Any]
    spare: dict[str, Any]

    def __call__(self, **changes: Any) -> Any:
        given = self.arguments | changes
        about = signature(self.function)
        others = {name: given.pop(name) for name in given.keys() - about.parameters.keys()}
        if self.name in ("train", "freeze"):  # which change their model
            given["model"] = copy.deepcopy(given["model"])
        bound = BoundArguments(about, OrderedDict(given))
        bound.apply_defaults()
        return self.function(*bound.args, **bound.kwargs, **others)


def tiny(name: str, **changes: Any) -> Any:
    model: Any = minivit.create(name, classes=3, **changes).eval()
    with torch.no_grad():
        for p in model.parameters():
            p.normal_(0, 0.3)
    model.preprocess = minivit.Preprocess((8, 8), (8, 8), mean=(0.5,), std=(0.5,))
    model.classes = tuple("abc")
    return model


def make_files(model: Any, folder: Path) -> None:
    """``vit.safetensors``, ``folder``, ``grey.png``, and ``damaged``, from which nothing can be read."""
    minivit.save(model, folder / "vit.safetensors")
    for name, i in product("abc", range(6)):
        pixels = np.random.default_rng(i + 9 * ord(name)).integers(0, 256, (8, 8), dtype=np.uint8)
        (folder / "folder" / name).mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels).save(folder / "folder" / name / f"{i}.png")
    shutil.copy(folder / "folder/a/0.png", folder / "grey.png")
    (folder / "damaged/folder of none").mkdir(parents=True)
    for file in (folder / "vit.safetensors", folder / "grey.png"):
        whole = file.read_bytes()
        for name, content in {"empty": b"", "text": b"hello", "cut": whole[:-30]}.items():
            (folder / "damaged" / f"{name}{file.suffix}").write_bytes(content)


def record(model: nn.Module, *names: str, detach: bool = False) -> dict[str, Any]:
    with minivit.record(model, *names, detach=detach) as seen:
        vit(images)
    return dict(seen)


def replace(model: nn.Module, values: Any) -> Tensor:
    with minivit.replace(model, values):
        return vit(images)


@wraps(vitlab.between_patches)
def between_patches(*arguments: Any, **more: Any) -> Tensor:
    return replace(vit, vitlab.between_patches(*arguments, **more))


between_patches.__annotations__ = vitlab.between_patches.__annotations__ | {"return": Tensor}


def fold(x: Tensor) -> Tensor:
    return torch.stack([x[:, 0] ** 2, x[:, 1]], 1)


def smooth(x: Tensor) -> Tensor:
    return x + x.tanh() / 2


def symmetric(x: Tensor) -> Tensor:
    return torch.einsum("nij,nj->ni", square @ square.mT, x)


torch.manual_seed(0)
vit, other = tiny("vit_8px", dim=8, depth=2, heads=2), tiny("mixer_8px", dim=8, depth=2)
double = copy.deepcopy(vit).double()
images, labels = torch.rand(4, 1, 8, 8), torch.tensor([0, 1, 2, 0])
numbers, square = torch.randn(4, 5), torch.randn(2, 4, 4).double()
pictures = torch.randint(256, (12, 1, 8, 8), dtype=torch.uint8)
split = data.Split(pictures, torch.arange(12) % 3)
small = data.Data.of("SMALL", tuple("abc"), dict.fromkeys(("train", "validation", "test"), split))
with minivit.record(double, "blocks.0") as _seen, torch.no_grad():
    double(images[:1].double())
tokens, norm = _seen["blocks.0"], nn.LayerNorm(6).double()
flat, point = torch.randn(2, 4).double(), torch.tensor([[1.0, 0.3]]).double()
normed = norm(torch.randn(1, 3, 6).double()).detach()
generator = torch.Generator().manual_seed(0)
KEPT = tempfile.TemporaryDirectory(prefix="hostile", ignore_cleanup_errors=True)
FILES = Path(KEPT.name) / "a" / "b"  # ../.. is inside, too
FILES.mkdir(parents=True)
make_files(vit, FILES)

NAMED: dict[str, Any] = {
    "model": vit, "images": images, "image": images[:1], "picture": images[0], "classes": labels, "labels": labels, "names": ("blocks.0", "blocks.1"),
    "other": other, "other_names": ("blocks.0",), "at": "blocks.0", "name": "blocks.0", "grid": (4, 4), "batch_size": 4, "seed": 0, "steps": 3,
    "k": 1, "points": 3, "parameters": "head*", "reference": images, "train": (torch.rand(9, 1, 8, 8), torch.arange(9) % 3),
    "test": (torch.rand(6, 1, 8, 8), torch.arange(6) % 3), "x": numbers, "y": numbers + 1, "q": torch.randn(2, 5, 4), "v": torch.randn(2, 6, 3),
    "mask": torch.rand(5, 6) > 0.2, "size": (8, 8), "channels": 1, "patch_size": 2, "heads": 2, "dim": 8, "depth": 1, "image_size": 8, "low": 0.1,
    "high": 0.3, "cutoff": 0.2, "std": 0.5, "like": images, "function": smooth, "start": flat, "table": torch.randn(4, 4, 3), "tokens": tokens,
    "block": double.blocks[0], "blocks": (0,), "part": "mlp", "split": split, "data": small, "source": vit, "config": vit.config, "place": (1, 1),
    "fraction": 0.9, "path": FILES / "saved.safetensors", "weights": FILES / "vit.safetensors", "out": FILES / "run", "step_size": 0.1, "blur": 1.0,
    "target": tokens.float(), "where": torch.tensor([[True, False]]), "query": 3, "teacher": vit, "start_image": images[:1], "label_smoothing": 0.1,
    "jitter": 1, "window": 2, "local": 3, "registers": 1, "layer_scale": 0.1, "enough": 1.0, "dense": True, "vmax": 1.0, "licence": "CC0",
    "minutes": 0.001, "command": "train", "newton": 5, "other_model": other, "mlp_ratio": 2,
}  # fmt: skip
OWN: dict[str, dict[str, Any]] = {
    "Hybrid": {"config": minivit.HybridConfig(8, 1, 3, widths=(4, 8, 8), heads=(1, 2, 2))}, "Mixer": {"config": other.config},
    "ResNet": {"config": minivit.ResNetConfig(8, 1, 3, "3x3", "basic", (1, 1), 4)},
    "ViTVariant": {"config": minivit.ViTVariantConfig(8, 2, 1, 3, 8, 1, 2)}, "ViTConfig": {"image_size": 8, "patch_size": 2, "dim": 8, "heads": 2},
    "ViTVariantConfig": {"image_size": 8, "patch_size": 2, "dim": 8, "heads": 2}, "MixerConfig": {"image_size": 8, "patch_size": 2, "dim": 8},
    "MultiHeadAttention": {"dim": 8, "heads": 2}, "Preprocess": {"size": (8, 8), "resize": (9, 9), "mean": (0.5,), "std": (0.5,), "stretch": False},
    "attention_weights": {"k": torch.randn(2, 6, 4)}, "scaled_dot_product_attention": {"k": torch.randn(2, 6, 4)},
    "create": {"name": "vit_8px", "dim": 8, "depth": 1, "heads": 2}, "load": {"name": FILES / "vit.safetensors"},
    "from_torchvision": {"source": torchvision.models.VisionTransformer(8, 4, 1, 2, 8, 16, num_classes=3).eval()},
    "transplant": {"target": copy.deepcopy(vit)}, "record": {"names": ("blocks.*", "blocks.*.attention.weights")},
    "replace": {"values": {"blocks.0.mlp": lambda t: 2 * t}},
    "filter_normalised": {"loss": vitlab.WeightLoss(vit, images, labels, "head*"), "direction": torch.randn(1, 27)},
    "deletion_curves": {"scores": torch.rand(4, 16)}, "patch_means": {"maps": images[:, 0]},
    "learn_dictionary": {"tokens": torch.randn(30, 4), "size": 6, "k": 2, "steps": 9}, "density": {"probes": 2}, "landscape": {"points": 3},
    "batch_maxima": {"batch_size": 4}, "cue_conflict": {"answers": labels, "shapes": labels, "textures": 2 - labels},
    "ensemble": {"predictions": torch.rand(3, 4, 3)}, "cosine_basis": {"size": (2, 3)}, "filter_spectra": {"filters": torch.randn(6, 1, 4, 4)},
    "principal_components": {"pictures": torch.randn(9, 1, 3, 3)},
    "subspace_overlap": {"a": torch.eye(9)[:2].view(2, 1, 3, 3), "b": torch.eye(9)[1:4].view(3, 1, 3, 3)}, "band_noise": {"n": 2},
    "log_amplitude": {"maps": images}, "branch_importance": {"labels": labels, "names": ("blocks.0.mlp",)},
    "readable": {"train": torch.rand(20, 1, 8, 8), "test": torch.rand(9, 1, 8, 8)},
    "probe": {"train": (torch.randn(9, 4), torch.arange(9) % 3), "test": (torch.randn(6, 4), torch.arange(6) % 3)},
    "ridge": {"penalties": (0.1, 1.0)}, "cka": {"other_names": ("blocks.0",)}, "between_patches": {"weights": torch.full((16, 16), 1 / 16)},
    "frequency_response": {"matrix": torch.rand(2, 16, 16)}, "gaussian_smoothing": {"width": 1.0},
    "Split": {"images": pictures, "labels": split.labels}, "load_data": {"source": FILES / "folder", "size": 8},
    "overlay": {"ax": Figure().subplots(), "values": torch.rand(16)}, "heat": {"values": torch.rand(16), "picture_size": (8, 8)},
    "attention_overlay": {"query": (1, 1)}, "confusion_figure": {"matrix": torch.eye(3).long(), "classes": tuple("abc")},
    "Frames": {"draw": lambda v: Figure(figsize=(1, 1)), "values": (1, 2.5), "label": "width", "alt": "at {value}", "start": 0, "dpi": 20},
    "curve": {"lines": [{"epoch": 1, "loss": 1.0, "accuracy": 0.5, "validation": {"log_likelihood": -1.0, "accuracy": 0.5}}]},
    "collide_across_fold": {"function": fold, "positive": point, "negative": -point},
    "compare": {"function": fold, "first": point, "second": point + 1},
    "collide_along": {"function": torch.relu, "x": torch.tensor([[-1.0, 1.0]]).double(), "directions": torch.tensor([[1.0, 0.0]]).double()},
    "find_collisions": {"function": fold, "x": point}, "hidden_directions": {"function": lambda x: x[:, :1], "x": point},
    "sign_change": {"function": fold, "x": torch.cat([point, -point])}, "shifted_distance": {"function": vit},
    "linear_guess": {"tokens": tokens.float()}, "EmbeddingInverse": {"embedding": vit.patch_embedding},
    "PatchPrior": {"mean": torch.zeros(4).double(), "covariance": torch.eye(4).double()},
    "generate": {"class_index": 1, "steps": 2, "size": (1, 8, 8), "method": "source"},
    "recognise": {"pictures": pictures[:4], "judges": {"ours": vit}}, "fibre": {"norm": norm, "y": normed},
    "meeting": {"fibres": inversion.fibre(norm, normed), "weight": torch.randn(6, 2), "offset": torch.randn(3, 6)},
    "decibels": {"distance": torch.rand(4) + 1, "image": images}, "invert": {"image": images[:1], "steps": 2},
    "Fourier": {"shape": (1, 1, 8, 8), "generator": generator, "preprocess": vit.preprocess},
    "Pixels": {"shape": (1, 1, 8, 8), "generator": generator, "constant": 10.0, "jitter_after": 1},
    "Climb": {"pictures": torch.rand(16, 1, 8, 8)}, "viewed": {"x": images, **{name: torch.zeros(4) + 0.1 for name in ("turn", "zoom", "down", "across")}}, "blurred": {"images": images},
    "invert_block": {"y": tokens}, "invert_residual": {"branch": lambda x: x.tanh() / 2, "y": flat}, "unwind": {"model": double, "steps": 20},
    "lipschitz": {"branch": smooth, "x": flat, "towards": flat + 1}, "levenberg_marquardt": {"y": flat, "steps": 5},
    "newton_krylov": {"y": flat, "steps": 5}, "gmres": {"operator": symmetric, "b": flat}, "lanczos": {"operator": symmetric},
    "singular_values": {"push": symmetric, "pull": symmetric}, "hessian": {"function": lambda x: (x**3).sum(1)}, "or_one": {"size": numbers},
    "wide": {"dtype": torch.float16}, "confusion": {"logits": torch.randn(4, 3)}, "freeze": {"parts": "blocks.0"},
    "train": {"recipe": training.Recipe(epochs=1, batch_size=6), "start": "none"},
    "from_timm": {"module": timm.create_model("vit_tiny_patch16_224", img_size=8, patch_size=4, embed_dim=8, depth=1, num_heads=2, num_classes=3).eval()},
    "from_huggingface": {"model": transformers.ViTForImageClassification(transformers.ViTConfig(hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16, image_size=8, patch_size=4, num_labels=3)).eval()},
    "open_picture": {"path": FILES / "grey.png"}, "Preprocess()": {"pictures": pictures[0]}, "CKA().update": {"x": {"a": numbers}, "y": {"a": numbers + 1}},
    "Data.of": {"name": "SMALL", "classes": tuple("abc"), "parts": {"train": split, "validation": split, "test": split}},
    "EmbeddingInverse().images": {"tokens": tokens, "prior": inversion.PatchPrior.of(images, 2)}, "Split[]": {"index": torch.tensor([2, 0])},
}  # fmt: skip
WRAPPED = {"record": record, "replace": replace, "between_patches": between_patches}
OTHERS: dict[str, Callable[..., Any]] = {  # methods, and what reads an image
    "open_picture": open_picture, "ViT()": vit.forward, "Mixer()": other.forward, "Preprocess()": lambda pictures: vit.preprocess(pictures),
    "CKA().update": lambda x, y=None: (sums := vitlab.CKA()).update(x, y) or sums.result(), "PatchPrior.of": inversion.PatchPrior.of, "Data.of": data.Data.of,
    "EmbeddingInverse().images": inversion.EmbeddingInverse(vit.patch_embedding).images, "Split[]": split.__getitem__,
}  # fmt: skip


def public() -> Iterator[tuple[str, Callable[..., Any]]]:
    """Every public name that can be called, once, by introspection."""
    known = set(RECORDS)
    for package in map(import_module, ("minivit", "vitlab", *(f"vitlab.{part}" for part in PARTS))):
        for name in getattr(package, "__all__", None) or vars(package):
            value = getattr(package, name)
            ours = getattr(value, "__module__", "").split(".")[0] in ("minivit", "vitlab")
            if callable(value) and ours and name[0] != "_" and name not in known:
                known.add(name)
                yield name, WRAPPED.get(name, value)
    yield from OTHERS.items()


def calls() -> Iterator[Call]:
    """A valid call of each; KeyError where an argument that has no default has no value here."""
    for name, function in public():
        parameters, own = signature(function).parameters, OWN.get(name, {})
        named = {n: p for n, p in parameters.items() if p.kind is not Parameter.VAR_KEYWORD}
        needed = {n for n, p in named.items() if p.default is Parameter.empty} | own.keys()
        if lacking := needed - (NAMED | own).keys():
            raise KeyError(f"no valid value for {lacking} of {name}")
        given = {n: (NAMED | own)[n] for n in [*named, *own] if n in needed}
        spare = {n: NAMED.get(n) if p.default is None else p.default for n, p in named.items()}
        yield Call(name, function, given, {n: v for n, v in spare.items() if n not in needed})
