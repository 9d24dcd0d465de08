"""Models for programs without Python, in the format ONNX (Open Neural Network Exchange)."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from minivit.files import atomic_write
from minivit.preprocessing import Preprocess
from vitlab.calls import expect, logits
from vitlab.convert.loaded_model import LoadedModel, quiet
from vitlab.extras import extra

TOLERANCE = 1e-4  # of the largest logit, at which the file is not written
LARGEST = 1.7e9  # bytes of weights in one file: torch would split more over two
SIZES = (1, 3)  # of the batches compared; the file takes any


class Logits(nn.Module):
    """A classifier that gives its logits alone, as Hugging Face's do not."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, images: Tensor) -> Tensor:
        return logits(self.model, images)


def export(loaded: LoadedModel, path: Path) -> float:
    """Writes a classifier to an ONNX file, for batches of any number of images of its size.

    The metadata hold ``classes`` and ``preprocess`` as JSON, and ``licence``. Before the file is in
    its place, onnxruntime runs it; gives the largest difference of logits.
    """
    with extra("onnx"):
        import onnx  # noqa: F401
        import onnxruntime
        import onnxscript  # noqa: F401
    preprocess = loaded.preprocess
    if not isinstance(preprocess, Preprocess):
        raise ValueError(f"the size of images that {loaded.name} takes is not known")
    model = Logits(loaded.model).eval()
    held = sum(tensor.nbytes for tensor in model.state_dict().values())
    expect(held <= LARGEST, f"{loaded.name} with less than 2 GB of weights", f"{held / 1e9:.1f}")
    shape = (len(preprocess.mean), *preprocess.size)
    generator = torch.Generator().manual_seed(0)
    batches = [torch.randn(size, *shape, generator=generator) for size in SIZES]
    with torch.no_grad():
        expected = torch.cat([model(images) for images in batches])
    program = _program(model, torch.zeros(2, *shape), loaded.name)
    about = {"preprocess": json.dumps(asdict(preprocess)), "licence": loaded.licence}
    about["classes"] = json.dumps(list(loaded.classes)) if loaded.classes else None
    program.model.metadata_props.update({key: text for key, text in about.items() if text})
    with atomic_write(path) as scratch:
        program.save(scratch, external_data=False)
        session = onnxruntime.InferenceSession(scratch, providers=["CPUExecutionProvider"])
        try:
            rows = [session.run(None, {"images": images.numpy()})[0] for images in batches]
        except Exception as error:  # onnxruntime's errors have no kind in common
            what = f"the exported {loaded.name} does not take {SIZES} images at a time"
            raise ValueError(f"{what}: {error}") from error
        differences = (torch.cat([*map(torch.from_numpy, rows)]) - expected).abs()
        difference = differences.nan_to_num(torch.inf).max().item()
        agrees = difference <= TOLERANCE * max(1.0, expected.abs().max().item())
        expect(agrees, f"an export that agrees with {loaded.name}", f"{difference:.2g} apart")
    return difference


def _program(model: nn.Module, example: Tensor, name: str) -> Any:
    with quiet():
        try:
            return torch.onnx.export(
                model,
                (example,),
                dynamo=True,
                verbose=False,
                input_names=["images"],
                output_names=["logits"],
                dynamic_shapes={"images": {0: torch.export.Dim("batch")}},
            )
        except torch.onnx.OnnxExporterError as error:
            why = str(error.__cause__ or error).strip().splitlines()[0]
            raise ValueError(f"torch cannot export {name} to ONNX: {why}") from error
