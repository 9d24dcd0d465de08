"""Accuracy by the number of training images, in equally many steps, at the rate best for all.

Rows that end in ``_plain`` have no augmentation and no label smoothing; ``narrow`` is a ViT half as
wide.
"""

from dataclasses import replace

from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import minivit
from minivit.model import Model
from studies.runner.pool import weights_of
from studies.runner.run import Run, loaded, spread
from studies.runner.storage import Store
from studies.runner.study import Rows, Runs, Study
from studies.shared.small_models import NOTHING, WHOLE, search, variants
from studies.shared.training import features
from vitlab.instruments import attention_distance

ENDS = (1_000, 5_000, WHOLE)
FEW = 2000  # images of SHAPES that a linear map is fitted on, and as many to test it
# Of each row: family, images, whether it is plain, and seeds.
ROWS = {
    **{f"{f}_{n}": (f, n, False, 3) for f in ("vit", "resnet") for n in ENDS},
    **{f"{f}_{n}_plain": (f, n, True, 3) for f in ("vit", "resnet") for n in ENDS},
    **{f"{f}_20000": (f, 20_000, False, 1) for f in ("vit", "resnet", "mixer")},
    **{f"mixer_{n}": ("mixer", n, False, 1) for n in ENDS},
    **{f"narrow_{n}": ("narrow", n, False, 3) for n in ENDS[1:]},
}


def candidates(family: str) -> list[Run]:
    """The search of a family; the narrow ViT has its own."""
    if family != "narrow":
        return search(family)
    return [replace(run, changes=run.changes | {"dim": 32}) for run in search("vit")]


def finals(name: str, best: Run) -> list[Run]:
    _, pictures, plain, seeds = ROWS[name]
    return variants(best, range(seeds), pictures, **NOTHING if plain else {})


def transfer(model: Model) -> float:
    """Accuracy on SHAPES of a linear map fitted on what the model's head reads."""
    linear = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    data = loaded("SHAPES")
    train, test = (
        (features(model, model.preprocess(part.images[:FEW])), part.labels[:FEW].numpy())
        for part in (data.train, data.test)
    )
    return float(linear.fit(*train).score(*test))


def measure(finals: Runs, store: Store) -> Rows:
    """How well augmented models and an untrained one transfer; how far their attention reaches."""
    rows: Rows = {}
    for name, runs in finals.items():
        if ROWS[name][2]:
            continue
        models = [minivit.load(weights_of(run, store)) for run in runs]
        fresh = runs[0].create()
        fresh.preprocess = models[0].preprocess
        rows[name] = {
            "transfer": [transfer(model) for model in models],
            "transfer_untrained": transfer(fresh),
        }
        if ROWS[name][0] in ("vit", "narrow"):  # what has attention
            images = fresh.preprocess(spread(runs[0].load().test, 250).images)
            rows[name]["attention_distance"] = [  # in pixels, of each block over its heads
                attention_distance(model, images).pixels.mean(1).tolist() for model in models
            ]
    return rows


SEARCHES = {name: candidates(family) for name, (family, *_) in ROWS.items()}
STUDY = Study("data_size", SEARCHES, finals, measure)
