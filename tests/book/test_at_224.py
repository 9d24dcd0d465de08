"""The sections that want torchvision's weights run with random ones, and store nothing of them."""

import ast

import pytest
import torch

import minivit
import vitlab
from book.tools.notebooks import cells, tags
from course.claims.rows import BOOK
from minivit.preprocessing import Preprocess
from tests.parity import draw
from vitlab import inversion
from vitlab.inversion import invert

pytestmark = pytest.mark.full
KEPT = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef)


def definitions(code):
    """Imports, functions, classes and named constants: what a chapter's later cells build on."""
    for cell in code:
        for node in ast.parse(cell.source).body:
            name = ast.unparse(node.targets[0]) if isinstance(node, ast.Assign) else ""
            constant = name.isupper() and len(name) > 1  # one letter is a matrix
            if constant or isinstance(node, KEPT):
                yield ast.unparse(node)


@pytest.fixture
def at_224(monkeypatch, capsys):
    """Runs a chapter's cells tagged "at-224" after its definitions, with small random models.

    Gives what they print, in lines, and which weights they asked for.
    """

    def run(name, vit=None, resnet=None, preprocess=None, drawn=(), **namespace):
        shipped, asked = minivit.load, []

        def load(name, weights=None):
            if weights is None:
                return shipped(name)
            asked.append((name, weights))
            changes = (vit or {"depth": 1}) if name.startswith("vit") else resnet
            model = minivit.create(name, **changes).eval()
            model.preprocess = preprocess
            return draw(model) if name in drawn else model

        torch.manual_seed(0)
        monkeypatch.setenv("MINIVIT_DOWNLOAD", "1")
        monkeypatch.setattr(minivit, "load", load)
        every = cells(BOOK / f"{name}.ipynb")
        code = [c for c in every if c.cell_type == "code" and "%" not in c.source[:1]]
        tagged = [c for c in code if "at-224" in tags(c)]
        assert tagged
        exec("\n".join(definitions(c for c in code if c not in tagged)), namespace)
        for cell in tagged:
            exec(cell.source, namespace)
        return capsys.readouterr().out.splitlines(), asked

    return run


def begins(lines, *words):
    pairs = zip(lines, words, strict=True)
    assert all(line.lstrip().startswith(word) for line, word in pairs), lines


def test_chapters_8_to_10_compare_filters_and_blocks_of_trained_models(at_224):
    lines, _ = at_224("08_filters_and_positions", resnet={"stages": (1,)})
    begins(lines, "vit_b_32: ", "vit_l_16: ", "resnet50: ")
    assert "R^2" in lines[0] and "R^2" not in lines[2]
    lines, _ = at_224("09_where_attention_looks")
    begins(lines, "ViT-B/16, trained:", "block  1: heads from 11", "no pref")
    small = {"vit": {"depth": 3, "dim": 24, "heads": 2}, "resnet": {"stages": (1,) * 4, "width": 4}}
    lines, _ = at_224("10_comparing_representations", **small)
    begins(lines, "vit_b_16: ", "resnet50: ")
    for line in lines:
        near, away = (float(part.split()[-1]) for part in line.split(","))
        assert away <= near <= 1


def test_chapter_11_lets_two_trained_models_judge_each_others_images(at_224, monkeypatch):
    generate, steps_asked = inversion.generate, []

    def once(*arguments, steps, **options):
        steps_asked.append(steps)
        return generate(*arguments, steps=1, **options)

    monkeypatch.setattr(inversion, "generate", once)
    names = "vit_b_32", "resnet50"
    how = {"resnet": {"stages": (1,) * 4}, "preprocess": Preprocess(224, 224), "drawn": names}
    lines, asked = at_224("11_generated_inputs", **how)
    assert asked == [(name, "IMAGENET1K_V1") for name in names] and {*steps_asked} == {300}
    ways = "blur, crops", "waves, views"
    pairs = [(*pair, way) for pair in (names, names[::-1]) for way in ways]
    begins(lines, *(f"{maker}, {way}: {judge} recognises " for maker, judge, way in pairs))


def test_chapter_12_surveys_trained_rows_and_13_says_what_each_first_norm_keeps(at_224):
    # Fewer examples than the chapter has, and a patch embedding of its own.
    namespace = {"embedding": minivit.vit.PatchEmbedding(32, 768).requires_grad_(False)}
    namespace |= {"cat": torch.randn(1, 3, 224, 224), "mean": torch.zeros(3072)}
    namespace |= {"X": torch.randn(1000, 3072)}
    lines, _ = at_224("12_what_the_patch_embedding_keeps", **namespace)
    begins(lines, "condition", "untrained", "trained")
    assert float(lines[2].split()[2]) == pytest.approx(0.25, abs=0.02)  # random rows
    image = torch.randn(1, 3, 96, 96, dtype=torch.float64)
    lost = "vit_b_16: one number of each patch is lost, 0 dimensions beside"
    lines, _ = at_224("13_what_layernorm_forgets", images=image)
    begins(lines, lost, "vit_l_16: the image is found, error ")


def test_chapter_14_says_which_branches_are_undone_and_15_compares_optimisers(at_224, monkeypatch):
    small = {"depth": 4, "dim": 48, "heads": 4, "patch_size": 32}
    lines, _ = at_224("14_is_attention_invertible", small, preprocess=Preprocess(224, 224))
    begins(lines, *(f"{name} block {i}:" for name in ("vit_b_16", "vit_l_16") for i in (0, 1, 3)))
    rates = [(line, float(line.split()[-1])) for line in lines]
    # In 150 steps an error shrinks to 1e-8 at a rate of 0.88.
    sure = [(line, rate) for line, rate in rates if abs(rate - 0.88) > 0.1]
    assert sure and all(("True" in line) == (rate < 0.88) for line, rate in sure)
    monkeypatch.setattr(vitlab.inversion, "invert", lambda *a, **k: invert(*a, **k | {"steps": 2}))
    small = {"vit": {"depth": 2, "image_size": 64}, "preprocess": Preprocess((64, 64), (64, 64))}
    lines, _ = at_224("15_inverting_representations", **small)
    begins(lines, "blocks.0:", "blocks.1:")


def test_chapter_16_takes_a_trained_model_apart_and_17_says_what_each_part_gains(at_224):
    def preprocess(picture):
        return torch.nn.functional.interpolate(picture / 255, 32)

    small = {"depth": 1, "image_size": 32}
    lines, _ = at_224("16_taking_the_encoder_apart", small, preprocess=preprocess)
    begins(lines, "all parts", "no attention", "no MLP", "no norm", "no residual")
    (gamma, *gains), _ = at_224("17_transplants", {"depth": 1, "dim": 48, "heads": 3})
    assert gamma == "size of gamma 1.00"  # untrained
    first_norm = next(line for line in gains if line.startswith("first norm"))
    assert float(first_norm.split()[-2]) == 0  # two untrained norms are one and the same
