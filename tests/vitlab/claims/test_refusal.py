"""What a model cannot be asked is its own; a mistake in the audit is not told as the model's."""

import pytest
import torch
from torch import nn

import minivit
from tests.vitlab.claims.planted import asked, digits
from vitlab.claims.looks import looks
from vitlab.claims.probe import CannotAsk, Subject
from vitlab.claims.probes import PROBES, parts
from vitlab.claims.probes.attention import rank_correlation
from vitlab.claims.probes.subjects import weighted
from vitlab.claims.refusal import refusal
from vitlab.claims.run import ask
from vitlab.instruments import rollout


def of(call):
    """What is said of the error that a call raises."""
    try:
        call()
    except Exception as error:
        return refusal(error)
    raise AssertionError("nothing was raised")


class Stops(nn.Module):
    """A stranger's model that reads numbers of one precision alone, and stops in its own way."""

    def forward(self, images):
        if images.dtype == torch.float64:
            raise NotImplementedError("no doubles\nhere")
        return images.mean((2, 3))


def test_an_instrument_that_does_not_know_the_model_says_why():
    network = minivit.load("digits_resnet")
    said = of(lambda: rollout(network, torch.zeros(1, 1, 8, 8)))
    assert said == "ResNet computes no attention between tokens: there is none to measure"
    assert asked("C13", network, torch.zeros(1, 1, 8, 8)) == said


def test_a_model_that_stops_while_it_runs_cannot_be_asked_whatever_it_raises():
    stopped = "the model stopped: NotImplementedError: no doubles"
    assert of(lambda: Stops()(torch.zeros(1, 3, 4, 4).double())) == stopped
    assert asked("H12", Stops(), torch.zeros(1, 3, 4, 4)) == stopped


def test_minivits_models_stop_as_others_do():
    model, images, _ = digits(2)
    model.head.weight = nn.Parameter(torch.zeros(10, 3))
    assert of(lambda: model(images)).startswith("the model stopped: RuntimeError: mat1 and mat2")
    assert "7 x 7" in of(lambda: model(images[..., :7, :7]))  # in a sentence of its own


def table(rows):
    return torch.zeros(2, rows)


@pytest.mark.parametrize(
    ("mistake", "kind"),
    [
        (lambda: weighted([table(1)], [table(1), table(1)]), ValueError),  # of zip
        (lambda: rank_correlation(table(3), table(4)), RuntimeError),  # of torch
        (lambda: rollout(minivit.load("digits_vit"), None), TypeError),
        (lambda: minivit.load("digits_vit").blocks[7], IndexError),
        (lambda: parts.one(nn.Linear(1, 1), "blocks.7"), LookupError),  # raised in a sentence
        (lambda: ask.nothing, AttributeError),
    ],
)  # fmt: skip
def test_a_mistake_is_no_refusal_though_it_has_the_type_of_one(mistake, kind):
    with pytest.raises(kind):
        mistake()
    assert of(mistake) is None


def test_a_mistake_in_what_listens_to_a_model_is_not_the_models():
    model, images, _ = digits(2)

    def run():
        with minivit.replace(model, {"blocks.1": lambda tokens: tokens / {}["no key"]}):
            model(images)

    assert of(run) is None


@pytest.mark.parametrize("error", [MemoryError, torch.OutOfMemoryError])
def test_too_little_memory_is_not_the_models_fault(error):
    class Large(nn.Module):
        def forward(self, images):
            raise error("CUDA out of memory. Tried to allocate 3 GiB")

    assert of(lambda: Large()(torch.zeros(1, 3, 4, 4))) is None
    found = ask(PROBES["C04"], Subject(Large(), torch.zeros(1, 3, 4, 4)), 0)
    assert (found.state, found.reason) == ("failed", "out of memory: try a smaller --batch-size")


def test_a_mistake_of_a_probe_is_a_failure_of_the_audit(monkeypatch):
    model, images, _ = digits(2)
    monkeypatch.setattr(parts, "branches", lambda *_: ["blocks.7"])
    found = ask(PROBES["H12"], Subject(model, images), 0)
    assert found.state == "failed"
    assert found.reason.startswith("an error in the audit: LookupError: no module matches")


def test_a_mistake_in_the_baseline_is_not_passed_over():
    model, images, _ = digits(2)
    with pytest.raises(KeyError):
        PROBES["C04"].measure(Subject(model, images, untrained=lambda: {}["no key"]))
    silent = Stops()  # but a twin that cannot be asked has no figure
    found = PROBES["C04"].measure(Subject(model, images, untrained=lambda: silent))
    assert set(found.baselines) == {"uniform attention"}


def test_attention_that_cannot_be_heard_is_told_in_the_words_of_the_one_that_listens():
    import timm

    model = timm.create_model("convit_tiny", embed_dim=16, depth=2, num_heads=2, img_size=32).eval()
    with pytest.raises(CannotAsk, match="more than once"):
        PROBES["H12"].measure(Subject(model, torch.randn(1, 3, 32, 32)))


def test_a_mistake_in_the_pictures_leaves_the_report_without_them(monkeypatch):
    def broken(model, image):
        return {}["no key"]

    monkeypatch.setattr("vitlab.figures.rollout_overlay", broken)
    assert looks(*digits(2)[:2]) == ([], "an error in the audit: KeyError: 'no key'")
