"""What does the book find in a ViT of 22 million parameters that was pretrained on photographs?

In ``dinov2_small_saliency``, one model, at 224 pixels where nothing else is said, on scikit-image's
ten photographs. Untrained twins have its architecture.
"""

from collections.abc import Callable, Iterable
from functools import cache, partial
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import layer_norm

from minivit.patches import patchify, unpatchify
from minivit.recording import record
from studies.runner.survey import Figures, Survey
from studies.shared.inputs import encoded
from vitlab import instruments
from vitlab.calls import sublayer
from vitlab.convert.dinov2 import NAME, dinov2_small_saliency
from vitlab.convert.open_model import open_any
from vitlab.data.photographs import PHOTOGRAPHS, photograph
from vitlab.inversion.embedding import EmbeddingInverse, PatchPrior
from vitlab.inversion.residual import branches, invert_residual
from vitlab.inversion.solvers import newton_krylov
from vitlab.krylov.products import Operator, linearise, norms, random_like, unit

SHOWN = ("chelsea", "astronaut", "coffee", "rocket", "camera")
INVERTED = ("astronaut", "chelsea")
SHARP = 448  # pixels of a side, for pictures
BLOCKS = range(12)
COLOURED = (0, 2, 4, 6, 8, 10)
FOUND = ("zeros", "smooth", "others")
ITERATIONS, NEWTON, POWER = 1000, 50, 40
NOISE, NEARBY = 1e-3, 8  # of the tokens' norm; steps


@cache
def trained(size: int = 224) -> Any:  # a ViT
    return dinov2_small_saliency(image_size=size).requires_grad_(False)


@cache
def untrained(seed: int = 0) -> Any:
    torch.manual_seed(seed)
    return open_any(NAME, untrained=True).model.requires_grad_(False)


def images(names: Iterable[str] = (), size: int = 224) -> Tensor:
    return torch.cat([trained(size).preprocess(photograph(n)) for n in names or PHOTOGRAPHS])


def tiled(pictures: Tensor) -> str:
    """``[rows, columns, height, width, ...]`` as one picture."""
    return encoded(pictures.transpose(1, 2).flatten(0, 1).flatten(1, 2))


def maps() -> Figures:
    """Of photographs at 448 pixels: the tokens' principal components as colours, in six blocks, and
    the square root of what each head's class token reads in the last, over its largest."""
    model, side = trained(SHARP), SHARP // 14
    colours, heads = [], []
    for image in images(SHOWN, SHARP).split(1):
        with record(model, "blocks.*", "blocks.11.attention.weights") as seen:
            model(image)
        weights = seen["blocks.11.attention.weights"][0, :, 0, 1:].view(-1, side, side)
        heads.append((weights / weights.amax((1, 2), keepdim=True)).sqrt())
        tokens = [layer_norm(seen[f"blocks.{i}"][0, 1:], (384,)) for i in COLOURED]
        colours.append(torch.stack([first_three(x).view(side, side, 3) for x in tokens]))
    pictures = {"names": list(SHOWN), "colours": tiled(torch.stack(colours))}
    return {"side": side, "pictures": pictures | {"heads": tiled(torch.stack(heads))}}


def first_three(x: Tensor) -> Tensor:
    """The first three principal components of tokens, each from 0 to 1 by its deviation."""
    _, _, basis = torch.linalg.svd(x - x.mean(0), full_matrices=False)
    scores = (x - x.mean(0)) @ basis[:3].mT
    scores = scores * scores.pow(3).sum(0).sign()  # whose sign is free otherwise
    return torch.sigmoid(1.2 * scores / scores.std(0))


def positions() -> Figures:
    """The table of 37 x 37, and what it says of rows and columns, with cosines of 25 places."""
    table = instruments.position_table(trained(518))
    cosines = instruments.position_similarity(table)
    rows, columns = torch.meshgrid(*map(torch.arange, cosines.shape[:2]), indexing="ij")
    in_row, in_column = (x[:, :, None, None] == x for x in (rows, columns))
    at = torch.arange(2, 37, 8)
    return {
        "row": cosines[in_row & ~in_column].mean(),
        "column": cosines[in_column & ~in_row].mean(),
        "elsewhere": cosines[~in_row & ~in_column].mean(),
        "recovery": instruments.place_recovery(instruments.position_table(trained())),
        "pictures": {"cosines": tiled(((cosines[at][:, at] + 0.3) / 1.3).clamp(0, 1))},
    }


def filters() -> Figures:
    """First filters with a pattern, before and after training, and their leading components."""
    first = instruments.first_filters(trained())
    components = instruments.principal_components(first).pictures
    basis = instruments.cosine_basis(3, (14, 14))
    few = components[:40] / components[:40].abs().amax((1, 2, 3), keepdim=True)
    after, before = (
        instruments.filter_spectra(x).structured().double().mean()
        for x in (first, instruments.first_filters(untrained()))
    )
    return {
        "pattern": after,
        "pattern_before": before,
        "overlap": instruments.subspace_overlap(components[:28], basis[:28]),
        "pictures": {"components": tiled((few / 2 + 0.5).movedim(1, 3).unflatten(0, (4, 10)))},
    }


def distance() -> Figures:
    """How far each head looks, as a fraction of the image's width."""
    figures: Figures = {}
    for name, model in ("trained", trained()), ("untrained", untrained()):
        far = instruments.attention_distance(model, images(), batch_size=2)
        figures |= {name: far.pixels / 224, "uniform": far.uniform[0] / 224}
    return figures


def norms_of_tokens() -> Figures:
    """By block, the largest norm of a patch over its block's median."""
    sizes = (224, SHARP)
    found = [instruments.token_norms(trained(n), images(size=n), batch_size=2) for n in sizes]
    return {f"{n}": {"largest": norms.largest} for n, norms in zip(sizes, found, strict=True)}


def layers() -> Figures:
    """CKA of the patch embedding and the blocks."""
    names = ("patch_embedding", *(f"blocks.{i}" for i in BLOCKS))
    models = {"trained": trained(), "untrained": untrained()}
    return {name: instruments.cka(m, images(), *names).values for name, m in models.items()}


def embedding() -> Figures:
    """What the patch embedding keeps: of each photograph the fraction of its energy that is lost,
    and decibels of the image found from its tokens with zeros for that, with a prior that knows no
    data (correlations fall with distance), with the other photographs' statistics, and with zeros
    again from the untrained embeddings of five seeds."""
    inverse = EmbeddingInverse(trained().patch_embedding)
    before = [EmbeddingInverse(untrained(seed).patch_embedding).seen for seed in range(5)]
    places = torch.cartesian_prod(*2 * [torch.arange(14, dtype=torch.float64)])
    fall = torch.exp(-torch.cdist(places, places) / 20)  # in pixels
    colours = torch.full((3, 3), 0.9, dtype=torch.float64).fill_diagonal_(1)
    smooth = PatchPrior(torch.zeros(588, dtype=torch.float64), torch.kron(colours, fall))
    weight = trained().patch_embedding.projection.weight.flatten(1).double()
    every = images().double()
    like = trained().preprocess
    mean, std = (torch.tensor(x).view(3, 1, 1) for x in (like.mean, like.std))
    figures: dict[str, list[Any]] = {name: [] for name in ("lost", *FOUND, "before")}
    pictures = {}
    for i, image in enumerate(every.split(1)):
        patches, others = patchify(image, 14)[0], torch.cat([every[:i], every[i + 1 :]])
        tokens = patches @ weight.mT + inverse.bias
        found = [inverse.patches(tokens, p) for p in (None, smooth, PatchPrior.of(others, 14))]
        lost = patches - found[0]
        figures["lost"].append((lost.square().sum() / patches.square().sum()).item())
        for name, x in zip(FOUND, found, strict=True):
            figures[name].append(decibels(x, patches, std))
        ways = (patches @ seen.mT @ seen for seen in before)
        figures["before"].append([decibels(x, patches, std) for x in ways])
        if i == 0:
            shown = {"photograph": patches, "zeros": found[0], "smooth": found[1], "lost": lost}
            for name, x in shown.items():
                level = 0.5 if name == "lost" else mean
                pixels = unpatchify(x[None], (16, 16), 14)[0] * std + level
                pictures[name] = encoded(pixels.clamp(0, 1).movedim(0, 2), "WEBP")
    return {"rank": inverse.rank, "pictures": pictures} | figures


def decibels(x: Tensor, patches: Tensor, std: Tensor) -> float:
    """Of patches ``[n, 588]``, for pixels from 0 to 1."""
    error = (x - patches).unflatten(1, (3, 196)) * std.view(3, 1)
    return -10 * error.square().mean().log10().item()


def way_back(number: int) -> Figures:
    """A block's branches on the tokens of two photographs, in float64, and how they are undone."""
    model: Any = dinov2_small_saliency().requires_grad_(False).double()
    _, x = sublayer(model, f"blocks.{number}.norm1", images(INVERTED).double())
    figures: Figures = {}
    for name, f in zip(("attention", "mlp"), branches(model.blocks[number]), strict=True):
        figures[name] = undone(f, x, newton=NEWTON if name == "attention" else 0)
        x = x + f(x)
    return figures


def undone(f: Operator, x: Tensor, newton: int) -> Figures:
    """Of ``y = x + f(x)``: the spectral radius at ``x``; the error and the residual of what the
    iteration finds, then Newton's method; and where the latter gets from nearby."""
    y = x + f(x)
    push, v, growth = linearise(f, x).push, random_like(x), []
    for _ in range(POWER):
        v = push(v / norms(v)[:, None, None])
        growth.append(norms(v))
    figures: Figures = {"radius": torch.stack(growth[POWER // 2 :]).log().mean(0).exp()}
    inverse = invert_residual(f, y, iterations=ITERATIONS, newton=newton)
    figures |= {"residual": inverse.residual, "error": norms(inverse.x - x) / norms(x)}
    if newton:
        near = x + NOISE * norms(x)[:, None, None] * unit(random_like(x).flatten(1)).view_as(x)
        root = newton_krylov(lambda x: x + f(x), y, near, NEARBY)
        figures[f"from {NOISE:g}"] = norms(root.x - x) / norms(x)
    return figures


ROWS: dict[str, Callable[[], Figures]] = {
    "maps": maps,
    "positions": positions,
    "filters": filters,
    "distance": distance,
    "norms": norms_of_tokens,
    "layers": layers,
    "embedding": embedding,
    **{f"way back, block {i + 1}": partial(way_back, i) for i in BLOCKS},
}
STUDY = Survey("pretrained", ROWS, digits=".4g")
