import torch
import torch.nn.functional as F


def random_mask(noise, kept):
    ranks = (noise[:, :, None] > noise[:, None]).sum(2)
    return ranks.argsort(1)[:, :kept], ranks


def masked_loss(guess, patches, masked):
    std, mean = torch.std_mean(patches, -1, correction=0, keepdim=True)
    wanted = (patches - mean) / (std**2 + 0.01) ** 0.5
    return F.mse_loss(guess[masked], wanted[masked])


def knn_accuracy(features, labels, test_features, test_labels, k):
    right = 0
    for x, label in zip(test_features, test_labels, strict=True):
        near = F.cosine_similarity(features, x[None], dim=1).topk(k).indices
        right += int(labels[near].bincount().argmax() == label)
    return right / len(test_labels)


def ema(average, new, momentum):
    return new + momentum * (average - new)


def dino_loss(student, teacher, centre, student_temperature, teacher_temperature):
    with torch.no_grad():
        targets = F.softmax((teacher - centre) / teacher_temperature, -1)
    losses = [F.cross_entropy(student[i] / student_temperature, targets[1 - i]) for i in (0, 1)]
    return sum(losses) / 2


def principal_colours(tokens):
    x = tokens - tokens.mean(0, keepdim=True)
    values, vectors = torch.linalg.eigh(x.T @ x)
    scores = x @ vectors[:, [-1, -2, -3]]
    scores = scores - scores.min(0).values
    return scores / scores.max(0).values


def loss_parts(targets, logs):
    whole = F.cross_entropy(logs, targets)
    apart = F.kl_div(logs, targets, reduction="batchmean")
    return torch.stack([whole - apart, apart])


def logarithms(targets, logs):
    own = -(targets * targets.log()).sum(1).mean()
    return torch.stack([own, -(targets * logs).sum(1).mean() - own])


def attached(student, teacher, centre, student_temperature, teacher_temperature):
    targets = F.softmax((teacher - centre) / teacher_temperature, -1)
    logs = F.log_softmax(student / student_temperature, -1)
    return -(targets.flip(0) * logs).sum(-1).mean()


WRONG = [
    ("random_mask", "Return two tensors", lambda noise, kept: (noise.argsort(1),)),
    ("random_mask", "of type Tensor", lambda noise, kept: noise.argsort(1)[:, :kept]),
    ("dino_loss", "A gradient reaches the teacher", attached),
    ("dino_loss", "No gradient reaches the student", lambda student, *rest: attached(student.detach(), *rest)),
    ("loss_parts", "0 ln 0 should be 0", logarithms),
]  # fmt: skip

EQUIVALENT = [
    ("knn_accuracy", "rows are what normalize takes by default", "F.normalize(features, dim=1) -> F.normalize(features)", "F.normalize(test_features, dim=1) -> F.normalize(test_features)"),
    ("knn_accuracy", "the length of a test image's features changes no order", "F.normalize(test_features, dim=1) -> test_features"),
    ("masked_loss", "both have as many pixels", "layer_norm(patches, patches.shape -> layer_norm(patches, guess.shape"),
    ("masked_loss", "a square has no sign", "guess[masked], wanted[masked] -> wanted[masked], guess[masked]"),
    ("principal_colours", "the first three rows are the same", "full_matrices=False -> full_matrices=True", "x, full_matrices=False -> x"),
    ("loss_parts", "of two axes the last is number 1", "targets).sum(-1) -> targets).sum(1)", "logs).sum(-1) -> logs).sum(1)"),
    ("principal_colours", "a component's sign is free", "tokens - tokens.mean(0) -> tokens.mean(0) - tokens"),
]  # fmt: skip
