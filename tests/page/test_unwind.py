"""The page's way back finds images, and its walk others with the same logits; torch says so."""

import pytest
import torch
from einops import rearrange

import minivit
from tests.page.conftest import images, model, node

MAKE = """
const engine = minivitEngine(), solve = minivitSolve(), way = minivitUnwind(engine, solve);
const level = minivitLevel(solve);
const model = globalThis.minivitModels && engine.open(minivitModels.model);
"""


def on_page(call, given, **models):
    return node(MAKE + call, given, "engine", "solve", "unwind", "level", **models)


BACK = """
return given.map(([bytes, last, switches]) => {
  const trace = engine.forward(model, engine.normalised(model, bytes), switches);
  const tokens = trace.states[last + 1];
  return { tokens, stages: [...way.unwind(model, tokens, last, switches)] };
});
"""


@pytest.mark.parametrize(
    ("count", "blocks"), [(1, (1, 3)), pytest.param(20, (0, 1, 2, 3), marks=pytest.mark.full)]
)
def test_digits_come_back_from_the_tokens_after_each_block(count, blocks):
    of, seen = model("digits_vit"), images(model("digits_vit"), count)
    asked = [(image, block) for image in range(count) for block in blocks]
    pixels = seen.flatten(1).tolist()
    found = on_page(BACK, [[pixels[image], block, {}] for image, block in asked], model=of)
    exact = minivit.remove(of, "attention", []).double()  # a copy
    truth = exact.preprocess(seen).double()
    for (image, block), one in zip(asked, found, strict=True):
        last = one["stages"][-1]
        assert last["solved"] and last["whole"] < 2e-12
        ours = rearrange(torch.tensor(last["image"]).double(), "(c h w) -> 1 c h w", c=1, h=8)
        mse = ((ours - truth[image]) * of.preprocess.std[0]).square().mean()
        assert -10 * mse.log10() > 60, f"image {image} from block {block}"
        with minivit.record(exact, f"blocks.{block}") as at, torch.no_grad():
            exact(ours)
        # The page's GELU is off by 1.5e-7 at most.
        expected = at[f"blocks.{block}"].flatten()
        assert (torch.tensor(one["tokens"]) - expected).norm() < 1e-5 * expected.norm()


def test_what_is_switched_off_is_not_undone():
    of, seen = model("digits_vit"), images(model("digits_vit"), 1)
    removed = {"removed": [["attention", [1]], ["positions", None], ["norm", [2]]]}
    (one,) = on_page(BACK, [[seen[0].flatten().tolist(), 1, removed]], model=of)
    first, last = one["stages"][0], one["stages"][-1]
    assert first["parts"] == ["mlp"]
    assert last["solved"]
    truth = of.preprocess(seen[:1]).double().flatten()
    assert (torch.tensor(last["image"]).double() - truth).abs().max() < 1e-3


@pytest.mark.parametrize(("factor", "newton"), [(0.5, False), (-0.9, False), (3.0, True)])
def test_an_addition_is_undone_where_it_contracts_and_where_it_does_not(factor, newton):
    """x + factor x = y, for which x is known."""
    y = torch.linspace(-1, 2, 7).tolist()
    call = "return solve.undone((x) => x.map((v) => given[1] * v), Float64Array.from(given[0]))"
    found = on_page(call, [y, factor])
    assert (found["newton"] > 0) == newton and found["error"] < 2e-12
    assert found["x"] == pytest.approx([v / (1 + factor) for v in y], abs=1e-10)


def test_where_nothing_is_mapped_to_the_tokens_the_way_back_says_so():
    """x + x^2 is never below -1/4, and noise is no image's tokens."""
    call = "return solve.undone((x) => x.map((v) => v * v), Float64Array.from(given))"
    assert on_page(call, [-1.0, -2.0])["error"] > 0.1
    noise = torch.randn(16 * 64, generator=torch.Generator().manual_seed(0)).tolist()
    call = "return [...way.unwind(model, Float64Array.from(given), 1, {})]"
    stages = on_page(call, noise, model=model("digits_vit"))
    assert not any(stage.get("solved") for stage in stages)
    assert stages[-1]["whole"] > 1e-3


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


def logits(pixels: list[list[float]]) -> torch.Tensor:
    """Torch's, in float64, of images of numbers from 0 to 1; the weights are the page's."""
    exact = minivit.remove(model("digits_vit"), "attention", []).double()  # a copy
    shown = rearrange(torch.tensor(pixels, dtype=torch.float64), "n (c h w) -> n c h w", c=1, h=8)
    preprocess = model("digits_vit").preprocess
    with torch.no_grad():
        return exact((shown - preprocess.mean[0]) / preprocess.std[0])


@pytest.mark.parametrize(
    ("count", "most"), [(1, 5), pytest.param(5, 1000, marks=pytest.mark.full, id="to the end")]
)
def test_a_walk_leads_nearer_to_another_image_with_the_same_logits_in_torch(count, most):
    of, sides = model("digits_vit"), images(model("digits_vit"), 6).flatten(1)
    pairs = [(i, i + 1) for i in range(count)]
    walks = on_page(WALK, {"sides": sides.tolist(), "pairs": pairs, "most": most}, model=of)
    for (start, goal), points in zip(pairs, walks, strict=True):
        shown = torch.tensor([point["x"] for point in points], dtype=torch.float64)
        assert torch.allclose(shown[0], sides[start].double() / 255, atol=1e-6)
        assert shown.min() >= 0 and shown.max() <= 1
        assert torch.dist(shown[0], shown[-1]) > (0.5 if most < 10 else 1)
        away = [point["away"] for point in points]
        assert away == sorted(away, reverse=True) and (len(points) == 6 or most > 5)
        assert away[-1] == pytest.approx(torch.dist(shown[-1], sides[goal].double() / 255).item())
        values = torch.tensor([point["value"] for point in points], dtype=torch.float64)
        off = (values - values[0]).abs().amax(1)
        said = [point["off"] for point in points]
        assert off.max() <= 1e-6 and off.tolist() == pytest.approx(said, abs=1e-12)
        one, other = logits(shown[[0, -1]].tolist())
        assert (one - other).abs().max() < 1e-4
        assert one.tolist() == pytest.approx(points[0]["value"], abs=1e-4)


CIRCLE = """
const radius = (x) => Float64Array.of(x[0] ** 2 + x[1] ** 2);
const points = [...level.walk(radius, Float64Array.from(given[0]), Float64Array.from(given[1]))];
return points.at(-1).x;
"""


def test_a_walk_on_a_circle_ends_at_its_point_nearest_to_the_goal_and_a_fixed_point_stays():
    for start, goal, end in [
        ([0.6, 0.1], [0.1, 0.6], [0.1, 0.6]),  # on the same circle: reached
        ([0.6, 0.0], [1.0, 1.0], [0.18**0.5, 0.18**0.5]),  # the nearest point of the circle
        ([1.0, 0.5], [0.0, 1.0], [0.5, 1.0]),  # the circle goes on outside the box
    ]:
        assert on_page(CIRCLE, [start, goal]) == pytest.approx(end, abs=0.02)
    call = "return [...level.walk((x) => x.map((v) => v + v ** 3), Float64Array.of(0.2, 0.8), Float64Array.of(1, 0))]"
    (only,) = on_page(call, None)
    assert only["x"] == [0.2, 0.8] and only["off"] == 0
