"""Images as they should look: upright and opaque."""

from PIL import Image, ImageOps


def as_shown(image: Image.Image) -> Image.Image:
    """Turns an image as its EXIF tag says, and lays what is transparent on white.

    Returns:
        The image, as it is where neither is needed; mode RGB where something was transparent.
    """
    image = _upright(image)
    if not image.has_transparency_data or image.mode[0] in "IF":  # more bits than RGBA has
        return image
    image = image.convert("RGBA")
    return Image.alpha_composite(Image.new("RGBA", image.size, "white"), image).convert("RGB")


def _upright(image: Image.Image) -> Image.Image:
    try:
        return ImageOps.exif_transpose(image)
    except Exception:  # a broken tag says nothing of how the image should stand
        return image
