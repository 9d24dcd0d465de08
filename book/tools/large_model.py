"""Makes what ``book/large.html`` fetches when asked to: a ViT of 22 million parameters as an ONNX
file of 8-bit weights, and the program that runs it in a page (onnxruntime-web, MIT licence).

python -m book.tools.large_model [WEIGHTS]        default: original

WEIGHTS are those of ``dinov2_small_saliency``: "original", DINOv2's from the Hugging Face Hub,
whose licence lets a site pass them on; "installed" or the path of a file, to try the page at home:
that file's licence does not say so. The next build puts the folder beside the pages.
"""

import gzip
import json
import sys
import tempfile
from importlib.metadata import distribution
from pathlib import Path

import torch
from torch import Tensor, nn

import minivit
from book.tools.address import ROOT
from book.tools.npm import files_of
from vitlab.convert.dinov2 import NAME, ORIGINAL, dinov2_small_saliency

OUT = ROOT / "_build/beside/_static/large"
ORT = "onnxruntime-web-1.30.0"
SHA512 = "q0y+JrrtukXSzsBWEMccVfqX25LRmosXHF+CaRJmg8pZClzcV7svNc4rKY3jL02Vb7QmRMDs1SigqR4CXAfKYQ=="
PROGRAM = "ort.wasm.min.mjs", "ort-wasm-simd-threaded.mjs", "ort-wasm-simd-threaded.wasm"
CHANGES = "Changed: its weights are integers of 8 bits, and it gives what is inside it.\n"


class Inside(nn.Module):
    """The tokens after each block, the last normed, and attention, of bytes with channels last."""

    def __init__(self, model: minivit.ViT) -> None:
        super().__init__()
        self.model = model
        scale = torch.tensor([model.preprocess.mean, model.preprocess.std])
        self.mean, self.std = map(nn.Buffer, scale)

    def forward(self, pixels: Tensor) -> tuple[Tensor, Tensor]:
        images = ((pixels / 255 - self.mean) / self.std).permute(2, 0, 1)[None]
        with minivit.record(self.model, "blocks.*", "norm", "*.weights") as inside:
            self.model(images)
        blocks = [f"blocks.{i}" for i in range(len(self.model.blocks))]
        tokens = [inside[name][0] for name in [*blocks[:-1], "norm"]]
        weights = [inside[f"{name}.attention.weights"][0] for name in blocks]
        return torch.stack(tokens), torch.stack(weights)


def to_bytes(model: nn.Module, pixels: Tensor) -> bytes:
    """The model as an ONNX file whose linear maps have weights of 8 bits, a scale a column."""
    from onnxruntime.quantization import QuantType, quantize_dynamic

    with tempfile.TemporaryDirectory() as folder:
        exact, small = Path(folder, "exact.onnx"), Path(folder, "small.onnx")
        options = {"input_names": ["pixels"], "output_names": ["tokens", "weights"]}
        program = torch.onnx.export(model.eval(), (pixels,), dynamo=True, verbose=False, **options)
        program.save(exact, external_data=False)
        kinds = {"weight_type": QuantType.QUInt8, "op_types_to_quantize": ["MatMul", "Gemm"]}
        quantize_dynamic(exact, small, per_channel=True, **kinds)
        return small.read_bytes()


def build(weights: str = "original", out: Path = OUT) -> None:
    model = dinov2_small_saliency(weights)
    pixels = torch.zeros(*model.preprocess.size, 3, dtype=torch.uint8)
    out.mkdir(parents=True, exist_ok=True)
    onnx = "model.onnx", to_bytes(Inside(model), pixels)
    for name, content in [onnx, *files_of(ORT, SHA512, PROGRAM)]:
        if name.endswith(".mjs"):
            (out / name).write_bytes(content)
        else:
            (out / f"{name}.gz").write_bytes(gzip.compress(content, mtime=0))
    made_of = ORIGINAL.removeprefix("hf:") if weights == "original" else NAME
    size = sum(path.stat().st_size for path in out.glob("*.gz"))
    about = {"name": made_of, "licence": model.licence, "bytes": size}
    (out / "about.json").write_text(json.dumps(about), encoding="utf-8")
    apache = distribution("transformers").read_text("licenses/LICENSE") or ""  # the same licence
    text = f"{made_of}: {model.licence}\n{CHANGES}\n{apache[apache.index('Apache License') :]}"
    (out / "LICENSE.txt").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    build(*sys.argv[1:2])
