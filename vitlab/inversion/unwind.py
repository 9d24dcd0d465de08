"""The exact way back: from the tokens after a block, through each block, to the image."""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Int
from torch import Tensor, nn

from minivit.mixer import Mixer
from minivit.parts import ConvStem
from minivit.patches import pair
from minivit.recording import record
from minivit.shapes import Images, Tokens
from minivit.vit import PatchEmbedding, ViT
from vitlab.calls import activation, expect, refuse_training
from vitlab.inversion.climb import Climb
from vitlab.inversion.criterion import noise
from vitlab.inversion.embedding import Told, linear_guess
from vitlab.inversion.optimise import in_dtype, invert
from vitlab.inversion.peel import Peel
from vitlab.inversion.residual import branches, invert_block, usual
from vitlab.inversion.solvers import Numbers, relative_residual, solved

STARTS = 8  # around the guess, where the guess itself failed
AROUND = 0.5  # standard deviation of the noise that makes them
TRIED = 100  # steps of L-BFGS from each of them, before all but one are given up
NEWTON = 10  # steps at most for a branch: where trained ones took more, they led to other tokens
FAILED = 1e-8  # relative residual of a block, above which going on through it is useless


@dataclass(frozen=True, eq=False)
class Stage:
    """One stage of the way back, for the images of the batch that needed it."""

    name: str  # the block that was undone; "pixels from" the block with the tokens; "restarts"
    entries: Int[Tensor, " batch"]
    method: tuple[str, ...]  # of each: "fixed point", "newton" or "lbfgs"
    error: Numbers  # of each: relative, of the forward pass through the stage alone
    # With a climb as the start, for each image that came back branch by branch:
    found: tuple[int, ...] = ()  # solutions of the branch
    taken: tuple[int, ...] = ()  # which of them, counted from 0, the nearest to the climb's image
    off: tuple[float, ...] = ()  # of tokens after the first block: relative, from the image's
    stopped: tuple[str, ...] = ()  # where one does not come back: why its farthest way ended


@dataclass(frozen=True, eq=False)
class Unwound:
    """What :func:`unwind` found."""

    image: Images  # float64, in the model's input space
    stages: tuple[Stage, ...]  # in the order in which they were taken
    error: Numbers  # ‖O(image) - tokens‖ / ‖tokens‖, by the forward pass
    tolerance: float  # 1.8e-12 for tokens in float64, 6.4e-6 in float32
    start: Images | None  # given, or found by a climb

    @property
    def exact(self) -> Bool[Tensor, " batch"]:
        """Whether the error is within the tolerance."""
        return self.error <= self.tolerance


@torch.inference_mode(False)  # in which nothing has a gradient
def unwind(
    model: nn.Module,
    tokens: Tokens,
    at: str,
    *,
    start: Images | Climb | None = None,
    steps: int = 4000,
) -> Unwound:
    """Finds the image that a model turned into the tokens that a block gave.

    Residual blocks are undone, the last one first: by the fixed point where it contracts, by
    Newton-GMRES elsewhere. The first block and the embedding are undone together, over the pixels,
    by at most ``steps`` of L-BFGS; where that fails, from the tokens one block later, and so on,
    and last from the best of 8 starts around the guess. The model is a ViT or Mixer with residuals
    and norms before its sub-layers, or none.

    With ``start``, images near those sought, every branch is solved from what it computes for them,
    and the search over the pixels begins there. A :class:`~vitlab.inversion.climb.Climb` finds such
    images; with it, and a linear patch embedding, each is first sought among all solutions of one
    branch after another, and no further.
    """
    last = _check(model, tokens, at)
    tolerance = solved(tokens.dtype)
    model, tokens = in_dtype(model, torch.float64), tokens.detach().double()
    assert isinstance(model, ViT)  # for mypy
    config, stages = model.config, list[Stage]()

    mask = model.mask(config.grid)
    image = tokens.new_zeros(len(tokens), config.channels, *pair(config.image_size))
    error = tokens.new_full((len(tokens),), torch.inf)
    if isinstance(start, Climb):
        climb, start = start, start(tokens)
        if isinstance(model.patch_embedding, PatchEmbedding | ConvStem):
            image, error, stages = _peeled(Peel(model, at, climb), tokens, start)
            return Unwound(image, tuple(stages), error, tolerance, start)
    near = _states(model, start, tokens, last)
    x, going = tokens, torch.arange(len(tokens), device=tokens.device)
    known = {last: (x, going)}  # block -> tokens that it may have given, and for which images
    for i in range(last, 0, -1):
        begin = near[i][going] if near else None
        inverse = invert_block(model.blocks[i], x, mask, NEWTON, begin)
        methods = tuple("newton" if newton else "fixed point" for newton in inverse.newton)
        stages.append(Stage(f"blocks.{i}", going, methods, inverse.residual))
        success = inverse.residual < FAILED
        x, going = inverse.x[success], going[success]
        if not len(going):
            break
        known[i - 1] = x, going

    whole = activation(model, at)
    searches = [(i, 1) for i in sorted(known)] + [(last, STARTS)]
    for i, starts in searches:
        x, going = known[i]
        left = error[going] > tolerance
        x, going = x[left], going[left]
        if not len(going):
            continue
        point = f"blocks.{i}"
        new = to_pixels(model, point, x, starts, steps, None if start is None else start[going])
        reached = relative_residual(activation(model, point), new, x)
        name = "restarts" if starts > 1 else f"pixels from {point}"
        stages.append(Stage(name, going, ("lbfgs",) * len(going), reached))
        reached = relative_residual(whole, new, tokens[going])
        nearer = reached < error[going]
        image[going[nearer]], error[going[nearer]] = new[nearer], reached[nearer]
    return Unwound(image, tuple(stages), error, tolerance, start)


def _peeled(peel: Peel, tokens: Tokens, near: Images) -> tuple[Images, Numbers, list[Stage]]:
    """The images that are found branch by branch, the errors of their tokens, and the stages."""
    images, errors, stages = list[Tensor](), list[Tensor](), list[Stage]()
    for i, (y, start) in enumerate(zip(tokens.split(1), near.split(1), strict=True)):
        peel(y, start)
        entry = torch.tensor([i])
        images.append(peel.image)
        errors.append(torch.tensor([peel.error]).to(tokens))
        for level, found, taken in peel.way:
            at = (f"branches.{level}", entry, ("newton",), torch.zeros(1).to(tokens))
            stages.append(Stage(*at, found=(found,), taken=(taken,)))
        why = () if peel.error <= solved(tokens.dtype) else (peel.stopped,)
        at = ("first block", entry, ("gauss-newton",), errors[-1])
        stages.append(Stage(*at, off=(peel.off,), stopped=why))
    return torch.cat(images), torch.cat(errors), stages


def _check(model: nn.Module, tokens: Tensor, at: str) -> int:
    """Checks that the tokens can be unwound, and gives the block's index."""
    if not isinstance(model, ViT):
        raise TypeError(f"expected a minivit.ViT or Mixer: got {type(model).__name__}")
    names = [f"blocks.{i}" for i in range(len(model.blocks))]
    expect(at in names, f"a block, {names[0]} to {names[-1]}", repr(at))
    extra = 0 if model.class_token is None else model.class_token.shape[1]  # with registers
    shape = [extra + math.prod(model.config.grid), model.config.dim]
    expect([*tokens.shape[1:]] == shape, f"tokens [batch, {shape[0]}, {shape[1]}]", [*tokens.shape])
    usual(tokens)
    refuse_training(model)
    for block in model.blocks[: names.index(at) + 1]:
        branches(block)  # raises where a block has no way back
    return names.index(at)


@torch.no_grad()
def _states(model: ViT, start: Images | None, tokens: Tokens, last: int) -> dict[int, Tokens]:
    """What goes into each block but the first, for the images that are near, if there are any."""
    if start is None:
        return {}
    shape = [len(tokens), model.config.channels, *pair(model.config.image_size)]
    expect([*start.shape] == shape, f"images {shape} as a start", [*start.shape])
    names = [f"blocks.{i}" for i in range(last)]
    with record(model, *names) as inside:
        model(start.to(tokens))
    return {i + 1: inside[name] for i, name in enumerate(names)}


def to_pixels(
    model: ViT | Mixer, at: str, tokens: Tokens, starts: int, steps: int, near: Images | None
) -> Images:
    """Finds the images whose tokens after ``at`` are these, by L-BFGS from the best start."""
    guesses = linear_guess(model, at, tokens) if near is None else near.to(tokens)
    reader = Told(model, at).eval()
    images = []
    for target, start in zip(tokens.split(1), guesses.split(1), strict=True):
        if starts > 1:
            around = AROUND * noise(start.new_empty(1, starts, *start.shape[1:]), 0)[0]
            many = target.expand(starts, -1, -1)
            tried = invert(reader, target=many, start=reader.told(start + around), steps=TRIED)
            nearest = tried.feature_distance.nan_to_num(math.inf).amin(1).argmin()
            start = reader.images(tried.image[nearest][None])
        inversion = invert(reader, target=target, start=reader.told(start), steps=steps)
        images.append(reader.images(inversion.image))
    return torch.cat(images)
