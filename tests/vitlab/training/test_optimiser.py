import math

import pytest
import torch

import minivit
from vitlab.training.optimiser import Average, adamw, schedule
from vitlab.training.recipe import Recipe

SMALL = ["vit_8px", "feedforward_8px", "mixer_8px", "resnet_8px", "hybrid_32px", "pit_32px"]


@pytest.mark.parametrize("name", SMALL)
def test_only_the_weights_of_linear_maps_and_convolutions_decay(name):
    model = minivit.create(name)
    first = next(model.parameters()).requires_grad_(False)  # is left out
    decayed, spared = adamw(model, Recipe(weight_decay=0.3)).param_groups
    assert (decayed["weight_decay"], spared["weight_decay"]) == (0.3, 0)
    ids = {id(p) for p in decayed["params"]}
    names = {key: id(p) in ids for key, p in model.named_parameters() if p is not first}
    assert len(ids) + len(spared["params"]) == len(names)
    for key, decays in names.items():
        single = model.get_parameter(key).ndim == 1
        apart = any(part in key for part in ("norm", "positions", "class_token", "query"))
        assert decays == (key.endswith("weight") and not single and not apart), key


def test_the_rate_climbs_a_line_and_falls_along_a_cosine():
    rates = [schedule(step, 110, 10 / 110) for step in range(110)]
    assert rates[:11] == pytest.approx([(i + 1) / 11 for i in range(11)])
    assert rates[10 + 50] == pytest.approx(0.5)
    assert rates[10 + 25] == pytest.approx((1 + math.cos(math.pi / 4)) / 2)
    assert 0 < rates[-1] < 0.001
    assert schedule(0, 1, 0) == 1


def test_the_average_is_exponential_forgets_the_start_and_takes_in_a_batch_norms_statistics():
    model = minivit.create("vit_8px")
    model.head.bias.data.fill_(1.0)
    average = Average(model, 0.9)
    bias, expected = average.model.head.bias, 1.0
    for step, value in enumerate([2.0, 5.0, 3.0, *[4.0] * 200]):
        model.head.bias.data.fill_(value)
        average.update(model, step)
        decay = min(0.9, (1 + step) / (10 + step))
        expected = decay * expected + (1 - decay) * value
        if step == 0:
            assert bias[0].item() == pytest.approx(0.1 * 1 + 0.9 * 2)
        assert bias[0].item() == pytest.approx(expected, rel=1e-5)
    assert not average.model.training and not bias.requires_grad
    model = minivit.create("resnet_8px")
    average = Average(model, 0.0)
    model(torch.randn(4, 1, 8, 8))
    average.update(model, 0)
    assert all(map(torch.equal, average.model.state_dict().values(), model.state_dict().values()))
