"""Encodes Pillow's pictures in memory."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from PIL import Image


def encode_picture(picture: Image.Image, form: str, **options: bool | int) -> bytes:
    """Returns a picture as an image file.

    Args:
        picture: the picture.
        form: Pillow's name of the format: `jpeg`, `png`, `webp`.
        options: of that format, such as `quality`.
    """
    file = io.BytesIO()
    picture.save(file, form, **options)
    return file.getvalue()
