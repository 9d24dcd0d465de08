"""A training: its model, its data, its recipe; and carrying it out."""

import hashlib
import json
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from typing import Any

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

import minivit
from minivit.model import Model
from minivit.patches import pair
from studies.runner.storage import HERE, Figures, Store, provenance, write
from vitlab.data import Data, Split, load_data
from vitlab.data.dataset import evenly
from vitlab.training import Recipe, evaluate, train

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
TRAINED_ON = 5000  # images of the training part that a model is scored on, without augmentation
# Images of the validation part that an epoch is scored on where a fraction of the training images
# makes epochs short: scoring them on all would take longer than training.
WATCHED = 200
loaded = cache(load_data)  # a copy in files takes a minute to read, shapes as long to draw


@dataclass(frozen=True)
class Run:
    """A model, data and a recipe."""

    model: str  # one of minivit.models()
    changes: dict[str, Any] = field(default_factory=dict)  # fields of its configuration
    recipe: Recipe = field(default_factory=Recipe)  # its seed draws the first weights too
    data: str = "CIFAR10"  # what load_data takes
    fraction: float = 1.0  # of the training images; smaller ones are subsets of larger ones
    random_labels: bool = False  # whether each training image has a class drawn at random
    removed: tuple[str, ...] = ()  # parts that minivit.remove takes out before training
    teacher: str = ""  # a model that comes with the package and teaches this one, or none

    @property
    def fields(self) -> dict[str, Any]:
        """All of the above, as stored; ``removed`` is sorted, and what is empty left out."""
        fields = asdict(self) | {"removed": sorted(self.removed)}
        return {k: v for k, v in fields.items() if v or k not in ("removed", "teacher")}

    @classmethod
    def of(cls, fields: dict[str, Any]) -> "Run":
        return cls(**fields | {"recipe": Recipe(**fields["recipe"])})

    @property
    def key(self) -> str:
        return hashlib.sha256(json.dumps(self.fields, sort_keys=True).encode()).hexdigest()[:12]

    def load(self) -> Data:
        data = loaded(self.data, fraction=self.fraction)
        if not self.random_labels:
            return data
        draws = torch.Generator().manual_seed(self.recipe.seed)
        labels = torch.randint(len(data.classes), data.train.labels.shape, generator=draws)
        return replace(data, train=Split(data.train.images, labels))

    def create(self) -> Model:
        torch.manual_seed(self.recipe.seed)
        model = minivit.create(self.model, **self.changes)
        for part in sorted(self.removed):
            model = minivit.remove(model, part)
        return model


def train_one(run: Run, store: Store = HERE, keep: bool = True) -> Figures:
    """Trains a model, or resumes; scores it, stores the result. ``keep=False`` writes nothing."""
    torch.set_num_threads(1)
    about = provenance()  # before the training: the repository may move on meanwhile
    data, model = run.load(), run.create()
    about["operations"] = operations(model)
    if DEVICE.type == "cuda":  # where small kernels would wait for Python
        model.to(DEVICE).compile()
    few = spread(data.validation, WATCHED)
    watched = data if run.fraction == 1 else replace(data, validation=few)
    out = store.folder(run.key) if keep else None
    teacher = minivit.load(run.teacher) if run.teacher else None
    how: dict[str, Any] = {"out": out, "resume": keep, "command": store.command}
    scores, curve, seconds, diverged = None, [], None, None
    try:
        training = train(model, watched, run.recipe, **how, teacher=teacher)
    except FloatingPointError as error:  # a learning rate can be too large: that is a result too
        diverged = str(error)
    else:
        whole = training.validation if watched is data else evaluate(model, data.validation)
        scores = {
            "train": asdict(evaluate(model, spread(data.train, TRAINED_ON))),
            "validation": asdict(whole),
            "test": asdict(training.test),
        }
        curve, seconds = training.lines, round(training.seconds, 1)
    result = {
        "key": run.key,
        "run": run.fields,
        "pictures": len(data.train),
        "parameters": sum(p.numel() for p in model.parameters()),
        "scores": scores,
        "diverged": diverged,
        "curve": curve,
        "seconds": seconds,
        **about,
    }
    if keep:
        write(result, store.result(run.key))
    return result


def spread(split: Split, pictures: int) -> Split:
    """At most this many images of a part, evenly spaced, as it may be ordered by class."""
    return split[evenly(len(split), pictures)]


def operations(model: Model) -> int:
    images = torch.zeros(1, model.config.channels, *pair(model.config.image_size))
    counter = FlopCounterMode(display=False)
    # The counter does not see what the fused kernel of attention does on a CPU.
    with counter, sdpa_kernel(SDPBackend.MATH), torch.no_grad():
        model.eval()(images)
    return counter.get_total_flops() // 2
