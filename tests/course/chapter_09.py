import torch
import torch.nn.functional as F


def mean_offset(weights, rows, columns):
    weights = weights.unflatten(1, (rows, columns)).unflatten(3, (rows, columns))
    down = torch.arange(rows) - torch.arange(rows)[:, None]  # [query row, key row]
    right = torch.arange(columns) - torch.arange(columns)[:, None]
    by_row, by_column = weights.sum((2, 4)), weights.sum((1, 3))  # [heads, query, key]
    found = [(by_row * down).sum((1, 2)), (by_column * right).sum((1, 2))]
    return torch.stack(found, 1) / (rows * columns)


def relevance(weights, gradients):
    blocks, heads, tokens, _ = weights.shape
    R = torch.eye(tokens)
    for block in range(blocks):
        kept = [torch.relu(weights[block, h] * gradients[block, h]) for h in range(heads)]
        R = (torch.eye(tokens) + sum(kept) / heads) @ R
    return R


def integrated_gradients(images, baseline, score, steps):
    points = [baseline + (k + 0.5) / steps * (images - baseline) for k in range(steps)]
    points = torch.cat(points).requires_grad_()
    (found,) = torch.autograd.grad(score(points).sum(), points)
    return (images - baseline) * found.unflatten(0, (steps, len(images))).mean(0)


def effective_keys(weights):
    counts = [[torch.special.entr(row).sum().exp() for row in head] for head in weights]
    return torch.stack([torch.stack(head).mean() for head in counts])


def merge_matrix(keys, sizes, merges):
    alike = [F.cosine_similarity(key, keys[1::2], dim=1) for key in keys[::2]]
    best, partner = torch.stack(alike).max(1)
    gone = best.topk(merges).indices.tolist()
    rows = [torch.where(torch.arange(len(keys)) == i, sizes, 0) for i in range(len(keys))]
    for a in gone:
        rows[2 * int(partner[a]) + 1] = rows[2 * int(partner[a]) + 1] + rows[2 * a]
    rows = [row / row.sum() for i, row in enumerate(rows) if i % 2 or i // 2 not in gone]
    return torch.stack(rows)


WRONG = [("effective_keys", "0 log 0", lambda w: (-(w * w.log()).sum(-1)).exp().mean(-1))]

EQUIVALENT = [
    ("effective_keys", "of two axes the last is axis 1", "mean(-1) -> mean(1)"),
    ("mean_offset", "of two axes the last is axis 1", "dim=-1 -> dim=1"),
    ("relevance", "there are as many queries as keys", "weights.shape[-1] -> weights.shape[-2]"),
    ("relevance", "gradients have the shape of weights", "weights.shape -> gradients.shape"),
    ("integrated_gradients", "the first gradient makes it a batch", "zeros_like(images) -> zeros_like(baseline)"),
    ("merge_matrix", "there are as many sizes as keys", "eye(len(keys)) -> eye(len(sizes))", "arange(len(keys)) -> arange(len(sizes))", "ones(len(keys) -> ones(len(sizes)"),
]  # fmt: skip
