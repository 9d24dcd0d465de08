"""The sections that want torchvision's weights run with random ones, and store nothing of them."""

import ast

import nbformat
import pytest
import torch

import minivit
from course.claims.rows import BOOK


def definitions(cells):
    """Imports, functions, classes and named constants: what a chapter's later cells build on."""
    for cell in cells:
        for node in ast.parse(cell.source).body:
            name = ast.unparse(node.targets[0]) if isinstance(node, ast.Assign) else ""
            constant = name.isupper() and len(name) > 1  # one letter is a matrix
            if constant or isinstance(
                node, ast.Import | ast.ImportFrom | ast.FunctionDef | ast.ClassDef
            ):
                yield ast.unparse(node)


def run_at_224(name, namespace):
    """Runs the cells tagged "at-224" of a chapter after its definitions."""
    cells = nbformat.read(BOOK / f"{name}.ipynb", as_version=4).cells
    code = [c for c in cells if c.cell_type == "code" and "%" not in c.source[:1]]
    tagged = [c for c in code if "at-224" in c.metadata.get("tags", [])]
    assert tagged
    exec("\n".join(definitions(c for c in code if c not in tagged)), namespace)
    for cell in tagged:
        exec(cell.source, namespace)


def test_chapter_13_surveys_trained_rows_where_they_may_be_fetched(monkeypatch, capsys):
    asked = []

    def load(name, weights):
        asked.append((name, weights))
        return minivit.create(name, depth=1).eval()

    monkeypatch.setenv("MINIVIT_DOWNLOAD", "1")
    monkeypatch.setattr(minivit, "load", load)
    torch.manual_seed(0)
    # Fewer examples than the chapter has, and a patch embedding of its own.
    namespace = {"embedding": minivit.patches.PatchEmbedding(32, 768).requires_grad_(False)}
    namespace |= {"cat": torch.randn(1, 3, 224, 224), "mean": torch.zeros(3072)}
    namespace |= {"X": torch.randn(1000, 3072)}
    run_at_224("13_what_the_patch_embedding_keeps", namespace)
    assert asked == [("vit_b_32", "IMAGENET1K_V1")]
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["condition", "untrained", "trained"]
    assert float(lines[2].split()[2]) == pytest.approx(0.25, abs=0.02)  # random rows


def test_chapter_14_says_of_each_trained_model_what_its_first_norm_keeps(monkeypatch, capsys):
    monkeypatch.setenv("MINIVIT_DOWNLOAD", "1")
    monkeypatch.setattr(minivit, "load", lambda name, weights: minivit.create(name, depth=1))
    torch.manual_seed(0)
    namespace = {"images": torch.randn(1, 3, 96, 96, dtype=torch.float64)}
    run_at_224("14_what_layernorm_forgets", namespace)
    base, large = capsys.readouterr().out.splitlines()
    assert base == "vit_b_16: one number of each patch is lost, 0 dimensions beside"
    assert large.startswith("vit_l_16: the picture is found, error ")


def test_chapter_16_takes_a_trained_model_apart(monkeypatch, capsys):
    def load(name, weights):
        model = minivit.create(name, depth=1, image_size=32).eval()
        model.preprocess = lambda picture: torch.nn.functional.interpolate(picture / 255, 32)
        return model

    monkeypatch.setenv("MINIVIT_DOWNLOAD", "1")
    monkeypatch.setattr(minivit, "load", load)
    torch.manual_seed(0)
    run_at_224("16_taking_the_encoder_apart", {})
    lines = capsys.readouterr().out.splitlines()
    kinds = "all parts", "no attention", "no MLP", "no norm", "no residual"
    assert [line[:12].strip() for line in lines] == list(kinds)
    assert all("dB   largest" in line for line in lines)
