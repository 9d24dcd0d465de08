"""What a dark page lays over a figure: dark paper, light ink, and holes for its pictures."""

import io
from typing import Any

import numpy as np
from jaxtyping import Bool, UInt8
from PIL import Image
from scipy import ndimage

MOSTLY = 0.84  # of a chart is white
PAPER = 248  # of 255: what is darker in any channel is printed
THIN = 12  # pixels: letters and lines are thinner
LUMINANCE = np.array([0.213, 0.715, 0.072])  # as in CSS's filters


def flat(image: Image.Image) -> Image.Image:
    """An image on white ground."""
    paper = Image.new("RGBA", image.size, "white")
    return Image.alpha_composite(paper, image.convert("RGBA")).convert("RGB")


def encoded(image: Image.Image, kind: str = "WEBP", **how: Any) -> bytes:
    """An image as a file."""
    image.save(file := io.BytesIO(), kind, **how)
    return file.getvalue()


def is_chart(image: Image.Image) -> bool:
    """Whether an image is lines on white, or few colours, which a dark page may turn about."""
    counts = {shade: n for n, shade in flat(image).point(lambda v: v & 240).getcolors(4096)}
    total, white = image.width * image.height, counts.get((240, 240, 240), 0)
    few = sum(sorted(counts.values())[-6:])
    return white > MOSTLY * total or (white > 0.6 * total and few > 0.94 * total)


def dark(image: Image.Image) -> Image.Image:
    """The layer, in whose colours CSS's ``invert(0.93) hue-rotate(180deg)`` shows a chart."""
    shown = np.asarray(flat(image))
    inverted = 0.93 * 255 - 0.86 * shown
    turned = (2 * (inverted @ LUMINANCE)[..., None] - inverted).clip(0, 255)
    inside = pictures(shown)
    hole = ndimage.binary_erosion(inside)  # a little smaller: edges are blended when scaled
    turned[inside | (shown.min(axis=2) >= PAPER)] = 18
    return Image.fromarray(np.dstack([turned * ~hole[..., None], 255 * ~hole]).astype(np.uint8))


def encoded_layer(layer: Image.Image) -> bytes:
    """The layer as WebP, in the shorter of two ways."""
    return min(encoded(layer, lossless=True), encoded(layer, quality=60), key=len)


def pictures(shown: UInt8[np.ndarray, "y x 3"]) -> Bool[np.ndarray, "y x"]:
    """Where a figure on white has photographs and maps: rectangles of many shades.

    Grey images whose ground is the paper itself, as of digits, are ink, and with them all grey
    ones of the figure.
    """
    darkest = shown.min(axis=2)
    printed = (darkest < PAPER).astype(np.uint8)
    pieces, _ = ndimage.label(ndimage.grey_opening(printed, size=THIN))
    coloured, grey = [], []
    for number, box in enumerate(ndimage.find_objects(pieces), 1):
        piece = pieces[box] == number
        shades = shown[box][piece]
        counts = np.bincount(shades // 16 @ np.array([256, 16, 1]))
        inner = shown[box][ndimage.binary_erosion(piece, iterations=2)]  # its edges are blended
        alike = (abs(inner - np.median(inner, axis=0)) < 12).all(axis=1).mean() > 0.85
        alike &= max(piece.shape) > 1.2 * min(piece.shape)  # as no picture is
        if (alike or counts.max() > 0.78 * len(shades)) and counts.argmax() & 0xCCC:
            continue  # a bar, or a ground that is not black
        if (np.ptp(shades, axis=1) > 50).mean() < 0.2:
            grey.append((piece.mean() > 0.8, box))
            continue
        few = np.sort(np.bincount(shades // 32 @ np.array([64, 8, 1])))[-6:].sum()
        bars = few > 0.94 * len(shades) or max(piece.shape) > 3 * min(piece.shape)
        coloured.append((piece.mean() > (0.96 if bars else 0.8), box))
    inside = np.zeros(printed.shape, bool)
    whole = all(whole for whole, _ in grey) or (shown.max(axis=2) < 32).mean() > 0.3  # on black
    for picture, box in coloured + [(whole, box) for _, box in grey]:
        inside[box] |= picture
    # At its edges, blended with white.
    return inside & ((darkest < 200) | ndimage.minimum_filter(inside, 5))
