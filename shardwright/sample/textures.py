"""Textures of the four kinds of clouds, each as optical thickness, 0 in clear sky.

After the mesoscale patterns of trade-wind clouds in Stevens et al. 2020, "Sugar, gravel, fish and flowers", Q. J. R.
Meteorol. Soc. 146: fish are elongated nets like backbones with ribs, flowers large clumps well apart, gravel grains in
arcs, sugar dust. The wind displaces a structure of bumps, and fractal noise breaks it up, as in clouds.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import cast

import numpy as np

from shardwright.sample.fields import Canvas, Field, Wind, blur, bumps, fractal, sample_at

Texture = Callable[[np.random.Generator, Canvas, Field, Wind], Field]


def _scatter(
    rng: np.random.Generator, canvas: Canvas, inside: Field, spacing: float, jitter: float
) -> tuple[Field, Field]:
    """Returns points of a rotated hexagonal grid with jitter, where `inside` is above one half."""
    angle = rng.uniform(0, math.pi)
    width, height = canvas.width / canvas.scale, canvas.height / canvas.scale
    reach = math.ceil(math.hypot(width, height) / 2 / spacing) + 1
    rows, columns = np.mgrid[-round(reach * 1.16) : round(reach * 1.16) + 1, -reach : reach + 1].astype(np.float32)
    u = (columns + 0.5 * (rows % 2) + rng.uniform(-jitter, jitter, rows.shape)) * spacing
    v = (rows * 0.866 + rng.uniform(-jitter, jitter, rows.shape)) * spacing
    x = (width / 2 + u * math.cos(angle) - v * math.sin(angle)).astype(np.float32).ravel()
    y = (height / 2 + u * math.sin(angle) + v * math.cos(angle)).astype(np.float32).ravel()
    near = (x > -spacing) & (x < width + spacing) & (y > -spacing) & (y < height + spacing)
    x, y = x[near], y[near]
    kept = sample_at(inside, canvas, x, y) > 0.5
    return x[kept], y[kept]


def _random(rng: np.random.Generator, low: float, high: float, count: int) -> Field:
    return rng.uniform(low, high, count).astype(np.float32)


def _broken(structure: Field, noise: Field, amount: float, floor: float) -> Field:
    """Erodes a structure from its rims by noise: its soft flanks fall apart first, its heart stays whole."""
    rims = np.sqrt(structure)
    return cast(Field, np.maximum(structure + np.float32(amount) * noise * rims - np.float32(floor), 0))


def _halo(canvas: Canvas, structure: Field, noise: Field, units: float) -> Field:
    """Returns the thin, patchy cloud that thick cloud spreads around it."""
    patches = np.maximum(np.float32(0.55) + np.float32(0.5) * noise, 0)
    return cast(Field, blur(structure, units * canvas.scale) * patches)


def fish(rng: np.random.Generator, canvas: Canvas, inside: Field, wind: Wind) -> Field:
    """Backbones in one direction with ribs that reach for the next backbone: an elongated net."""
    width, height = canvas.width / canvas.scale, canvas.height / canvas.scale
    direction = rng.uniform(-0.6, 0.6)
    along = (math.cos(direction), math.sin(direction))
    reach = math.hypot(width, height) / 2
    points: list[tuple[float, float, float, float]] = []
    offset = -reach + rng.uniform(0, 40)
    while offset < reach:
        _backbone(rng, points, (width / 2, height / 2), along, offset, reach)
        offset += rng.uniform(44, 70)
    x, y, radius, top = np.array(points, np.float32).T
    kept = sample_at(inside, canvas, x, y) > 0.4
    structure = wind.carry(bumps(canvas, x[kept], y[kept], radius[kept], top[kept]))
    noise = fractal(rng, canvas, 20, 0.5, gain=0.76)
    halo = np.float32(0.42) * _halo(canvas, structure, noise, 6)
    return np.float32(2.9) * _broken(structure, noise, 0.38, 0.2) ** np.float32(1.25) + halo


def _backbone(
    rng: np.random.Generator,
    points: list[tuple[float, float, float, float]],
    center: tuple[float, float],
    along: tuple[float, float],
    offset: float,
    reach: float,
) -> None:
    """Appends (x, y, radius, height) along one backbone and its ribs."""
    phase, second = rng.uniform(0, 2 * math.pi, 2)
    distance, next_rib, side = -reach, -reach + rng.uniform(0, 16), 1.0
    while distance < reach:
        sway = 12 * math.sin(distance / 47 + phase) + 5 * math.sin(distance / 19 + second)
        x = center[0] + along[0] * distance - along[1] * (offset + sway)
        y = center[1] + along[1] * distance + along[0] * (offset + sway)
        body = 0.5 + 0.5 * math.sin(distance / 29 + second)
        points.append((x, y, 7 + 8 * body, 0.55 + 0.55 * body))
        if distance >= next_rib:
            _rib(rng, points, x, y, math.atan2(along[1], along[0]) + side * rng.uniform(0.55, 1.2))
            side = -side
            next_rib += rng.uniform(6, 15)
        distance += 3.0


def _rib(
    rng: np.random.Generator, points: list[tuple[float, float, float, float]], x: float, y: float, heading: float
) -> None:
    """Appends a curved branch that grows thinner."""
    steps = int(rng.integers(8, 19))
    curl = rng.uniform(-0.09, 0.09)
    for step in range(steps):
        left = 1 - step / steps
        x += 2.8 * math.cos(heading)
        y += 2.8 * math.sin(heading)
        heading += curl
        points.append((x, y, 3.6 + 3.6 * left, 0.38 + 0.38 * left))


def flower(rng: np.random.Generator, canvas: Canvas, inside: Field, wind: Wind) -> Field:
    """Draws large bright clumps with ragged rims, well apart from each other."""
    x, y = _scatter(rng, canvas, inside, 56, 0.2)
    size = _random(rng, 15, 25, len(x))
    petals = 9
    turn = _random(rng, 0, 2 * math.pi, len(x) * petals)
    away = _random(rng, 0.3, 0.95, len(x) * petals) * np.repeat(size, petals)
    all_x = np.concatenate([x, np.repeat(x, petals) + away * np.cos(turn)])
    all_y = np.concatenate([y, np.repeat(y, petals) + away * np.sin(turn)])
    radius = np.concatenate([size, np.repeat(size, petals) * _random(rng, 0.35, 0.7, len(turn))])
    top = np.concatenate([_random(rng, 0.9, 1.1, len(x)), _random(rng, 0.45, 0.95, len(turn))])
    structure = wind.carry(bumps(canvas, all_x, all_y, radius, top))
    noise = fractal(rng, canvas, 22, 0.5, gain=0.74)
    halo = np.float32(0.5) * _halo(canvas, structure, noise, 5)
    return np.float32(3.6) * _broken(structure, noise, 0.3, 0.2) ** np.float32(1.2) + halo


def gravel(rng: np.random.Generator, canvas: Canvas, inside: Field, wind: Wind) -> Field:
    """Draws small bright grains strung along arcs."""
    x, y = _scatter(rng, canvas, inside, 6.6, 0.45)
    arcs = fractal(rng, canvas, 64, 32)
    strength = np.abs(np.sin(np.float32(math.pi * 1.5) * sample_at(arcs, canvas, x, y)))
    kept = strength + _random(rng, -0.35, 0.2, len(x)) > 0.6
    x, y, strength = x[kept], y[kept], strength[kept]
    radius = np.float32(2.1) + _random(rng, 0, 1, len(x)) ** 3 * 4 + np.float32(1.1) * strength
    structure = wind.carry(bumps(canvas, x, y, radius, _random(rng, 0.3, 0.8, len(x)) + np.float32(0.3) * strength))
    noise = fractal(rng, canvas, 7, 0.4, gain=0.8)
    halo = np.float32(0.3) * _halo(canvas, structure, noise, 4)
    return np.float32(2.3) * _broken(structure, noise, 0.28, 0.1) ** np.float32(1.25) + halo


def sugar(rng: np.random.Generator, canvas: Canvas, inside: Field, wind: Wind) -> Field:
    """Draws dust: very fine, shallow, everywhere, a little thicker and thinner in the wind."""
    del inside
    grains = fractal(rng, canvas, 3.6, 0.4, gain=0.9)
    drift = wind.carry(fractal(rng, canvas, 50, 5, gain=0.7, stretch=2.2))
    dust = np.maximum(np.float32(0.36) * grains + np.float32(0.26) * drift + np.float32(0.16), 0)
    return np.float32(0.8) * dust ** np.float32(1.15) + np.float32(0.06)


TEXTURES: dict[str, Texture] = {"Fish": fish, "Flower": flower, "Gravel": gravel, "Sugar": sugar}
