"""The page finds other images with the same logits, and torch says so."""

import pytest
import torch
from einops import rearrange

import minivit
from tests.page.conftest import images, model, node

MAKE = """
const engine = minivitEngine(), level = minivitLevel(minivitSolve());
const model = globalThis.minivitModels && engine.open(minivitModels.model);
"""
WALK = """
const { sides, pairs, most } = given;
const bytes = sides.map((side) => Float64Array.from(side, (v) => v / 255));
const logits = (x) => engine.forward(model, engine.normalised(model, x.map((v) => 255 * v))).logits;
return pairs.map(([from, to]) => {
  const points = [];
  for (const point of level.walk(logits, bytes[from], bytes[to])) {
    points.push(point);
    if (points.length > most) break;
  }
  return points;
});
"""


def on_page(call, given, **models):
    return node(MAKE + call, given, "engine", "solve", "level", **models)


def logits(pixels: list[list[float]]) -> torch.Tensor:
    """Torch's, in float64, of images of numbers from 0 to 1; the weights are the page's."""
    exact = minivit.remove(model("digits_vit"), "attention", []).double()  # a copy
    shown = rearrange(torch.tensor(pixels, dtype=torch.float64), "n (c h w) -> n c h w", c=1, h=8)
    preprocess = model("digits_vit").preprocess
    with torch.no_grad():
        return exact((shown - preprocess.mean[0]) / preprocess.std[0])


@pytest.mark.parametrize(
    ("count", "most"),
    [(1, 5), pytest.param(5, 1000, marks=pytest.mark.full, id="to the end")],
)
def test_another_image_has_the_same_logits_in_torch(count, most):
    of, sides = model("digits_vit"), images(model("digits_vit"), 6).flatten(1)
    pairs = [(i, i + 1) for i in range(count)]
    walks = on_page(WALK, {"sides": sides.tolist(), "pairs": pairs, "most": most}, model=of)
    for (start, _), points in zip(pairs, walks, strict=True):
        first, last = points[0]["x"], points[-1]["x"]
        assert first == pytest.approx((sides[start] / 255).tolist(), abs=1e-6)
        assert all(0 <= v <= 1 for point in points for v in point["x"])
        assert torch.dist(torch.tensor(first), torch.tensor(last)) > (0.5 if most < 10 else 1)
        one, other = logits([first, last])
        assert (one - other).abs().max() < 1e-4
        assert one.tolist() == pytest.approx(points[0]["value"], abs=1e-4)


def test_every_step_of_a_walk_leads_nearer_and_holds_the_logits():
    of, sides = model("digits_vit"), images(model("digits_vit"), 2).flatten(1)
    (points,) = on_page(WALK, {"sides": sides.tolist(), "pairs": [(0, 1)], "most": 5}, model=of)
    away = [point["away"] for point in points]
    assert len(points) == 6 and away == sorted(away, reverse=True)
    goal = torch.tensor(sides[1].tolist()).double() / 255
    assert away[-1] == pytest.approx(
        torch.dist(torch.tensor(points[-1]["x"], dtype=torch.float64), goal).item()
    )
    start = torch.tensor(points[0]["value"], dtype=torch.float64)
    for point in points:
        off = (torch.tensor(point["value"], dtype=torch.float64) - start).abs().max().item()
        assert off <= 1e-6 and point["off"] == pytest.approx(off, abs=1e-12)


CIRCLE = """
const radius = (x) => Float64Array.of(x[0] ** 2 + x[1] ** 2);
const points = [...level.walk(radius, Float64Array.from(given[0]), Float64Array.from(given[1]))];
return points.at(-1).x;
"""


@pytest.mark.parametrize(
    ("start", "goal", "end"),
    [
        ([0.6, 0.1], [0.1, 0.6], [0.1, 0.6]),  # on the same circle: reached
        ([0.6, 0.0], [1.0, 1.0], [0.18**0.5, 0.18**0.5]),  # the nearest point of the circle
        ([1.0, 0.5], [0.0, 1.0], [0.5, 1.0]),  # the circle goes on outside the box
    ],
)
def test_a_walk_on_a_circle_ends_at_its_point_nearest_to_the_goal(start, goal, end):
    assert on_page(CIRCLE, [start, goal]) == pytest.approx(end, abs=0.02)


def test_where_the_value_fixes_the_point_there_is_no_step():
    call = "return [...level.walk((x) => x.map((v) => v + v ** 3), Float64Array.of(0.2, 0.8), Float64Array.of(1, 0))]"
    (only,) = on_page(call, None)
    assert only["x"] == [0.2, 0.8] and only["off"] == 0
