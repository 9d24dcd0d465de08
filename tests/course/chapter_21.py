"""Chapter 21: answers that learners might give."""

from functools import partial

import torch

import minivit


def by_hook(x, known, model, name):
    """The mean put in by a forward hook of torch's own."""
    module, found = model.get_submodule(name), []
    handle = module.register_forward_hook(lambda m, i, o: found.append(o))
    model(known)
    handle.remove()
    mean = sum(found[0]) / len(known)
    handle = module.register_forward_hook(lambda m, i, o: mean.expand_as(o))
    result = model(x)
    handle.remove()
    return result


def faulty_mean(x, known, model, name, change=lambda here, there: there.mean(0, keepdim=True)):
    with minivit.record(model, name) as seen:
        model(known)
    with minivit.replace(model, {name: lambda here: change(here, seen[name]).expand_as(here)}):
        return model(x)


def by_mask(x, other, model, name, tokens):
    with minivit.record(model, name) as seen:
        model(other)
    taken = torch.zeros(x.shape[1], 1, dtype=torch.bool)
    taken[tokens] = True
    with minivit.replace(model, {name: lambda here: torch.where(taken, seen[name], here)}):
        return model(x)


def faulty_patch(x, other, model, name, tokens, which=lambda tokens, n: tokens, new=lambda t: t):
    with minivit.record(model, name) as seen:
        model(other)

    def put_in(here):
        out = here.clone()
        for i in which(tokens, x.shape[1]):
            out[:, i] = new(seen[name][:, i])
        return out

    with minivit.replace(model, {name: put_in}):
        return model(x)


def by_token(tokens, norm, head):
    return sum(head(norm(tokens[:, i])) for i in range(tokens.shape[1])) / tokens.shape[1]


def by_head(R, weights, slopes):
    total = R
    for w, s in zip(weights.unbind(1), slopes.unbind(1), strict=True):
        total = total + (w * s).clamp_min(0) @ R / weights.shape[1]
    return total


def faulty_block(R, weights, slopes, mean=torch.mean, part=torch.relu):
    return R + mean(part(weights * slopes), 1) @ R


def by_threshold(x, encoder, bias, k):
    codes = (x @ encoder.mT + bias).clamp_min(0)
    return codes * (codes >= codes.sort(-1).values[:, [-k]])


def faulty_codes(x, encoder, bias, k, before=torch.relu, by=lambda c: c, largest=True):
    codes = before(x @ encoder.T + bias)
    where = by(codes).topk(k, -1, largest=largest).indices
    return torch.zeros_like(codes).scatter(-1, where, codes.gather(-1, where))


CORRECT = {
    "with_mean": by_hook,
    "patched": by_mask,
    "read_out": by_token,
    "add_block": by_head,
    "sparse_codes": by_threshold,
}

WRONG = {
    "with_mean": [
        ("nothing is put in", lambda x, known, model, name: model(x)),
        ("Zeros", partial(faulty_mean, change=lambda here, there: torch.zeros_like(here))),
        ("mean over x", partial(faulty_mean, change=lambda here, there: here.mean(0))),
        ("share one mean", partial(faulty_mean, change=lambda here, there: there.mean((0, 1)))),
        (
            "mean over the tokens",
            partial(faulty_mean, change=lambda here, there: here.mean(1, keepdim=True)),
        ),
        ("a sum over", partial(faulty_mean, change=lambda here, there: there.sum(0))),
    ],
    "patched": [
        ("nothing is put in", lambda x, other, model, name, tokens: model(x)),
        ("All tokens", partial(faulty_patch, which=lambda tokens, n: range(n))),
        (
            "list stay",
            partial(faulty_patch, which=lambda tokens, n: set(range(n)) - set(tokens)),
        ),
        ("run is that of the other", lambda x, other, *rest: faulty_patch(other, x, *rest)),
        ("Zeros", partial(faulty_patch, new=torch.zeros_like)),
        ("logits of the other", lambda x, other, model, name, tokens: model(other)),
    ],
    "read_out": [
        ("before the norm", lambda tokens, norm, head: head(norm(tokens.mean(1)))),
        ("norm is left out", lambda tokens, norm, head: head(tokens.mean(1))),
        ("added up", lambda tokens, norm, head: head(norm(tokens).sum(1))),
        ("Only the first token is read", lambda tokens, norm, head: head(norm(tokens[:, 0]))),
        ("second time", lambda tokens, norm, head: head(norm(norm(tokens).mean(1)))),
    ],
    "add_block": [
        ("negative parts count too", partial(faulty_block, part=lambda t: t)),
        ("count as positive", partial(faulty_block, part=torch.abs)),
        (
            "mean over the heads comes first",
            lambda R, w, s: R + (w * s).mean(1).relu() @ R,
        ),
        ("heads are added up", partial(faulty_block, mean=torch.sum)),
        ("in the wrong order", lambda R, w, s: R + R @ (w * s).relu().mean(1)),
        ("not added", lambda R, w, s: (w * s).relu().mean(1) @ R),
        ("gradients are not used", lambda R, w, s: R + w.mean(1) @ R),
        ("attention weights are not", lambda R, w, s: R + s.relu().mean(1) @ R),
        ("out of the product", lambda R, w, s: R + (w * s).relu().mean(1)),
    ],
    "sparse_codes": [
        ("All positive", lambda x, encoder, bias, k: (x @ encoder.T + bias).relu()),
        ("bias is left out", lambda x, encoder, bias, k: by_threshold(x, encoder, 0 * bias, k)),
        ("smallest", partial(faulty_codes, largest=False)),
        ("whatever the sign", partial(faulty_codes, before=lambda c: c, by=torch.abs)),
        (
            "of all tokens together",
            lambda x, encoder, bias, k: (
                (c := (x @ encoder.T + bias).relu())
                * (c >= c.flatten().sort(descending=True).values[len(x) * k - 1])
            ),
        ),
        (
            "not a 1",
            lambda x, encoder, bias, k: (by_threshold(x, encoder, bias, k) > 0).to(x.dtype),
        ),
        ("below zero is kept", partial(faulty_codes, before=lambda c: c)),
    ],
}

OWN = "what the module gives is changed in place, and nothing else of the run reads the old"
TWO = "of two axes the last is number 1"

EQUIVALENT = {
    "with_mean": {},
    "patched": {
        "given = given.clone() -> given = given": OWN,
        "given = given.clone() -> pass": OWN,
    },
    "read_out": {},
    "add_block": {},
    "sparse_codes": {
        "largest, where = scores.topk(k, -1) -> largest, where = scores.topk(k, 1)": TWO,
        "return torch.zeros_like(scores).scatter(-1, where, largest) -> "
        "return torch.zeros_like(scores).scatter(1, where, largest)": TWO,
    },
}
