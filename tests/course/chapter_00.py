import torch


def scaled_scores(q, k):
    return torch.einsum("bhqd,bhkd->bhqk", q, k) * q.size(3) ** -0.5


def add_branch(x, norm, branch):
    return torch.stack([branch(norm(x)), x]).sum(0)


def mean_token(tokens):
    return torch.stack([image.sum(0) / len(image) for image in tokens])


WRONG = [("scaled_scores", "k.mT does it", lambda q, k: q @ k.permute(3, 2, 1, 0))]

EQUIVALENT = [("scaled_scores", "both have the same width", "q.shape -> k.shape")]
