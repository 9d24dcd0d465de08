"""Exercises of chapter 07 about what is made of a model's scores."""

import torch
from scipy import optimize, stats
from torch import Tensor

from course.check.attempt import Attempt, normal_draws
from course.check.exercise import exercise

CHAPTER = "07_training"


@exercise(CHAPTER)
def paired_interval(attempt: Attempt) -> None:
    """Accuracies a, b [seeds] -> lower end, mean and upper end of the mean difference [3]."""
    for seeds in (4, 7):  # the second catches a number typed in
        normal = normal_draws(seed=seeds)
        common = 0.1 * normal(seeds)  # what a seed does to both
        a, b = 0.61 + common + 0.02 * normal(seeds), 0.6 + common + 0.02 * normal(seeds)
        d = a - b
        t, root = stats.t.ppf(0.975, seeds - 1), seeds**0.5
        found = attempt(a, b, shape=dict(numbers=3))
        attempt.expect_close(
            found[1],
            d.mean(),
            "The middle number should be the mean of a - b.",
            mistakes={"The sign is wrong: how much is a above b?": -d.mean()},
        )
        attempt.expect(
            bool(found[0] < found[2]), "The first number is the lower end, the last the upper."
        )
        half = t * d.std() / root
        variances = a.var() + b.var()
        attempt.expect_close(
            found,
            d.mean() + torch.tensor([-1, 0, 1]) * half,
            "The mean is right, the ends are not.",
            mistakes={
                text: d.mean() + torch.tensor([-1, 0, 1]) * wrong
                for text, wrong in {
                    "This treats the two models as if their seeds were different ones. Take the "
                    "deviation of the differences.": t * variances.sqrt() / root,
                    "These ends span the differences themselves. Those of their mean are closer by "
                    "the root of the number of seeds.": t * d.std(),
                    "The factor is that of a normal distribution. With so few seeds it is "
                    "Student's.": 1.959964 * d.std() / root,
                    "The deviation is divided by n. The sample deviation is divided by n - 1.":
                        t * d.std(correction=0) / root,
                    "The deviation is divided by n, not by the root of n.": t * d.std() / seeds,
                    "Student's distribution has n - 1 degrees of freedom here, not n.":
                        stats.t.ppf(0.975, seeds) * d.std() / root,
                    "This is the 90 % interval: 2.5 % are to lie beyond each end.":
                        stats.t.ppf(0.95, seeds - 1) * d.std() / root,
                }.items()
            },
        )  # fmt: skip


@exercise(CHAPTER)
def best_temperature(attempt: Attempt) -> None:
    """Logits [n, classes], labels [n] -> the temperature with the smallest cross-entropy."""
    n, classes = 400, 5
    for seed, scale in ((2, 4.0), (3, 0.15), (4, 1.3)):  # far too sure, not sure enough, ...
        honest = 1.5 * normal_draws(seed=seed)(n, classes)
        draws = torch.Generator().manual_seed(seed)
        labels = honest.softmax(1).multinomial(1, generator=draws)[:, 0]
        logits = scale * honest
        best = by_scipy(logits, labels)
        found = attempt(logits, labels)
        attempt.expect(
            bool(found > 0), f"A temperature is above 0: {found.item():.3g} is returned."
        )

        def nearly(wrong: float, found: Tensor = found) -> bool:
            return abs(found.item() / wrong - 1) < 2e-3

        attempt.expect(
            nearly(best) or not nearly(1 / best),
            "This is 1 / T: logits are divided by a temperature, not multiplied.",
        )
        attempt.expect(
            nearly(best) or not nearly(1.0),
            "The result is 1, as if nothing had to be mended. Was the temperature searched for?",
        )
        attempt.expect(
            bool(found > 0.06),
            "So low a temperature makes the model's own guesses as likely as can be. What counts "
            "is the probability of the true labels.",
        )
        attempt.expect(
            nearly(best),
            f"The mean cross-entropy is {loss_at(logits, labels, found.item()):.4f} at "
            f"T = {found.item():.4g} and {loss_at(logits, labels, best):.4f} at {best:.4g}.",
        )


def loss_at(logits: Tensor, labels: Tensor, temperature: float) -> float:
    """The mean cross-entropy at a temperature."""
    scaled = logits / temperature
    return (scaled.logsumexp(1) - scaled[torch.arange(len(labels)), labels]).mean().item()


def by_scipy(logits: Tensor, labels: Tensor) -> float:
    """The best temperature from 0.05 to 20."""

    def loss(beta: float) -> float:
        return loss_at(logits, labels, 1 / beta)

    found = optimize.minimize_scalar(
        loss, bounds=(0.05, 20.0), method="bounded", options={"xatol": 1e-9}
    )
    return 1 / found.x
