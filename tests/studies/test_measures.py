import pytest
import torch

import minivit
from minivit.preprocessing import Preprocess
from studies.shared.measures import confidence, features, transfer
from vitlab.data import Data, Split

GENERATOR = torch.Generator().manual_seed(0)
IMAGES = torch.randint(0, 256, (6, 3, 32, 32), dtype=torch.uint8, generator=GENERATOR)


@pytest.fixture
def model():
    torch.manual_seed(0)
    model = minivit.create("vit_32px", dim=16, depth=2, heads=2, patch_size=(8, 16))
    model.preprocess = Preprocess((32, 32), resize=(32, 32))
    return model.eval()


def test_features_are_what_the_head_reads_and_the_head_comes_back(model):
    torch.nn.init.normal_(model.head.weight)
    found = torch.from_numpy(features(model, IMAGES))
    with torch.no_grad():
        logits = model(model.preprocess(IMAGES))
    torch.testing.assert_close(model.head(found), logits)


def test_transfer_asks_whether_a_linear_map_tells_classes_apart(model, monkeypatch):
    labels = torch.arange(60) % 2
    noise = torch.randint(0, 100, (60, 3, 32, 32), generator=GENERATOR)
    part = Split((noise + 100 * labels.view(-1, 1, 1, 1)).byte(), labels)  # dark or bright
    data = Data.of("LIGHT", ("dark", "bright"), dict(train=part, validation=part, test=part))
    monkeypatch.setattr("studies.shared.measures._shapes", lambda: data)
    before = {key: value.clone() for key, value in model.state_dict().items()}
    assert transfer(model, 60) > 0.9
    assert all(torch.equal(before[key], value) for key, value in model.state_dict().items())
    torch.nn.init.zeros_(model.patch_embedding.projection.weight)  # all images look the same
    assert transfer(model, 60) == pytest.approx(0.5)


def test_a_model_that_knows_nothing_is_as_sure_as_chance(model):
    part = Split(IMAGES, torch.zeros(6, dtype=torch.int64))
    assert confidence(model, part) == pytest.approx(0.1)
    model.head.bias.data[3] = 100.0
    assert confidence(model, part) == pytest.approx(1.0)
