"""Chapter 27: a bag of words, the sigmoid loss, names as a classifier, the gap, recall."""

import torch
from torch import Tensor

from course.check.attempt import Attempt, Draw
from course.check.exercise import exercise


def unit(x: Tensor, axis: int = -1) -> Tensor:
    return x / x.square().sum(axis, keepdim=True).sqrt()


@exercise("captions, dim", seed=0)
def bag_of_words(attempt: Attempt, normal: Draw) -> None:
    """table [words, dim], captions [captions, length], 0 for no word -> [captions, dim]."""
    table, captions = normal(6, 4), torch.tensor([[2, 5, 0], [3, 0, 0], [1, 4, 2]])
    rows = [table[[i for i in caption if i]] for caption in captions.tolist()]
    means = torch.stack([row.mean(0) for row in rows])
    sums = torch.stack([row.sum(0) for row in rows])
    outcomes = {
        means: "For captions of two, one and three words a mean is wrong.",
        sums: "This is the sum of the words. Divide by how many there are.",
        sums / 3: "You divide by the length of the row, places without a word included.",
        table[captions].mean(1): "Number 0 is no word: its row of the table does not count.",
        table[captions].sum(1) / (captions > 0).sum(1, keepdim=True): "Row 0 of the table is added "
        "where there is no word.",
        table[captions[:, 0]]: "Only the first word is used.",
        torch.stack([row.amax(0) for row in rows]): "Take the mean of the words, not the largest.",
    }  # fmt: skip
    attempt.expect_close(attempt(table, captions), outcomes)
    message = "The order of words should not matter, nor where a place is empty."
    attempt.expect_close(attempt(table, captions.flip(1)), {means: message})


@exercise(seed=1)
def sigmoid_loss(attempt: Attempt, normal: Draw) -> None:
    """images [n, d], texts [n, d], scale, bias -> one number."""
    images, texts = normal(4, 3), normal(4, 3)

    def loss(scale=5.0, bias=-2.0, axis: int | None = 1, signs=(1.0, -1.0), pairs=4, only=None):
        a, b = (x if axis is None else unit(x, axis) for x in (images, texts))
        own = torch.eye(4)
        scores = scale * a @ b.T + bias
        signed = torch.where(own > 0, signs[0] * scores, signs[1] * scores)
        each = torch.log(1 + torch.exp(-signed))
        return (each * (1 if only is None else own == only)).sum() / pairs

    outcomes = {
        loss(): "For four pairs, a scale of 5 and a bias of -2 the loss is wrong.",
        loss(axis=None): "The vectors are not divided by their lengths.",
        loss(axis=0): "A vector is a row: divide along dim=1.",
        loss(scale=0.2): "Scores are multiplied by the scale; it is one over a temperature.",
        loss(scale=1.0): "The scale is not used.",
        loss(bias=0.0): "The bias is not used.",
        loss(bias=2.0): "The bias has the wrong sign: it is added to the score.",
        loss(signs=(-1.0, 1.0)): "The signs are exchanged: pairs should have high scores.",
        loss(signs=(1.0, 1.0)): "Only the pairs on the diagonal should have high scores.",
        loss(pairs=16): "Divide by the number of pairs n, not by all n * n terms.",
        loss(pairs=1): "Divide by the number of pairs.",
        loss(only=1): "These are the matching pairs alone. All others count too.",
        loss(only=0): "These are the pairs that do not match alone.",
        -loss(): "The sign is wrong: a loss is positive.",
    }
    attempt.expect_close(attempt(images, texts, 5.0, -2.0), outcomes)
    message = "With scores of a thousand the loss is no number: use F.logsigmoid or F.softplus."
    loud = attempt(images, texts, 1000.0, 0.0, if_not_finite=message)
    away = (-1000 * (unit(images) @ unit(texts).T) * (2 * torch.eye(4) - 1)).clamp(min=0)
    attempt.expect_close(loud, {away.sum() / 4: message}, slack=1e3)


@exercise("images, classes", seed=2)
def zero_shot(attempt: Attempt, normal: Draw) -> None:
    """images [images, d], prompts [classes, prompts, d] -> cosines [images, classes]."""
    images, prompts = normal(5, 4), normal(3, 2, 4)
    prompts = prompts * torch.tensor([1.0, 7.0])[:, None]  # a long prompt has no more weight
    means = unit(prompts).mean(1)
    outcomes = {
        unit(images) @ unit(means).T: "For three classes of two prompts a cosine is wrong.",
        unit(images) @ means.T: "A mean of vectors of length 1 is shorter. Divide it, too.",
        unit(images) @ unit(prompts.mean(1)).T: "The longest prompt decides: divide each first.",
        unit(images) @ prompts.mean(1).T: "The prompts are not divided by their lengths.",
        images @ unit(means).T: "The images are not divided by their lengths.",
        unit(images) @ unit(prompts[:, 0]).T: "Only the first prompt of a class is used.",
        (unit(images) @ unit(means).T).softmax(1): "Return cosines, without a softmax.",
    }  # fmt: skip
    attempt.expect_close(attempt(images, prompts), outcomes)


@exercise("dim", seed=3)
def modality_gap(attempt: Attempt, normal: Draw) -> None:
    """images [images, dim], texts [texts, dim] -> [dim]."""
    images, texts = normal(5, 3) + 1, normal(4, 3) - 1
    a, b = unit(images), unit(texts)
    outcomes = {
        a.mean(0) - b.mean(0): "For five images and four texts the gap is wrong.",
        b.mean(0) - a.mean(0): "The gap leads from the texts to the images: images minus texts.",
        images.mean(0) - texts.mean(0): "Divide every vector by its length first.",
        unit(images.mean(0)) - unit(texts.mean(0)): "Divide vectors by their lengths, not centres.",
        unit(a.mean(0)) - unit(b.mean(0)): "The centres keep their lengths.",
        unit(a.mean(0) - b.mean(0)): "The gap keeps its length.",
        a.sum(0) - b.sum(0): "A centre is a mean, not a sum.",
        unit(images, 0).mean(0) - unit(texts, 0).mean(0): "A vector is a row: divide along dim=1.",
    }  # fmt: skip
    attempt.expect_close(attempt(images, texts), outcomes)


@exercise("vectors, dim", seed=4)
def shifted(attempt: Attempt, normal: Draw) -> None:
    """vectors [vectors, dim], gap [dim], part -> [vectors, dim]."""
    x, gap = unit(normal(5, 3)), normal(3)
    outcomes = {
        unit(x - 0.3 * gap): "Three tenths along the gap the vectors are wrong.",
        x - 0.3 * gap: "After the shift the vectors are not divided by their lengths.",
        unit(x + 0.3 * gap): "You go the wrong way: subtract.",
        unit(x - gap): "The part is not used.",
        unit(x - 0.3 * unit(gap)): "The gap keeps its length.",
        unit(x - 0.3 * gap, 0): "A vector is a row: divide along dim=1.",
    }
    attempt.expect_close(attempt(x, gap, 0.3), outcomes)


@exercise(seed=26)
def recall_at_k(attempt: Attempt, normal: Draw) -> None:
    """scores [n, n], k -> one number."""
    scores = normal(7, 7) + 1.2 * torch.eye(7)
    above, aside = ((scores > scores.diagonal().unsqueeze(i)).sum(i).double() for i in (1, 0))

    def within(places: Tensor, k: int) -> Tensor:
        return (places < k).double().mean()

    outcomes = {
        within(above, 2): "For seven pairs and k = 2 the fraction is wrong.",
        within(aside, 2): "Rows are images: look for each row's own text along the row.",
        within(above, 1): "The own one may stand at place k, too.",
        within(above, 3): "You count one place too many.",
        within(7 - 1 - above, 2): "You look among the lowest scores.",
        (above < 2).double().sum(): "This is a number of images. Take the fraction.",
    }
    attempt.expect_close(attempt(scores, 2), outcomes)
    attempt.expect_close(attempt(scores, 7), {1.0: "With k = n every image finds its text."})
