"""What closed ReLUs hide, on maps whose hidden directions and stretches are known."""

import pytest
import torch

import minivit
from tests.refusals import unchecked
from vitlab.data.photographs import crops
from vitlab.inversion import collide_along, hidden_directions

HERE = torch.tensor([[2.0, -2.0, 0.0]]).double()


def gates(x):
    """Three numbers, of which the second is seen above 1 only."""
    return torch.stack([x[:, 0], (x[:, 1] - 1).relu(), x[:, 2] + x[:, 0]], 1)


def test_a_closed_relu_hides_its_direction():
    (found,) = hidden_directions(gates, HERE)
    torch.testing.assert_close(found.abs(), torch.tensor([0.0, 1.0, 0.0]).double())


def test_an_open_relu_hides_nothing():
    assert len(hidden_directions(gates, torch.tensor([[2.0, 3.0, 0.0]]).double())) == 0


def test_directions_that_have_no_output_of_their_own_are_hidden():
    def total(x):
        return x.sum(1, keepdim=True)

    found = hidden_directions(total, HERE)
    assert found.shape == (2, 3)
    torch.testing.assert_close(found @ found.T, torch.eye(2).double())
    torch.testing.assert_close(found.sum(1), torch.zeros(2).double())


def test_nothing_moves_outside_a_window():
    window = torch.tensor([[True, False, True]])
    assert len(hidden_directions(gates, HERE, window)) == 0
    zero = hidden_directions(lambda x: 0 * x, HERE, window)
    assert len(zero) == 2 and not zero[:, 1].any()


def test_the_walk_ends_where_the_relu_opens():
    pair = collide_along(gates, HERE, torch.tensor([[0.0, 5.0, 0.0]]).double())
    assert pair.found.all()
    torch.testing.assert_close(pair.second[0], torch.tensor([2.0, 1.0, 0.0]).double())
    assert pair.second[1, 1] < -10  # the other way it stays closed for ever


def test_a_walk_where_the_output_is_zero_is_as_long_as_any():
    pair = collide_along(torch.relu, torch.tensor([[-1.0, -2.0]]).double(), torch.eye(2).double())
    assert pair.found.all() and (pair.output_distance < 1e-13).all()
    torch.testing.assert_close(pair.second[0], torch.tensor([0.0, -2.0]).double())


def test_outputs_may_have_another_shape_than_inputs():
    pair = collide_along(lambda x: gates(x[:, 0]), HERE[None], torch.eye(3).double()[1][None, None])
    torch.testing.assert_close(pair.second[0, 0], torch.tensor([2.0, 1.0, 0.0]).double())


def test_a_smooth_function_hides_a_direction_to_first_order_only():
    def square(x):
        return torch.stack([x[:, 0], x[:, 1] ** 2], 1)

    x = torch.tensor([[1.0, 0.0]]).double()
    found = hidden_directions(square, x)
    assert len(found) == 1
    assert not collide_along(square, x, found).found.any()
    shows = collide_along(gates, HERE, torch.tensor([[1.0, 0.0, 0.0]]).double())
    assert not shows.found.any() and (shows.distance < 1e-12).all()


def test_the_best_vit_gives_the_same_logits_for_two_images():
    model = minivit.load("cifar10_vit").double()
    image = model.preprocess(crops(20, (32, 32))[0][:1]).double()
    window = torch.zeros_like(image, dtype=torch.bool)
    window[..., 18:, 18:] = True
    pair = collide_along(
        model.patch_embedding, image, hidden_directions(model.patch_embedding, image, window)
    )
    other = pair.second[pair.distance.argmax()][None]
    assert (other - image).abs().max() > 0.02  # a grey level or more
    with torch.no_grad():
        assert (model(other) - model(image)).abs().max() < 1e-10


@pytest.mark.parametrize("x, window", [(HERE.expand(2, 3), None), (HERE, torch.ones(1).bool())])
def test_several_entries_and_a_window_of_another_shape_are_refused(x, window):
    with (
        unchecked(),
        pytest.raises(ValueError, match=r"one entry and a window of its shape: got \["),
    ):
        hidden_directions(gates, x, window)
