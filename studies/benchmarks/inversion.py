"""How soon does inversion arrive? ``python -m studies.benchmarks.inversion --help``

Every optimiser looks for an input whose activation after a block is that of an image. The table
counts forward-backward evaluations, and the seconds that they took, until the source's criterion
was met and until the input was within 40 dB of the image, and how many times as many gradient
descent needs; it takes the longest step that is surely safe where it starts. Trained models get
images that they have not seen; vit_b_32, untrained, gets crops of photographs, and cannot come
within 40 dB: its tokens have 768 numbers for the 3072 of a patch.

All of it takes over an hour. Gradient descent seldom arrives in 500 evaluations, and then a ratio
is a bound; ``--models cifar10_vit_gap --blocks 1 --evaluations 12000`` shows what it needs.
"""

import math
import time
from statistics import median

import torch
from torch import Tensor, nn

import minivit
from minivit import catalogue as zoo
from minivit.mixer import MixerConfig
from minivit.model import Model
from minivit.vit import ViTConfig
from studies.benchmarks.common import parser, write
from vitlab.data import load_data
from vitlab.data.photographs import crops
from vitlab.inversion import invert

UNTRAINED = "vit_b_32"
BLOCKS = (1, 6, 12)  # of vit_b_32
OPTIMISERS = ("gd", "adam", "lbfgs", "gauss-newton")
SOON = 40.0  # dB


def pictures(model: Model, n: int) -> Tensor:
    """Images that the model was not trained on, ``[n, channels, height, width]``."""
    if not hasattr(model, "preprocess"):
        mean, std = torch.tensor([0.5, 0.25])  # of values from 0 to 1, roughly
        return (crops(n, 224)[0] / 255 - mean) / std
    if model.config.channels == 1:
        return model.preprocess(load_data("DIGITS").test.images[:n])
    return model.preprocess(crops(n, model.config.image_size)[0])


def middle(counts: list[int | None]) -> float | None:
    """The median, where none is never: none, if it is beyond all that was tried."""
    value = median(math.inf if count is None else count for count in counts)
    return None if value == math.inf else value


def measure(
    model: nn.Module, name: str, images: Tensor, block: int, evaluations: int
) -> list[dict]:
    """All optimisers on one block, a row for each; gradient descent is the first."""
    rows: list[dict] = []
    for optimizer in OPTIMISERS:
        # Of Gauss-Newton's steps each takes up to some hundred evaluations.
        steps = max(1, evaluations // 100) if optimizer == "gauss-newton" else evaluations
        start = time.perf_counter()
        way = invert(model, images, f"blocks.{block - 1}", optimizer=optimizer, steps=steps)
        seconds = time.perf_counter() - start
        rows.append({
            "model": name, "block": block, "optimizer": optimizer, "pictures": len(images),
            "evaluations": way.evaluations.double().median().item(),
            "seconds per evaluation": seconds / int(way.evaluations.sum()),
            "psnr": way.psnr.median().item(),
            "criterion": middle(way.met), "40 dB": middle(way.evaluations_to(SOON)),
        })  # fmt: skip
    return rows


def described(row: dict, slow: dict) -> str:
    """A row as a line of the table, and how many times the evaluations gradient descent takes."""
    line = f"  {row['block']:5}  {row['optimizer']:13}"
    for goal in "criterion", "40 dB":
        if (needed := row[goal]) is None:
            line += f"{'never':>7}{'':21}"
            continue
        # Where gradient descent never arrived, it takes more than all it was given.
        ratio = f"{(slow[goal] or slow['evaluations']) / needed:.1f}"
        times = ("" if slow[goal] else "> ") + ratio
        line += f"{needed:7.0f}{needed * row['seconds per evaluation']:8.2f} s{times:>8} x  "
    return f"{line}{row['psnr']:6.0f} dB after {row['evaluations']:.0f}"


def main() -> None:
    trained = [n for n in zoo.shipped() if isinstance(zoo.described(n)[0], ViTConfig | MixerConfig)]
    names = [*trained, UNTRAINED]
    options = parser(__doc__, "inversion")
    options.add_argument("--models", nargs="+", default=names, choices=names)
    options.add_argument("--blocks", nargs="+", type=int, help="counted from 1 (default: all)")
    options.add_argument("--pictures", type=int, default=2)
    options.add_argument("--evaluations", type=int, default=500, help="at most (default: 500)")
    options = options.parse_args()
    torch.set_num_threads(options.threads)
    print(f"inversion, {options.threads} threads, medians over {options.pictures} images")
    rows = []
    for name in options.models:
        model = minivit.create(name) if name == UNTRAINED else minivit.load(name)
        images = pictures(model.eval(), options.pictures)
        blocks = BLOCKS if name == UNTRAINED else range(1, len(model.blocks) + 1)
        print(f"\n{name}\n  block  optimizer      evaluations to the criterion, and to 40 dB")
        for block in options.blocks or blocks:
            table = measure(model, name, images, block, options.evaluations)
            rows += table
            for row in table:
                print(described(row, table[0]), flush=True)
    write(options.out, rows, {"threads": options.threads})


if __name__ == "__main__":
    main()
