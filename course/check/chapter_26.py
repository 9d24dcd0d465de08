"""Chapter 26: masks, their loss, neighbours, a moving average, agreement, components as colours."""

import torch
from torch import Tensor

from course.check.attempt import Attempt, Draw
from course.check.exercise import exercise


@exercise("batch, patches")
def random_mask(attempt: Attempt) -> None:
    """noise [batch, patches], kept -> keep [batch, kept], restore [batch, patches]."""
    noise = torch.tensor([[0.5, 0.1, 0.9, 0.3, 0.7], [0.2, 0.8, 0.6, 0.4, 0.0]])
    order = torch.tensor([[1, 3, 0, 4, 2], [4, 0, 3, 2, 1]])
    rank = torch.tensor([[2, 0, 4, 1, 3], [1, 4, 3, 2, 0]])
    found = attempt.plain(noise, 2, kind=tuple)
    attempt.expect(len(found) == 2, "Return two tensors, keep and restore.")
    keep, restore = found
    outcomes = {
        order[:, :2]: "keep should have the places of the two smallest numbers, smallest first.",
        order: "keep has all places. Cut it after the first two.",
        order[:, -2:]: "keep has the places of the largest numbers. Keep the smallest.",
        order.flip(1)[:, :2]: "keep has the places of the largest numbers. Keep the smallest.",
        rank[:, :2]: "keep has ranks of patches. argsort once gives places of patches by rank.",
        order[:, 2:]: "keep has the places to be masked.",
    }
    attempt.expect_close(keep, outcomes)
    outcomes = {
        rank: "restore should say, for each place, where its patch stands in the shuffled order.",
        order: "restore is the order itself. What undoes a permutation is its own argsort.",
        order.flip(1): "restore is the order backwards. Its argsort undoes it.",
    }
    attempt.expect_close(restore, outcomes)


@exercise(seed=1)
def masked_loss(attempt: Attempt, normal: Draw) -> None:
    """guess and patches [batch, n, pixels], masked [batch, n] -> one number."""
    guess, patches = normal(2, 3, 5), 2 * normal(2, 3, 5) + 1
    masked = torch.tensor([[True, False, True], [False, False, True]])

    def loss(centre=True, divide=True, fewer=0, each=masked, root=True, over: float = 15) -> Tensor:
        x = patches - patches.mean(-1, keepdim=True)
        spread = x.square().sum(-1, keepdim=True) / (5 - fewer) + 0.01
        x = x if centre else patches
        x = x / (spread.sqrt() if root else spread) if divide else x
        return ((guess - x).square() * each[..., None]).sum() / over

    outcomes = {
        loss(): "For three masked patches of six the loss is wrong.",
        loss(each=~masked): "The loss is of the visible patches. Take the masked ones.",
        loss(each=masked | True, over=30): "All patches count. Take the masked ones alone.",
        loss(over=30): "You divide by all patches. Divide by the masked ones.",
        loss(over=3): "You add up the pixels of a patch. Take the mean over pixels, too.",
        loss(over=1): "You add up. Take the mean.",
        loss(centre=False, divide=False): "The patches are not normalised.",
        loss(divide=False): "Each patch should be divided by its own standard deviation, too.",
        loss(root=False): "You divide by the variance. Take its root.",
        loss(fewer=1): "The variance is the mean of the squares: unbiased=False, or layer_norm.",
    }
    attempt.expect_close(attempt(guess, patches, masked), outcomes)


@exercise(seed=3)
def knn_accuracy(attempt: Attempt, normal: Draw) -> None:
    """features [n, d], labels [n], test features [m, d], test labels [m], k -> one number."""
    x, y = normal(60, 4) * (1 + 4 * normal(60, 1).abs()), normal(97, 4)
    labels, truth = (x[:, 0] > x[:, 1]).long(), (y[:, 0] > y[:, 1]).long()
    cosine = torch.cosine_similarity(y[:, None], x, dim=2)

    def right(scores: Tensor, k: int) -> Tensor:
        votes = [labels[row.argsort(descending=True)[:k]].bincount(minlength=2) for row in scores]
        return (torch.stack(votes).argmax(1) == truth).double().mean()

    outcomes = {
        right(cosine, 5): "For 97 test images and five neighbours the fraction is wrong.",
        right(cosine, 1): "Only the nearest votes. Let k neighbours vote.",
        right(y @ x.T, 5): "You take the largest product. A long vector then wins: take cosines.",
        right(-torch.cdist(y, x), 5): "You take distances. Take cosines, which do not see lengths.",
        right(-cosine, 5): "You take the least similar images.",
        1 - right(cosine, 5): "This is the fraction of errors.",
        97 * right(cosine, 5): "You count. Give the fraction.",
    }
    attempt.expect_close(attempt(x, labels, y, truth, 5), outcomes)


@exercise("rows, columns", seed=4)
def ema(attempt: Attempt, normal: Draw) -> None:
    """average and new, of one shape, and momentum -> the new average."""
    old, new = normal(2, 3), normal(2, 3)
    outcomes = {
        0.3 * old + 0.7 * new: "With a momentum of 0.3 the average is wrong.",
        0.7 * old + 0.3 * new: "The momentum is what stays of the old average.",
        0.3 * old + new: "The new part should be weighted by 1 less the momentum.",
        (old + new) / 2: "The momentum is not used.",
        0.3 * old: "The new numbers are missing.",
    }
    attempt.expect_close(attempt(old, new, 0.3), outcomes)


@exercise(seed=5)
def dino_loss(attempt: Attempt, normal: Draw) -> None:
    """scores of both [2, batch, outputs], centre [outputs], two temperatures -> one number."""
    s, t, c = normal(2, 3, 4), normal(2, 3, 4), normal(4)

    def loss(sign=-1, cross=True, hot=0.5, cold=0.2, swap=False, over: float = 6) -> Tensor:
        target, guess = ((t + sign * c) / cold).softmax(-1), (s / hot).softmax(-1)
        if swap:
            target, guess = guess, target
        return -((target.flip(0) if cross else target) * guess.log()).sum() / over

    outcomes = {
        loss(): "For two views of three images the loss is wrong.",
        loss(cross=False): "Each view is compared with itself. The teacher should see the other.",
        loss(sign=0): "The centre is not subtracted from the teacher's scores.",
        loss(sign=1): "The centre is added. Subtract it.",
        loss(hot=0.2, cold=0.5): "The temperatures are exchanged.",
        loss(hot=2, cold=5): "Scores are divided by the temperature, not multiplied.",
        loss(swap=True): "The teacher gives the target, the student the logarithms.",
        -loss(): "The sign is wrong: a cross-entropy is positive.",
        loss(over=1): "You add up. Take the mean over views and images.",
        loss(over=24): "Sum over the outputs; take the mean over views and images alone.",
        loss(over=3): "You add the two directions. Take their mean.",
    }
    attempt.expect_close(attempt(s, t, c, 0.5, 0.2), outcomes)

    def slope(function, s, t, *others):
        s, t = s.clone().requires_grad_(), t.clone().requires_grad_()
        slopes = torch.autograd.grad(function(s, t, *others), (s, t), allow_unused=True)
        return torch.stack([torch.tensor(0.0) if x is None else x.abs().sum() for x in slopes])

    attempt.applied, attempt.axes = slope, "networks"
    own, other = attempt(s, t, c, 0.5, 0.2, shape={"networks": 2})
    attempt.expect(own > 0, "No gradient reaches the student.")
    attempt.expect(other == 0, "A gradient reaches the teacher. Detach the teacher's scores.")


@exercise("tokens, colours", seed=6)
def principal_colours(attempt: Attempt, normal: Draw) -> None:
    """tokens [n, d] -> [n, 3], from 0 to 1; each column may be turned round."""
    x = normal(9, 5) * torch.tensor([4.0, 3, 2, 1, 0.5]) + 3

    def scores(x: Tensor) -> Tensor:
        return x @ torch.linalg.eigh(x.T @ x).eigenvectors.flip(1)[:, :3]

    def scaled(v: Tensor, axis=(0,)) -> Tensor:
        return (v - v.amin(axis, keepdim=True)) / (v.amax(axis) - v.amin(axis))

    found = attempt(x, shape={"tokens": 9, "colours": 3})
    centred = scores(x - x.mean(0))

    def turned(v: Tensor) -> Tensor:  # as the answer has it
        return torch.where((v - found).norm(dim=0) <= (1 - v - found).norm(dim=0), v, 1 - v)

    outcomes = {
        turned(scaled(centred)): "For nine tokens the first three components, from 0 to 1, differ.",
        turned(scaled(scores(x))): "Subtract the mean token first.",
        turned(scaled(x[:, :3])): "These are the first three features, not components.",
        turned(scaled(centred / centred.norm(dim=0), (0, 1))): "Scale each component by itself.",
        turned(scaled(centred.flip(1))): "The order is wrong: the largest component first.",
    }
    attempt.expect_close(found, outcomes)
    attempt.expect(bool((found.amax(0) - found.amin(0) > 0.999).all()), "Each goes from 0 to 1.")


@exercise("parts", seed=7)
def loss_parts(attempt: Attempt, normal: Draw) -> None:
    """targets [batch, outputs] and the student's logarithms, likewise -> entropy and divergence."""
    p, q = normal(3, 4).softmax(1), normal(3, 4).softmax(1)
    own, cross = -(p * p.log()).sum() / 3, -(p * q.log()).sum() / 3
    outcomes = {
        torch.stack([own, cross - own]): "For three images entropy or divergence is wrong.",
        torch.stack([cross - own, own]): "Entropy comes first, then the divergence.",
        torch.stack([own, cross]): "The second is the whole loss. Subtract the entropy.",
        torch.stack([own, own - cross]): "A divergence is never negative.",
        torch.stack([own, cross - own]) * 3: "Take the mean over images.",
        torch.stack([own, cross - own]) / 4: "Sum over the outputs.",
        torch.stack([-(q * q.log()).sum() / 3, cross + (q * q.log()).sum() / 3]): "The entropy is "
        "the target's, not the student's.",
    }
    attempt.expect_close(attempt(p, q.log()), outcomes)
    one = torch.tensor([[1.0, 0, 0], [0, 0, 1]])
    found = attempt(one, normal(2, 3).log_softmax(1), if_not_finite="0 ln 0 should be 0.")
    attempt.expect(found[0].abs() < 1e-6, "The entropy of a certain output should be 0.")
