"""README's moving picture, ``stills/back.webp``: a photograph comes back, block by block.

After each block undone, it shows the image that the tokens left give by the embedding alone.
"""

import torch
from PIL import Image, ImageDraw, ImageFont

import minivit
from course.claims.rows import BOOK
from vitlab.data.photographs import photograph
from vitlab.inversion import linear_guess, unwind
from vitlab.inversion.residual import invert_block

SIDE, HOLD, FADE = 288, 900, 3  # pixels; milliseconds of a stage; frames from one to the next

if __name__ == "__main__":
    model = minivit.load("cifar10_vit_gap").eval().double()
    seen = model.preprocess(photograph("chelsea", 32)[None]).double()
    with torch.no_grad(), minivit.record(model, "blocks.5") as last:
        model(seen)
    tokens, images = last["blocks.5"], {}
    for done in range(6):
        words = f"{done} of 6 blocks undone" if done else "64 tokens of the last block"
        images[words] = linear_guess(model, f"blocks.{5 - done}", tokens)
        tokens = invert_block(model.blocks[5 - done], tokens, None, 10).x if done < 5 else tokens
    images["the photograph, to ten digits"] = unwind(model, last["blocks.5"], at="blocks.5").image
    assert (images["the photograph, to ten digits"] - seen).abs().max() < 1e-10
    shown = []
    scale = torch.tensor([model.preprocess.mean, model.preprocess.std])
    mean, std = scale[:, :, None, None]
    for words, (image,) in images.items():
        pixels = (image * std + mean).clamp(0, 1).mul(255).byte().permute(1, 2, 0).numpy()
        shown.append(Image.new("RGB", (SIDE, SIDE + 34), "white"))
        shown[-1].paste(Image.fromarray(pixels).resize((SIDE, SIDE), Image.Resampling.NEAREST))
        draw, font = ImageDraw.Draw(shown[-1]), ImageFont.load_default(18)
        draw.text((SIDE / 2, SIDE + 18), words, "#17624a", font, anchor="mm")
    pairs = list(zip(shown, shown[1:] + shown[:1], strict=True))
    first, *rest = [Image.blend(*pair, i / FADE) for pair in pairs for i in range(FADE)]
    times = ([HOLD] + [60] * (FADE - 1)) * len(shown)
    times[-FADE] *= 3  # the photograph
    target = BOOK / "_static/stills/back.webp"
    first.save(target, save_all=True, append_images=rest, duration=times, loop=0, lossless=True)
