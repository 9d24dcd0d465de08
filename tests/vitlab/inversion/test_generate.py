"""Generated inputs: the source's rule step by step, the better one, and who recognises them."""

import pytest
import torch
import torchvision
from torch import nn

import minivit
from minivit.preprocessing import Preprocess
from tests.parity import Function, close, draw, random
from vitlab.inversion import Fourier, Pixels, blurred, generate, recognise, viewed


def linear(w):
    """Logits that are products with images w."""
    model = Function(lambda images: torch.einsum("nchw,kchw->nk", images, model.w))
    model.w = nn.Parameter(w)
    return model


def small():
    sizes = {"dim": 12, "heads": 3, "depth": 2, "image_size": (8, 12)}
    return draw(minivit.create("vit_8px", **sizes).double().eval())


def test_blur_and_views_are_those_of_libraries():
    images = random(2, 3, 6, 9)
    for std in 2.4, 0.8, 0.3:
        expected = torchvision.transforms.functional.gaussian_blur(images, 3, std)
        close(blurred(images, std), expected, 1e-6)
    close(blurred(images, 0.0), images)
    x, none = random(1, 2, 6, 6), torch.zeros(1).double()
    full = none + 1
    close(viewed(x, none, full, none, none), x)
    close(viewed(x, none + torch.pi / 2, full, none, none), x.rot90(-1, (2, 3)))
    wide = random(1, 2, 4, 8)
    close(viewed(wide, none + torch.pi, full, none, none), wide.flip(2, 3))
    middle = viewed(wide, none + torch.pi / 2, full, none, none)[..., 2:6]
    close(middle, wide[..., 2:6].rot90(-1, (2, 3)))
    close(viewed(wide, none, full, none + 0.25, none)[..., :3, :], wide[..., 1:, :])
    close(viewed(wide, none, full, none, none - 0.25)[..., 2:], wide[..., :-2])
    inner = viewed(wide, none, full / 2, none, none)  # the middle half, twice as large
    assert inner.min() > wide[..., 1:3, 2:6].min() - 1e-9


def test_the_source_method_is_its_formula_step_by_step_and_on_a_linear_score_a_straight_line():
    model, steps = small(), 6
    settings = {"method": "source", "steps": steps, "step_size": 0.3, "jitter": 0, "seed": 4}
    made = generate(model, [3, 7], **settings)
    a = 0.7 + torch.randn(2, 1, 8, 12, generator=torch.Generator().manual_seed(4)).double() / 20
    for step in range(steps):
        a.requires_grad_()
        out = model(a)[[0, 1], [3, 7]]
        close(made.scores[:, step], out.detach(), 1e-6)  # the library blurs in float32
        (g,) = torch.autograd.grad((1000 - out).abs().sum(), a)
        sigma = 2.4 * (1 - step / (steps - 1))
        a = (a - 0.3 * g).detach()
        if sigma:
            a = torchvision.transforms.functional.gaussian_blur(a, 3, sigma)
    close(made.images, a, 1e-6)
    close(made.logits, model(made.images).detach())
    assert made.classes.tolist() == [3, 7]
    w = random(2, 1, 8, 12)
    settings = {"method": "source", "blur": 0.0, "jitter": 0, "size": (1, 8, 12)}
    made = generate(linear(w), 1, steps=5, step_size=0.1, **settings)
    start = 0.7 + torch.randn(1, 1, 8, 12, generator=torch.Generator().manual_seed(0)).double() / 20
    close(made.images[0], start[0] + 5 * 0.1 * w[1], 1e-6)
    moved = generate(linear(w), 1, steps=1, **settings).images[0] - start[0]
    close(moved.square().mean().sqrt(), torch.tensor(1 / 20).double(), 1e-6)


@pytest.mark.parametrize("jitter, by, places", [(3, 1, {0, 1, 2, 3}), (8, 4, {0, 4, 8})])
def test_jitter_changes_the_crop_that_was_seen_and_nothing_else(jitter, by, places):
    model, generator = small(), torch.Generator().manual_seed(0)
    crops = {"jitter": jitter, "jitter_after": 5, "jitter_step": by}
    like = torch.zeros(1).double()
    painting = Pixels((2, 1, 8, 12), generator, like, 50, 1e3, 0.1, 2.4, **crops)
    assert painting.canvas.shape == (2, 1, 8 + jitter, 12 + jitter)
    visited = []
    for step in range(50):
        before, seen = painting.canvas.clone(), painting.view(step)
        assert seen.shape == (2, 1, 8, 12)
        painting.improve(seen, model(seen)[:, 0], step)
        y, x = painting.place
        changed = painting.canvas != before
        assert changed[..., y : y + 8, x : x + 12].all()
        assert changed.sum() == 2 * 8 * 12
        visited.append(painting.place)
    assert set(visited[:5]) == {(jitter // 2, jitter // 2)} != {visited[5]}
    assert len(set(visited)) > 8
    assert {y for y, _ in visited} == {x for _, x in visited} == places


def test_fourier_images_start_grey_stay_in_range_and_prefer_low_frequencies():
    preprocess = Preprocess((16, 24), (16, 24), mean=(0.2,), std=(0.4,))
    painting = Fourier((3, 1, 16, 24), torch.Generator(), torch.zeros(1).double(), 0.05, preprocess)
    start = painting.finished() * 0.4 + 0.2
    assert (start - 0.5).abs().max() < 0.25
    w = random(1, 1, 16, 24)
    assert (painting.view(0) - painting.finished()).std().item() == pytest.approx(0.5, rel=0.1)
    for _ in range(30):
        seen = painting.view(0)
        painting.improve(seen, (seen * w).sum((1, 2, 3)), 0)
    picture = painting.finished() * 0.4 + 0.2
    assert 0 <= picture.min() < 0.3 and 0.7 < picture.max() <= 1
    power = torch.fft.fft2(picture[0, 0] - picture[0, 0].mean()).abs().square()
    asked = torch.fft.fft2(w[0, 0] - w[0, 0].mean()).abs().square()
    slow = [power[:3, :3].sum() / power.sum(), asked[:3, :3].sum() / asked.sum()]
    assert slow[0] > 4 * slow[1]


def test_images_are_what_the_inputs_show_and_recognition_is_what_the_judges_say():
    model = minivit.load("digits_vit")
    made, std = generate(model, range(10), steps=20, seed=2), model.preprocess.std[0]
    assert (model.preprocess(made.pictures) - made.images).abs().max() < 0.51 / 255 / std
    beyond = generate(model, 1, method="source", steps=20, step_size=5.0)
    whole = beyond.images * std + model.preprocess.mean[0]
    assert whole.max() > 1.5
    assert (beyond.pictures / 255 - whole.clamp(0, 1)).abs().max() < 0.51 / 255
    with torch.inference_mode():  # which is left
        assert torch.equal(generate(model, 1, steps=3).images, generate(model, 1, steps=3).images)
    models = {name: minivit.load(name) for name in ("digits_vit", "digits_mixer")}
    pictures = (random(6, 1, 8, 8).abs() * 80).clamp(0, 255).to(torch.uint8)
    classes = torch.tensor([1, 2, 3, 4, 5, 6])
    opinion = recognise(pictures, classes, models)
    for i, model in enumerate(models.values()):
        p = model(model.preprocess(pictures)).detach().double().softmax(1)
        close(opinion.probability[i], p[range(6), classes])
        assert torch.equal(opinion.seen[i], p.argmax(1))
        assert torch.equal(opinion.recognised[i], p.argmax(1) == classes)
    assert recognise(pictures, 1, models).accuracy.shape == (2,)
