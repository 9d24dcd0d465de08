"""README's moving picture: a photograph on its way back from the last block, block by block.

python -m book.tools.moving        writes book/_static/stills/back.webp
"""

import torch
from PIL import Image, ImageDraw, ImageFont

import minivit
from course.claims.rows import BOOK
from vitlab.data.photographs import photograph
from vitlab.inversion import linear_guess, unwind
from vitlab.inversion.residual import invert_block

SIDE, HOLD, FADE = 288, 900, 3  # pixels; milliseconds of a stage; frames between two


def stages() -> dict[str, Image.Image]:
    """After each block undone, the image that the tokens left give by the embedding alone."""
    model = minivit.load("cifar10_vit_gap").eval().double()
    names = [f"blocks.{i}" for i in range(len(model.blocks))]
    seen = model.preprocess(photograph("chelsea", 32)[None]).double()
    with torch.no_grad(), minivit.record(model, names[-1]) as last:
        model(seen)
    tokens, found = last[names[-1]], {}
    for i in reversed(range(len(names))):
        done = len(names) - 1 - i
        words = f"{done} of {len(names)} blocks undone" if done else "64 tokens of the last block"
        found[words] = linear_guess(model, names[i], tokens)
        tokens = invert_block(model.blocks[i], tokens, None, 10).x if i else tokens
    image = unwind(model, last[names[-1]], at=names[-1]).image
    assert (image - seen).abs().max() < 1e-10
    found["the photograph, to ten digits"] = image
    return {words: drawn(model, image[0], words) for words, image in found.items()}


def drawn(model: minivit.ViT, image: torch.Tensor, words: str) -> Image.Image:
    mean, std = (
        torch.tensor(v)[:, None, None] for v in (model.preprocess.mean, model.preprocess.std)
    )
    pixels = (image * std + mean).clamp(0, 1).mul(255).byte().permute(1, 2, 0).numpy()
    frame = Image.new("RGB", (SIDE, SIDE + 34), "white")
    frame.paste(Image.fromarray(pixels).resize((SIDE, SIDE), Image.Resampling.NEAREST))
    where, font = (SIDE / 2, SIDE + 18), ImageFont.load_default(18)
    ImageDraw.Draw(frame).text(where, words, "#17624a", font, anchor="mm")
    return frame


if __name__ == "__main__":
    shown = [*stages().values()]
    frames, times = [], []
    for one, other in zip(shown, shown[1:] + shown[:1], strict=True):
        frames += [Image.blend(one, other, i / FADE) for i in range(FADE)]
        times += [HOLD * (1 + 2 * (one is shown[-1]))] + [60] * (FADE - 1)
    file = BOOK / "_static/stills/back.webp"
    frames[0].save(
        file, save_all=True, append_images=frames[1:], duration=times, loop=0, lossless=True
    )
