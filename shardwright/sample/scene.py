"""The picture: a sea, perhaps a coast, haze, the clouds in their regions with light and shadow, and the camera."""

from __future__ import annotations

import io
import math
from typing import cast

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from shardwright.sample.cloud_outlines import KINDS, Mask, draw_outline, plan_regions, stream
from shardwright.sample.fields import Canvas, Field, Wind, blur, fractal, shifted, smooth
from shardwright.sample.textures import TEXTURES

JPEG_QUALITY = 90

_SEA = ((8, 20, 38), (16, 40, 62), (30, 46, 60), (12, 38, 52), (22, 36, 44))
_LAND = ((38, 50, 34), (92, 84, 62))
_GLINT = (118, 128, 134)
_CLOUD = (243, 245, 248)
_AIR = (5, 9, 16)


def _mix(below: Field, color: tuple[int, int, int], weight: Field) -> Field:
    """Lays a color over a picture (height, width, 3) with a weight 0..1 per pixel."""
    return below + weight[..., None] * (np.array(color, np.float32) - below)


def _surface(rng: np.random.Generator, canvas: Canvas) -> Field:
    """Draws sea and coast, float32 (height, width, 3) in 0..255."""
    x, y = canvas.grid()
    width, height = canvas.width / canvas.scale, canvas.height / canvas.scale
    turn = rng.uniform(0, 2 * math.pi)
    slope = ((x - width / 2) * math.cos(turn) + (y - height / 2) * math.sin(turn)) / math.hypot(width, height)
    swell = fractal(rng, canvas, 260, 30)
    first, second = rng.permutation(len(_SEA))[:2]
    surface = np.broadcast_to(np.array(_SEA[first], np.float32), (*canvas.shape, 3))
    surface = _mix(surface, _SEA[second], np.clip(0.5 + slope + 0.12 * swell, 0, 1).astype(np.float32))
    if rng.random() < 0.55:
        glint_x, glint_y = rng.uniform(-0.1, 1.1) * width, rng.uniform(-0.2, 1.2) * height
        lean = rng.uniform(-0.5, 0.5)
        across = (x - glint_x + lean * (y - glint_y)) / rng.uniform(90, 160)
        down = (y - glint_y) / rng.uniform(260, 420)
        shine = np.exp(-(across**2 + down**2)) * (1 + 0.1 * swell) * rng.uniform(0.25, 0.6)
        surface = _mix(surface, _GLINT, np.clip(shine, 0, 0.6).astype(np.float32))
    if rng.random() < 0.22:
        relief = fractal(rng, canvas, 120, 0.8, gain=0.55)
        turn = rng.uniform(0, 2 * math.pi)
        slope = ((x - width / 2) * math.cos(turn) + (y - height / 2) * math.sin(turn)) / (width / 2)
        coast = (slope + 0.13 * relief - rng.uniform(0.6, 0.85)).astype(np.float32)
        plain = np.broadcast_to(np.array(_LAND[0], np.float32), surface.shape)
        ground = _mix(plain, _LAND[1], smooth(relief, -1.2, 1.8))
        land = smooth(coast, -0.012 / canvas.scale, 0.012 / canvas.scale)
        surface = _mix(surface, (28, 70, 88), np.float32(0.35) * smooth(coast, -0.08, 0.0))
        surface = surface + land[..., None] * (ground - surface)
    return surface


def _clouds(rng: np.random.Generator, canvas: Canvas, masks: list[Mask]) -> Field:
    """Returns the optical thickness of all clouds; clouds of overlapping regions add up."""
    veil = fractal(rng, canvas, 170, 1.5, gain=0.58, stretch=rng.uniform(1.0, 2.6))
    thickness: Field = np.float32(rng.uniform(0.03, 0.1)) * np.clip(veil + np.float32(0.4), 0, 3)
    scraps = fractal(rng, canvas, 44, 0.5, gain=0.76)
    thickness += np.float32(0.55) * np.maximum(scraps - np.float32(rng.uniform(1.9, 2.8)), 0)
    ragged = np.float32(0.15) * scraps
    for kind, mask in zip(KINDS, masks, strict=True):
        if mask.any():
            # The fade is half inside and half outside the outline, so the mask is neither too wide nor too tight.
            inside = blur(mask.astype(np.float32), 10 * canvas.scale)
            wind = Wind(rng, canvas, 4.0)
            thickness += TEXTURES[kind](rng, canvas, inside, wind) * smooth(inside + ragged, 0.1, 0.8)
    return thickness


def _light(rng: np.random.Generator, canvas: Canvas, surface: Field, thickness: Field) -> Field:
    """Lays the clouds over the surface, lit from one side and throwing short shadows."""
    turn = rng.uniform(0, 2 * math.pi)

    def toward_sun(units: float) -> tuple[int, int]:
        return round(units * canvas.scale * math.cos(turn)), round(units * canvas.scale * math.sin(turn))

    cover: Field = np.float32(1) - np.exp(-thickness)
    shadow = shifted(cover, *toward_sun(-3.0))
    surface = surface * (1 - np.float32(0.25) * shadow)[..., None]
    height = np.sqrt(thickness)
    relief = height - shifted(height, *toward_sun(2.2))
    # Thick cloud keeps getting brighter where its cover is complete already.
    brightness = 0.78 + 0.17 * smooth(thickness, 0.4, 4.5) + 0.1 * np.clip(relief, -0.8, 0.8)
    lit = brightness[..., None] * np.array(_CLOUD, np.float32)
    return cast(Field, surface + cover[..., None] * (lit - surface))


def draw_masks(seed: int, index: int, height: int, width: int) -> list[Mask]:
    """Draws the masks of one image, uint8 (height, width) 0/1, one for each of `KINDS`; empty if a kind is absent."""
    masks = [np.zeros((height, width), np.uint8) for _ in KINDS]
    for region in plan_regions(seed, index, height, width):
        masks[region.kind] = draw_outline(region.outline, height, width)
    return masks


def draw_picture(seed: int, index: int, masks: list[Mask]) -> NDArray[np.uint8]:
    """Draws the picture that belongs to the masks.

    Args:
        seed: of the data set.
        index: of the image, from 0.
        masks: uint8 (height, width) 0/1, one for each of `KINDS`.

    Returns:
        uint8 (height, width, 3), red, green, blue.
    """
    rng = stream(seed, index, 2)
    canvas = Canvas(*masks[0].shape)
    surface = _surface(rng, canvas)
    thickness = _clouds(rng, canvas, masks)
    picture = _light(rng, canvas, surface, thickness) * np.float32(0.97) + np.array(_AIR, np.float32)
    noise = rng.standard_normal(canvas.shape, dtype=np.float32)
    picture += (noise * np.float32(1.8))[..., None]
    levels: NDArray[np.uint8] = np.clip(picture + np.float32(0.5), 0, 255).astype(np.uint8)
    return levels


def encode_jpeg(picture: NDArray[np.uint8]) -> bytes:
    """Encodes a picture as JPEG of `JPEG_QUALITY`, without metadata."""
    target = io.BytesIO()
    Image.fromarray(picture).save(target, "JPEG", quality=JPEG_QUALITY)
    return target.getvalue()
