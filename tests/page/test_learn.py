"""The page's training of a small ViT, beside torch's autograd and AdamW."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import minivit
from minivit.vit import ViTConfig
from tests.page.conftest import node
from tests.parity import draw
from vitlab.data import load_data
from vitlab.training import Recipe
from vitlab.training.optimiser import adamw, schedule

FILES = "engine", "gradient", "training", "trainer", "parts/numbers"
MAKE = """
const engine = minivitEngine(), numbers = minivitNumbers();
const training = minivitTraining(engine, minivitGradient(engine), numbers);
const trainer = minivitTrainer(engine, training, numbers);
for (const layer of Object.values(given.layers ?? {})) {
  for (const part of ["weight", "bias", "table"]) {
    if (layer[part]) layer[part] = Float64Array.from(layer[part]);
  }
}
"""
GRADIENT = "return training.lossAndGradient(given, given.images, given.labels)"
STEPS = """
const moments = {}, { steps, rate } = given, losses = [];
for (let t = 0; t < steps; t++) {
  const { loss, gradient } = training.lossAndGradient(given, given.images, given.labels);
  training.adamw(given.layers, gradient, moments, t + 1, rate * training.schedule(t, steps));
  losses.push(loss);
}
return { losses, layers: given.layers };
"""
TRAIN = """
const { removed = [], seed = 0, until } = given, model = training.untrained({ seed, removed });
const run = trainer.begin(model, given.images, given.labels, given), told = [];
for (let i = 0; i < until && !told.at(-1)?.done; i++) told.push(run.step());
return { told, accuracy: trainer.accuracy(model, given.test, given.truth) };
"""
CASES = [
    *([], [("norm2", [1])]),
    *([(part, None)] for part in ("attention", "mlp", "norm", "residual", "positions")),
    [("attention", [0]), ("residual", [0])],
    [("mlp", None), ("norm", None), ("residual", None), ("positions", None)],
]


def page(call, given):
    """What lines of JavaScript return, run with what trains in the page."""
    return node(MAKE + call, given, *FILES)


def sized():
    """The sizes that the page trains."""
    sizes = {"image_size": 8, "patch_size": 2, "channels": 1, "classes": 10, "pool": "mean"}
    return ViTConfig(**sizes, dim=16, depth=2, heads=4, mlp_ratio=2)


def drawn(removed=()):
    """A ViT of these sizes in float64, every number of which has been drawn, without some parts."""
    of = draw(minivit.ViT(sized()).double()).requires_grad_()
    for part, blocks in removed:
        of = minivit.remove(of, part, blocks)
    return of


def digits(count, part="train"):
    """Normalised images [count, 1, 8, 8] in float64, and labels."""
    data = load_data("DIGITS")
    split = getattr(data, part)[list(range(count))]
    return (split.images.double() / 255 - data.mean[0]) / data.std[0], split.labels


def as_page(of, images, labels):
    """A model of torch as the page has it, and a batch."""
    layers = {}
    for name, tensor in (drawn().state_dict() | of.state_dict()).items():
        layer, _, part = name.rpartition(".")
        layers.setdefault(layer, {})[part] = tensor.flatten().tolist()
        if part == "weight":
            layers[layer]["shape"] = list(tensor.shape)
    c = of.config
    config = {k: getattr(c, k) for k in ("channels", "classes", "dim", "depth", "heads", "pool")}
    config |= {"image_size": [8, 8], "patch_size": [2, 2]}
    batch = {"images": images.flatten(1).tolist(), "labels": labels.tolist()}
    return {"config": config, "layers": layers, "removed": of.removed, "family": "ViT", **batch}


def flat(layers):
    """Tensors by the names that they have in torch, of what the page has by layer."""
    named = ((f"{layer}.{part}", x) for layer, parts in layers.items() for part, x in parts.items())
    return {k: torch.tensor(x, dtype=torch.float64) for k, x in named if not k.endswith("shape")}


@pytest.mark.parametrize("removed", CASES, ids=str)
def test_the_gradient_of_every_parameter_is_that_of_autograd(removed):
    """In float64 with an exact GELU on both sides."""
    of, (images, labels) = drawn(removed), digits(7)
    logits = of(images)
    loss = F.cross_entropy(logits, labels)
    loss.backward()
    ours = page(GRADIENT, as_page(of, images, labels))
    assert abs(ours["loss"] / loss.item() - 1) < 1e-12
    assert (torch.tensor(ours["logits"]).double() - logits.flatten()).abs().max() < 1e-6
    found = flat(ours["gradient"])
    theirs = {name: p.grad for name, p in of.named_parameters() if p.grad is not None}
    assert found.keys() == theirs.keys(), "of the parts that are there, and of no other"
    for name, expected in theirs.items():
        largest = expected.abs().max()
        assert largest > 1e-7, name
        away = (found[name].view_as(expected) - expected).abs().max()
        assert away < 1e-8 * largest, name


def test_the_page_shows_the_function_that_it_trains():
    """The engine's GELU is within 1.5e-7 of the exact one, which is trained."""
    of, (images, labels) = drawn(), digits(5)
    call = """return [training.lossAndGradient(given, given.images, given.labels).logits,
      given.images.flatMap((image) => [...engine.forward(given, image).logits])]"""
    ours, shown = (torch.tensor(one).double() for one in page(call, as_page(of, images, labels)))
    assert 0 < (ours - shown).abs().max() < 1e-5


@pytest.mark.parametrize("rate", [0.01, 0.3])
def test_ten_steps_are_those_of_torch(rate):
    """With clipping, schedule and weight decay; at 0.3 some gradients are clipped."""
    of, (images, labels) = drawn(), digits(9)
    ours = page(STEPS, as_page(of, images, labels) | {"steps": 10, "rate": rate})
    optimizer, losses = adamw(of, Recipe(weight_decay=0.05)), []
    for t in range(10):
        for group in optimizer.param_groups:
            group["lr"] = rate * schedule(t, 10, 0.1)
        loss = F.cross_entropy(of(images), labels)
        optimizer.zero_grad()
        loss.backward()
        length = nn.utils.clip_grad_norm_(of.parameters(), 1.0)
        losses.append(loss.item())
        assert t or length > 1, "the first gradient is clipped"
        optimizer.step()
    assert torch.allclose(torch.tensor(ours["losses"]), torch.tensor(losses), rtol=1e-5)
    trained = flat(ours["layers"])
    for name, theirs in of.named_parameters():
        found = trained[name].view_as(theirs)
        if name.endswith("qkv.bias"):  # AdamW makes steps of the rounding in the keys' gradients
            found, theirs = ((one[:16], one[32:]) for one in (found, theirs))
            found, theirs = torch.cat(found), torch.cat(theirs)
        assert (found - theirs).abs().max() < 1e-6, name


def test_the_first_weights_are_drawn_as_minivit_draws_them():
    found = flat(page("return training.untrained({ seed: 3 }).layers", {}))
    torch.manual_seed(0)
    theirs = minivit.ViT(sized()).state_dict()
    assert found.keys() == theirs.keys()
    for name, expected in theirs.items():
        ours = found[name]
        assert ours.numel() == expected.numel()
        if len(set(expected.flatten().tolist())) == 1:
            assert (ours == expected.flatten()).all(), name
        elif ours.numel() >= 64:
            assert abs(ours.std() / expected.std() - 1) < 0.25, name
            assert abs(ours.mean()) < 0.4 * ours.std(), name


def begin(count=1259, **how):
    train, test = digits(count), digits(359, "test")
    task = {"images": train[0].flatten(1).tolist(), "labels": train[1].tolist()}
    task |= {"test": test[0].flatten(1).tolist(), "truth": test[1].tolist()}
    return task | {"steps": 400, "rate": 0.02, **how}


def test_a_seed_gives_one_curve():
    runs = [page(TRAIN, begin(100, seed=seed, until=12))["told"] for seed in (1, 1, 2)]
    first, same, other = ([told["loss"] for told in run] for run in runs)
    assert first == same != other
    assert abs(first[0] - torch.tensor(10.0).log()) < 1e-6, "it begins at chance"


@pytest.mark.full
def test_a_training_of_400_steps_reads_nine_digits_in_ten():
    done = page(TRAIN, begin(until=400))
    last = done["told"][-1]
    assert done["accuracy"] > 0.9 and len(done["told"]) == 400
    assert last["done"] and not last["diverged"] and last["fitted"] > 0.95 and last["loss"] < 0.3


@pytest.mark.parametrize(
    ("rate", "diverges"), [(2, True), pytest.param(0.05, False, marks=pytest.mark.full)]
)
def test_a_rate_at_which_the_loss_climbs_above_guessing_is_told(rate, diverges):
    told = page(TRAIN, begin(300, rate=rate, until=60))["told"]
    assert [one["diverged"] for one in told[:-1]] == [False] * (len(told) - 1)
    assert told[-1]["diverged"] == diverges
    assert (len(told) < 60) == diverges, "it stops there"
