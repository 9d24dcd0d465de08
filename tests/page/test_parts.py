"""What the drawings of chapters compute, beside the package and torch."""

import ast
import copy
import math

import pytest
import torch
import torch.nn.functional as F
from einops import rearrange
from torch.utils.flop_counter import FlopCounterMode

import minivit
from book._ext import live
from book.tools.notebooks import cells
from course.claims.rows import BOOK
from minivit.parts import local_mask
from minivit.patches import patchify, unpatchify
from minivit.positions import sincos_1d, sincos_2d
from tests.page.conftest import images, model, node
from tests.parity import random
from vitlab import dit
from vitlab.convert.modern import Rotation, axial_angles
from vitlab.convert.page import rounded
from vitlab.instruments.distance import patch_distances

CLOSE = 1e-10  # both sides compute in float64, but where a test says otherwise
RUN = """
const named = {};
if (globalThis.minivitModels) {
  named.$engine = minivitEngine();
  for (const name in minivitModels) named[`$${name}`] = named.$engine.open(minivitModels[name]);
}
return given.map(([part, name, ...values]) =>
  minivitParts[part].compute[name](...values.map((value) => named[value] ?? value)));
"""


def asked(*calls, **models):
    """Calls what parts compute, each as (part, name, arguments), in Node."""
    parts = [f"parts/{part}" for part in ("numbers", *sorted({call[0] for call in calls}))]
    return node(RUN, calls, "engine", *parts, **models)


def close(ours, theirs, atol=CLOSE):
    assert theirs.abs().max() > 1e-3, "zeros would agree with anything that computes nothing"
    ours = torch.tensor(ours, dtype=torch.float64)
    return ours.shape == theirs.shape and (ours - theirs).abs().max() <= atol


def two_tokens(x, sharp):
    """Chapter 14's attention between tokens of one number."""
    return ((sharp * x[:, None] * x[None, :]).softmax(-1) @ x[:, None])[:, 0]


def test_fold_attends_knows_its_derivative_and_finds_every_input_that_shares_an_output():
    points = 1.5 * random(6, 2)
    for sharp in (-6.0, 0.0, 3.0):
        ours = asked(*(("fold", "attend", x.tolist(), sharp) for x in points))
        assert close(ours, torch.stack([two_tokens(x, sharp) for x in points]))
        ours = asked(*(("fold", "jacobian", x.tolist(), sharp) for x in points))
        there = torch.func.vmap(torch.func.jacrev(lambda x, sharp=sharp: two_tokens(x, sharp)))
        assert close(ours, there(points))
    lobe = torch.tensor([[0.7, 1.8], [0.8, 1.6], [1.7, 0.75]], dtype=torch.float64)
    for sharp, least in ((-6.0, 2), (2.0, 1)):
        outputs = [two_tokens(x, sharp) for x in lobe]
        found = asked(*(("fold", "inputsOf", y.tolist(), sharp) for y in outputs))
        for x, y, inputs in zip(lobe, outputs, found, strict=True):
            inputs = torch.tensor(inputs, dtype=torch.float64)
            assert len(inputs) >= least
            assert min((one - x).norm() for one in inputs) < 1e-6, "its own among them"
            for one in inputs:
                assert (two_tokens(one, sharp) - y).norm() < 1e-8
            assert sharp < 0 or len(inputs) == 1, "nothing folds where like attends to like"


def test_arrows_attend_heads_look_and_patches_cost_as_torch_and_the_package_say():
    q, k, v = random(1, 2), random(3, 2, seed=1), random(3, 2, seed=2)
    (ours,) = asked(("arrows", "attend", q[0].tolist(), k.tolist(), v.tolist()))
    assert close(ours["output"], F.scaled_dot_product_attention(q, k, v)[0])
    assert close(ours["weights"], (q @ k.T / 2**0.5).softmax(-1)[0])
    weights = random(36, 36).softmax(-1)
    (ours,) = asked(("heads", "distance", weights.flatten().tolist(), 6, 4))
    expected = (weights * patch_distances((6, 6), (24, 24))).sum(-1).mean()
    assert abs(ours - expected) < CLOSE
    for patch in (16, 32, 112):
        with torch.device("meta"), FlopCounterMode(display=False) as counter:
            minivit.create("vit_b_16", patch_size=patch).eval()(torch.empty(1, 3, 224, 224))
        flops = counter.get_flop_counts()
        (ours,) = asked(("patches", "cost", patch))
        assert 2 * ours["total"] == sum(flops["Global"].values())
        assert 2 * ours["parts"]["squares"] == flops["Global"][torch.ops.aten.bmm]
        assert ours["tokens"] == (224 // patch) ** 2 + 1


def test_fibre_changes_patches_and_norms_them_as_the_chapter_does():
    cat, other = random(8, 12, 3).sigmoid(), random(8, 12, 3, seed=1).sigmoid()
    rows = [rearrange(x[:, :8], "(a p) (b q) c -> (a b) (p q c)", p=4, q=4) for x in (cat, other)]
    (ours,) = asked(("fibre", "patches", cat[:, :8].flatten().tolist(), 8))
    assert close(ours, rows[0])
    asked_for = [(0.7, 0.0), (1.0, 1.0), (0.0, 0.4)]
    lists = [row.tolist() for row in rows]
    found = asked(*(("fibre", "mixed", *lists, *how) for how in asked_for))
    for ours, (brightness, contrast) in zip(found, asked_for, strict=True):
        means = [row.mean(1, keepdim=True) for row in rows]
        own, wanted = (row.std(1, correction=0, keepdim=True) for row in rows)
        mean = (1 - brightness) * means[0] + brightness * means[1]
        expected = mean + (rows[0] - means[0]) * (wanted / own) ** contrast
        assert close(ours, expected)
        normed = [F.layer_norm(x, (48,), eps=1e-6) for x in (rows[0], expected)]
        (one,) = asked(("fibre", "normed", expected[0].tolist()))
        assert close(one, normed[1][0])
        gap = (normed[0] - normed[1]).abs().amax(1).median()
        (change,) = asked(("fibre", "change", *(x.tolist() for x in normed)))
        assert abs(change - gap) < 1e-12
        assert (gap < 1e-9) == (contrast == 0), "the mean alone is lost"


def test_gap_loses_on_its_rings_what_torch_says_and_a_mistake_makes_room_for_a_gap():
    for degrees, exchanged, scale in ((0, False, 10), (25, True, 100), (60, True, 4)):
        (clouds,) = asked(("gap", "rings", degrees, exchanged))
        a, b = (torch.tensor(clouds[key], dtype=torch.float64) for key in ("images", "texts"))
        assert close(a.norm(dim=1).tolist(), torch.ones(8, dtype=torch.float64))
        assert abs((a.mean(0) - b.mean(0)).norm() - 2 * math.sin(math.radians(degrees))) < 0.1
        own = torch.arange(8)
        expected = F.cross_entropy(scale * a @ b.T, own) + F.cross_entropy(scale * b @ a.T, own)
        loss, named = asked(("gap", "loss", clouds, scale), ("gap", "named", clouds))
        assert abs(loss - expected / 2) < CLOSE and named == 8 - 2 * exchanged
    best = {}
    for exchanged in (False, True):
        all_rings = asked(*(("gap", "rings", k, exchanged) for k in range(0, 81, 5)))
        losses = asked(*(("gap", "loss", clouds, 100) for clouds in all_rings))
        best[exchanged] = losses.index(min(losses))
    assert best[False] == 0 < best[True]


def test_unseen_is_what_the_embedding_maps_to_nothing():
    (rows,) = asked(("unseen", "embedding", 12, 48))
    W = torch.tensor(rows, dtype=torch.float64)
    assert abs(W.std() * 48**0.5 - 1) < 0.1
    (directions,) = asked(("unseen", "orthonormal", rows))
    V = torch.tensor(directions, dtype=torch.float64)
    assert close((V @ V.T).tolist(), torch.eye(12, dtype=torch.float64))
    delta = random(48)
    (hidden,) = asked(("unseen", "beside", delta.tolist(), directions))
    Vh = torch.linalg.svd(W, full_matrices=False).Vh
    assert close(hidden, delta - Vh.T @ Vh @ delta)
    (tokens,) = asked(("unseen", "token", hidden, rows))
    assert max(map(abs, tokens)) < 1e-13
    (tokens,) = asked(("unseen", "token", delta.tolist(), rows))
    assert close(tokens, W @ delta)


def test_kernel_has_the_tables_of_convolution_and_attention():
    kernel, tokens = random(3, 3), random(20, 7)
    (table,) = asked(("kernel", "convolutionTable", kernel.flatten().tolist(), 4, 5))
    pixels = random(1, 1, 4, 5, seed=1)
    expected = F.conv2d(pixels, kernel[None, None], padding=1).flatten()
    assert close((torch.tensor(table, dtype=torch.float64) @ pixels.flatten()).tolist(), expected)
    directions = F.normalize(tokens - tokens.mean(0), dim=-1)
    scores = 8 * directions @ directions.T
    for window in (1, 3, 9):
        (table,) = asked(("kernel", "attentionTable", tokens.tolist(), window, 5))
        near = local_mask((4, 5), window)
        expected = scores.masked_fill(~near, -torch.inf).softmax(-1)
        assert close(table, expected)
    (mixed,) = asked(("kernel", "mixed", table, tokens.tolist()))
    assert close(mixed, expected @ tokens)


def test_places_are_sines_and_cosines():
    one, two = asked(("places", "oneDimensional", 3, 4, 8), ("places", "twoDimensional", 3, 4, 8))
    assert close(one, sincos_1d(12, 8).double(), 1e-6)  # the package's table is in float32
    assert close(two, sincos_2d((3, 4), 8).double(), 1e-6)
    (alike,) = asked(("places", "alike", two, 5))
    table = torch.tensor(two, dtype=torch.float64)
    assert close(alike, F.cosine_similarity(table[5], table, dim=-1))


def test_rope_turns_queries_and_keys_as_the_package_does_and_the_offset_alone_counts():
    q, k = random(16), random(16, seed=1)
    rates = 100.0 ** -(torch.arange(4) / 4).double()
    angles = axial_angles((8, 8), 8).double()
    rotation = Rotation(angles.cos(), angles.sin())
    everywhere = [rotation(x.expand(1, 1, 64, 16))[0, 0] for x in (q, k)]
    one, other = 8 * 2 + 5, 8 * 6 + 1
    lists = q.tolist(), k.tolist()
    ours, score, moved = asked(
        ("rope", "turned", lists[0], [2, 5], rates.tolist()),
        ("rope", "score", *lists, [2, 5], [6, 1], rates.tolist()),
        ("rope", "score", *lists, [0, 6], [4, 2], rates.tolist()),
    )
    assert close(ours, everywhere[0][one], atol=1e-6), "angles are made in float32 there"
    assert abs(score - everywhere[0][one] @ everywhere[1][other] / 4) < 1e-5
    assert abs(score - moved) < CLOSE


def test_shuffle_answers_with_and_without_positions():
    of = model("digits_vit")
    seen = images(of, 1)
    order = torch.randperm(16, generator=torch.Generator().manual_seed(1))
    bytes_ = seen.flatten().tolist()
    call = "shuffle", "answers", "$engine", "$model", bytes_
    moved, straight = asked((*call, order.tolist()), (*call, list(range(16))), model=of)
    x = unpatchify(patchify(of.preprocess(seen), 2)[:, order], (4, 4), 2)
    assert close(moved["with"], of(x)[0].double(), 1e-4)
    blind = minivit.remove(of, "positions")
    assert close(moved["without"], blind(x)[0].double(), 1e-4)
    straight, moved = torch.tensor(straight["without"]), torch.tensor(moved["without"])
    assert (straight - moved).abs().max() < 1e-5


def in_another_basis(of, Q, moved):
    """By chapter 8's `turned`; `moved` is whether norms hand on their scale and shift."""
    chapter = next(BOOK.glob("08_*.ipynb"))
    nodes = (node for cell in cells(chapter) if "def turned" in cell.source
             for node in ast.parse(cell.source).body)  # fmt: skip
    (turned,) = (node for node in nodes if getattr(node, "name", "") == "turned")
    exec(ast.unparse(turned), names := {"copy": copy})
    own = {} if moved else {k: v for k, v in of.state_dict().items() if "norm" in k}
    of = copy.deepcopy(of)
    idle = {name: torch.full_like(v, name.endswith("weight")) for name, v in own.items()}
    of.load_state_dict(of.state_dict() | idle)
    there = names["turned"](of, Q)
    there.load_state_dict(there.state_dict() | own)
    return there


@pytest.mark.parametrize("keeps_mean", [True, False])
@pytest.mark.parametrize("moved", [True, False])
def test_turn_writes_the_model_in_another_basis_as_the_chapter_does(keeps_mean, moved):
    of = model("digits_vit")
    seen = images(of, 1)
    bytes_ = seen.flatten().tolist()
    angles = (0, 60, 100)  # at 180 degrees any turn is -1, which norms let through
    turns = asked(*(("turn", "turn", 64, angle, keeps_mean) for angle in (*angles, 360)))
    *turns, whole = torch.tensor(turns, dtype=torch.float64).view(4, 64, 64)
    eye, ones = torch.eye(64, dtype=torch.float64), torch.ones(64, dtype=torch.float64)
    assert torch.equal(turns[0], eye)
    assert (whole - eye).abs().max() < 1e-13 < 0.1 < (turns[1] - eye).abs().max()
    assert (turns[1] @ turns[1].T - eye).abs().max() < 1e-13
    assert ((turns[1] @ ones - ones).abs().max() < 1e-13) == keeps_mean
    call = "turn", "answer", "$engine", "$model", bytes_
    answers = asked(*((*call, angle, keeps_mean, moved) for angle in angles), model=of)
    logits = [torch.tensor(one["logits"], dtype=torch.float64) for one in answers]
    states = [torch.tensor(one["states"], dtype=torch.float64).view(5, 16, 64) for one in answers]
    for Q, ours, logit, state in zip(turns, answers, logits, states, strict=True):
        there = in_another_basis(of, Q, moved)
        with minivit.record(there, "blocks.*") as at:
            expected = there(of.preprocess(seen).double())[0]
        assert close(ours["logits"], expected, 1e-4)
        assert close(ours["states"][2], at["blocks.1"].flatten(), 1e-4)
        apart = (logit - logits[0]).abs().max()
        if keeps_mean and moved:
            assert apart < 1e-11, "the same function"
            assert (state - states[0] @ Q.T).abs().max() < 1e-10
        elif not torch.equal(Q, eye):
            assert apart > 0.1, "another one"


def test_boxes_take_parts_away_as_remove_does():
    of, seen = model("digits_vit"), images(model("digits_vit"), 60)
    pixels = seen.flatten(1).tolist()
    cases = [[], [["mlp", 0]], [["attention", 1], ["mlp", 3]], [["residual", 2]]]
    found = asked(*(("boxes", "answers", "$engine", "$model", pixels, c) for c in cases), model=of)
    for removed, ours in zip(cases, found, strict=True):
        without = copy.deepcopy(of)
        for part, block in removed:
            without = minivit.remove(without, part, [block])
        expected = without.double()(without.preprocess(seen).double()).argmax(1)
        assert ours == expected.tolist(), removed
    assert found[0] != found[1], "a part that is gone is missed"


def test_donors_give_parts_as_transplants_do():
    of, host = model("digits_vit"), rounded(live.start(1))
    seen = images(of, 40)
    pixels = seen.flatten(1).tolist()
    blocks = [f"blocks.{b}" for b in range(4)]
    cases = [[], ["head"], ["positions", *blocks, "norm", "head"], ["blocks.1", "head"]]
    cases.append(["patch_embedding", *cases[2]])
    call = "donors", "answers", "$engine", "$model", "$other"
    found = asked(*((*call, parts, pixels) for parts in cases), model=of, other=host)
    for parts, ours in zip(cases, found, strict=True):
        grafted = copy.deepcopy(host)
        for part, *block in (name.split(".") for name in parts):
            grafted = minivit.transplant(of, grafted, part, [*map(int, block)] or None)
        assert ours == grafted.double()(of.preprocess(seen).double()).argmax(1).tolist(), parts
    assert found[-1] == of(of.preprocess(seen)).argmax(1).tolist(), "all of the donor is the donor"

    def numbers(of):
        return torch.cat([p.flatten() for p in of.parameters() if p.ndim > 1])

    starts = [numbers(live.start(seed)) for seed in live.STARTS]
    own, other = (F.cosine_similarity(numbers(of), start, dim=0) for start in starts)
    assert own > 0.8 and abs(other) < 0.1, "one host is the donor's own start, the other is not"


def test_draw_finds_the_velocities_of_the_model_and_steps_with_guidance_as_it_does():
    network = dit.load().double()
    points, t = random(4, 1, 8, 8), torch.tensor([0.0, 0.3, 0.75, 0.95], dtype=torch.float64)
    labels = torch.tensor([3, 0, 9, dit.NONE])
    rows = points.flatten(1).tolist()
    model = "$engine", "$digits_dit"
    calls = [
        *(("draw", "velocity", *model, *one) for one in zip(rows, t.tolist(), labels.tolist(), strict=True)),
        ("draw", "timeFeatures", 0.3, 48),
        ("draw", "step", *model, rows[0], 0, 1, 3, 2.5),
        ("draw", "step", *model, rows[0], 0, 1, 3, 1),
        ("draw", "variance", rows),
    ]  # fmt: skip
    *velocities, features, guided, plain, variance = asked(*calls, digits_dit=live.drawing_model())
    torch.set_default_dtype(torch.float64)  # of the rates
    try:
        assert close(velocities, network(points, t, labels).flatten(1).detach(), 1e-6)  # the GELU
        assert close(features, dit.time_features(t, 48)[1])
        for ours, scale in ((guided, 2.5), (plain, 1.0)):
            drawn = dit.draw(network, points[:1], labels[:1], 1, scale)
            assert close(ours, drawn.flatten(), 1e-6)
    finally:
        torch.set_default_dtype(torch.float32)
    assert abs(variance - points.var(0).mean()) < CLOSE


def test_sink_spends_as_softmax_with_a_register_a_one_or_sigmoids():
    scores = 2 * random(5) - 1
    kinds = "softmax", "register", "plus", "sigmoid"
    spends = asked(*(("sink", "spend", scores.tolist(), kind) for kind in kinds))
    found = dict(zip(kinds, spends, strict=True))
    with_zero = F.pad(scores, (0, 1)).softmax(0)
    weights = {"softmax": scores.softmax(0), "sigmoid": (scores - math.log(5)).sigmoid()}
    weights |= {"register": with_zero[:5], "plus": with_zero[:5]}
    for kind in kinds:
        assert close(found[kind]["patches"], weights[kind], 1e-7), kind
        spent = sum(found[kind]["patches"]) + found[kind]["register"] + found[kind]["unspent"]
        assert spent == pytest.approx(1)
    rest = pytest.approx(with_zero[5].item())
    assert found["register"]["register"] == found["plus"]["unspent"] == rest
    assert found["softmax"]["unspent"] == found["plus"]["register"] == 0
    (large,) = asked(("sink", "spend", [1000.0, 999.0], "plus"))
    assert close(large["patches"], torch.tensor([1000.0, 999.0], dtype=torch.float64).softmax(0))


def test_brakes_centre_and_sharpen_a_teachers_scores_and_count_the_groups_it_tells_apart():
    scores = random(5, 4)
    for share, temperature in ((0.0, 1.0), (0.6, 0.2), (1.0, 0.05)):
        expected = ((scores - share * scores.mean(0)) / temperature).softmax(1)
        (ours,) = asked(("brakes", "targets", scores.tolist(), share, temperature))
        assert close(ours, expected)
        (own,) = asked(("brakes", "entropy", expected[0].tolist()))
        assert abs(own - torch.distributions.Categorical(expected[0]).entropy()) < CLOSE
        apart = (expected * (expected / expected.mean(0)).log()).sum(1).mean().exp()
        assert abs(asked(("brakes", "groups", expected.tolist()))[0] - apart) < CLOSE
