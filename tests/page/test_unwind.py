"""The page's way back finds images again, and torch says so."""

import pytest
import torch
from einops import rearrange

import minivit
from tests.page.conftest import images, model, node

MAKE = """
const engine = minivitEngine(), solve = minivitSolve(), way = minivitUnwind(engine, solve);
const model = globalThis.minivitModels && engine.open(minivitModels.model);
"""
BACK = """
return given.map(([bytes, last, switches]) => {
  const trace = engine.forward(model, engine.normalised(model, bytes), switches);
  const tokens = trace.states[last + 1];
  return { tokens, stages: [...way.unwind(model, tokens, last, switches)] };
});
"""


def on_page(call, given, **models):
    return node(MAKE + call, given, "engine", "solve", "unwind", **models)


@pytest.mark.parametrize(
    ("count", "blocks"),
    [(1, (1, 3)), pytest.param(20, (0, 1, 2, 3), marks=pytest.mark.full)],
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


def test_a_block_is_undone_to_tokens_that_torchs_block_turns_into_those_given():
    of, seen = model("digits_vit"), images(model("digits_vit"), 1)
    (one,) = on_page(BACK, [[seen[0].flatten().tolist(), 3, {}]], model=of)
    assert [stage["block"] for stage in one["stages"][:3]] == [3, 2, 1]
    given = torch.tensor(one["tokens"]).double().view(1, 16, 64)
    for stage in one["stages"][:3]:
        assert stage["parts"] == ["mlp", "attention"] and stage["error"] < 1e-12
        tokens = torch.tensor(stage["tokens"]).double().view(1, 16, 64)
        again = of.double().blocks[stage["block"]](tokens)
        assert (again - given).norm() < 1e-6 * given.norm()
        assert (tokens - given).norm() > 1e-2 * given.norm()
        given = tokens


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
    """x + x^2 is never below -1/4."""
    call = "return solve.undone((x) => x.map((v) => v * v), Float64Array.from(given))"
    assert on_page(call, [-1.0, -2.0])["error"] > 0.1


def test_tokens_of_no_image_are_not_called_solved():
    of = model("digits_vit")
    noise = torch.randn(16 * 64, generator=torch.Generator().manual_seed(0)).tolist()
    call = "return [...way.unwind(model, Float64Array.from(given), 1, {})]"
    stages = on_page(call, noise, model=of)
    assert not any(stage.get("solved") for stage in stages)
    assert stages[-1]["whole"] > 1e-3
