"""Each instrument on one architecture: what it finds, beside what is computed by hand."""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import minivit
from tests.vitlab.tried import by_hand
from tests.vitlab.tried.architectures import Tried
from vitlab import instruments as analysis


def close(found: Tensor, known: Tensor, rtol: float = 1e-4, atol: float = 1e-5) -> None:
    torch.testing.assert_close(found.double(), known.double(), rtol=rtol, atol=atol)


def heard(model: nn.Module, images: Tensor, tried: Tried) -> list[Tensor]:
    """The attention weights by hand."""
    with by_hand.softmaxes(len(images)) as seen:
        output = model(images)
    plain = model(images)  # with torch's own kernels
    close(by_hand.first(tried.answer(output)), by_hand.first(tried.answer(plain)), 1e-3, 1e-4)
    return [by_head(w, images) for i, w in enumerate(seen) if i not in tried.others]


def by_head(weights: Tensor, images: Tensor) -> Tensor:
    """``[images, heads, ...]``, also of those that have heads and images on one axis."""
    return weights.unflatten(0, (len(images), -1)) if weights.ndim == 3 else weights


def between_tokens(model: nn.Module, images: Tensor, tried: Tried) -> list[Tensor]:
    return over_the_grid(
        [w for w in heard(model, images, tried) if w.shape[-1] == w.shape[-2]], tried
    )


def over_the_grid(weights: list[Tensor], tried: Tried) -> list[Tensor]:
    """Between all tokens, also where the source says that attention is in windows."""
    if not tried.windows:
        return weights
    return [by_hand.spread(w, *at) for w, at in zip(weights, tried.windows, strict=True)]


def recorded(model: nn.Module, images: Tensor, tried: Tried) -> None:
    with minivit.record(model, tried.weights) as seen:
        model(images)
    known = heard(model, images, tried)
    assert len(seen) == len(known) > 0, (list(seen), [list(w.shape) for w in known])
    for found, weights in zip(seen.values(), known, strict=True):
        close(found, weights.reshape(found.shape))


def attention_distance(model: nn.Module, images: Tensor, tried: Tried) -> None:
    found = analysis.attention_distance(model, images, grid=tried.give)
    known = between_tokens(model, images, tried)
    assert len(found.blocks) == len(known)
    for row, uniform, weights in zip(found.pixels, found.uniform, known, strict=True):
        patches = tried.grids[weights.shape[-1]]
        apart = by_hand.distances(patches.grid, patches.step)
        row = row[~row.isnan()]
        close(row, by_hand.mean_distance(weights, patches.where, apart))
        close(uniform, apart.mean())


def rollout(model: nn.Module, images: Tensor, tried: Tried) -> None:
    found = analysis.rollout(model, images, grid=tried.give, read=told(tried))
    known = by_hand.rolled_out(between_tokens(model, images, tried))
    for matrices, product in zip(found.matrices, known, strict=True):
        close(matrices, product)
    read = read_by_the_head(known[-1], model, images, tried)
    close(found.patches[-1], read / read.sum(1, keepdim=True))


def told(tried: Tried) -> list[int] | None:
    """The tokens that are read, where the model has no answer to find them by."""
    return [*next(iter(tried.grids.values())).where] if tried.told else None


def read_by_the_head(matrices: Tensor, model: nn.Module, images: Tensor, tried: Tried) -> Tensor:
    """What those tokens take from the patches that the architecture's source reads."""
    where, rows = (tried.grids[count].where for count in (matrices.shape[-1], matrices.shape[1]))
    share = torch.zeros(matrices.shape[:2], dtype=torch.float64)
    if tried.reads == "pool":  # by the first query, of which other architectures have no more
        with by_hand.softmaxes(len(images)) as seen:
            model(images)
        share[:] = by_head(seen[tried.others[0]], images)[:, :, 0].mean(1)
    else:
        share[:, {"first": [0], "patches": rows}.get(tried.reads, list(tried.reads))] = 1
    return (share[:, None] @ matrices.double() / share.sum(1)[:, None, None])[:, 0, where]


def relevance(model: nn.Module, images: Tensor, tried: Tried) -> None:
    how = {"grid": tried.give, "read": told(tried)}
    found = analysis.relevance(model, images, torch.tensor([1, 3]), **how)
    with torch.enable_grad(), by_hand.softmaxes(len(images)) as seen:
        logits = tried.answer(model(images.clone().requires_grad_()))
        (logits[0, 1] + logits[1, 3]).backward()
    square, slopes = [], []
    for w in (w for i, w in enumerate(seen) if i not in tried.others):
        if w.shape[-1] == w.shape[-2]:
            square.append(by_head(w.detach(), images))
            slopes.append(by_head(torch.zeros_like(w) if w.grad is None else w.grad, images))
    square, slopes = over_the_grid(square, tried), over_the_grid(slopes, tried)
    for weights, slope in zip(square, slopes, strict=True):
        weights.grad = slope
    known = by_hand.relevances(square)
    for matrices, total in zip(found.matrices, known, strict=True):
        close(matrices, total)
    eye = torch.eye(len(found.matrices[0][0]))
    assert (found.matrices[0][0] != eye).any()
    rest = known[-1] - by_hand.merged(eye[None], known[-1].shape[1])
    close(found.patches[-1], read_by_the_head(rest, model, images, tried))


def cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    return F.cross_entropy(logits.double(), labels)


def head_importance(model: nn.Module, images: Tensor, tried: Tried) -> None:
    found = analysis.head_importance(model, images)
    labels = tried.answer(model(images)).argmax(1)
    all_of_them = heard(model, images, tried)
    square = [i for i, w in enumerate(all_of_them) if w.shape[-1] == w.shape[-2]]
    numbers = [i for i in range(99) if i not in tried.others]
    assert found.loss.shape[0] == len(square)
    for row, i in zip(found.loss, square, strict=True):
        assert row[all_of_them[i].shape[1] :].isnan().all()  # where a block has fewer heads
        for head in range(all_of_them[i].shape[1]):

            def silenced(at: int, w: Tensor, i: int = i, head: int = head) -> Tensor:
                if at == numbers[i]:
                    w = w.clone()
                    by_head(w, images)[:, head] = 0
                return w

            with by_hand.softmaxes(len(images), silenced):
                close(row[head], cross_entropy(tried.answer(model(images)), labels))


def logit_lens(model: nn.Module, images: Tensor, tried: Tried) -> None:
    found = analysis.logit_lens(model, images)
    assert found.names[1:] == tried.blocks, found.names
    seen = by_hand.ends(model, images, tried.blocks)
    states = [seen[tried.blocks[0]][0], *(after for _, after in seen.values())]
    for row, tokens in zip(found.logits, states, strict=True):
        if tried.end:
            close(row, tried.end(model, tokens))
            continue
        with by_hand.hooked(model, tried.blocks[-1:], by_hand.placed(tokens)):
            close(row, tried.answer(model(images)))
    close(found.logits[-1], tried.answer(model(images)))


def branch_importance(model: nn.Module, images: Tensor, tried: Tried) -> None:
    found = analysis.branch_importance(model, images)
    assert len(found.names) == tried.branches and found.whole_accuracy == 1, found.names
    labels = tried.answer(model(images)).argmax(1)
    for name, loss, accuracy in zip(found.names, found.loss, found.accuracy, strict=True):
        with by_hand.hooked(model, [tried.end_of(name)], by_hand.zeroed):
            logits = tried.answer(model(images))
        close(loss, cross_entropy(logits, labels))
        assert accuracy == (logits.argmax(1) == labels).double().mean()


def branch_ratios(model: nn.Module, images: Tensor, tried: Tried) -> None:
    found = analysis.branch_ratios(model, images)
    read = by_hand.ends(model, images, tried.stream)
    *names, last = tried.stream
    stream = [*(read[name][0] for name in names), read[last][last in names]]
    assert len(found.names) == len(stream) - 1, found.names
    for ratio, skip, total in zip(found.ratio, stream, stream[1:], strict=False):
        known = (total - skip).double().norm(dim=-1) / skip.double().norm(dim=-1)
        close(ratio, known.mean(0), 1e-3)


def saliency(model: nn.Module, images: Tensor, tried: Tried) -> None:
    found = analysis.saliency(model, images)
    x = images.clone().requires_grad_()
    with torch.enable_grad():
        tried.answer(model(x)).max(1).values.sum().backward()
    close(found, x.grad.abs().max(1).values, 1e-3)
    assert found.abs().max() > 0


def position_table(model: nn.Module, images: Tensor, tried: Tried) -> None:
    found = analysis.position_table(model)
    known = tried.positions(model)
    assert torch.equal(found, known)
    cosines = analysis.position_similarity(found).flatten(0, 1).flatten(1)
    rows = known.flatten(0, 1).double()
    close(cosines, F.cosine_similarity(rows[:, None], rows[None], dim=-1))


def token_norms(model: nn.Module, images: Tensor, tried: Tried) -> None:
    found = analysis.token_norms(model, images, grid=tried.give)
    assert found.names == tried.blocks
    for here, extra, (_, x) in zip(found.patches, found.extra, by_hand.ends(model, images, tried.blocks).values(), strict=True):  # fmt: skip
        norms = x.double().square().sum(-1).sqrt()
        patches = tried.grids[x.shape[1]]
        close(here, norms[:, patches.where].unflatten(1, patches.grid))
        close(extra, norms[:, [i for i in range(x.shape[1]) if i not in patches.where]])


def feature_variance(model: nn.Module, images: Tensor, tried: Tried) -> None:
    found = analysis.feature_variance(model, images, *tried.blocks, grid=tried.give)
    assert found.names == tried.blocks
    for value, (_, x) in zip(found.values, by_hand.ends(model, images, tried.blocks).values(), strict=True):  # fmt: skip
        close(value, tried.to_map(x).flatten(2).double().numpy().var(2).mean() * torch.ones(()))


def layer_frequencies(model: nn.Module, images: Tensor, tried: Tried) -> None:
    found = analysis.layer_frequencies(model, images, *tried.blocks, grid=tried.give)
    assert tuple(found) == tried.blocks
    for name, both in by_hand.ends(model, images, tried.blocks).items():
        for mine, x in zip((found[name].before, found[name].after), both, strict=True):
            close(mine.values, by_hand.log_amplitudes(tried.to_map(x)), 1e-3, 1e-3)


Check = Callable[[nn.Module, Tensor, Tried], None]
CHECKS: list[Check] = [attention_distance, rollout, relevance, head_importance, branch_importance,
          branch_ratios, logit_lens, saliency, position_table, token_norms, feature_variance,
          layer_frequencies]  # fmt: skip
INSTRUMENTS: dict[str, Check] = {"record": recorded} | {f.__name__: f for f in CHECKS}
