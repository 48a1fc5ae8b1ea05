"""What the four kinds look like, after the mesoscale patterns of trade-wind clouds (Stevens et al. 2020, "Sugar,
gravel, fish and flowers", Q. J. R. Meteorol. Soc. 146).

Every function gives the optical thickness of the cloud, float32 (height, width), 0 in clear sky.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from shardwright.sample.fields import Canvas, Field, bumps, fractal, sample_at, smooth

Texture = Callable[[np.random.Generator, Canvas, Field], Field]


def _scatter(
    rng: np.random.Generator, canvas: Canvas, inside: Field, spacing: float, jitter: float
) -> tuple[Field, Field]:
    """Points of a turned, shaken hexagonal grid that lie where `inside` is above one half."""
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


def fish(rng: np.random.Generator, canvas: Canvas, inside: Field) -> Field:
    """Backbones in one direction with ribs that reach for the next backbone: an elongated net."""
    width, height = canvas.width / canvas.scale, canvas.height / canvas.scale
    direction = rng.uniform(-0.6, 0.6)
    along = (math.cos(direction), math.sin(direction))
    reach = math.hypot(width, height) / 2
    points: list[tuple[float, float, float, float]] = []
    offset = -reach + rng.uniform(0, 40)
    while offset < reach:
        _backbone(rng, points, (width / 2, height / 2), along, offset, reach)
        offset += rng.uniform(46, 66)
    x, y, radius, top = np.array(points, np.float32).T
    kept = sample_at(inside, canvas, x, y) > 0.5
    field = bumps(canvas, x[kept], y[kept], radius[kept], top[kept])
    field *= 1 + np.float32(0.42) * fractal(rng, canvas, 18, 0.5, gain=0.72)
    return np.float32(2.3) * smooth(field, 0.16, 1.0) + np.float32(0.3) * smooth(field, 0.0, 0.3)


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
        sway = 13 * math.sin(distance / 47 + phase) + 6 * math.sin(distance / 19 + second)
        x = center[0] + along[0] * distance - along[1] * (offset + sway)
        y = center[1] + along[1] * distance + along[0] * (offset + sway)
        body = 0.5 + 0.5 * math.sin(distance / 33 + second)
        points.append((x, y, 5.5 + 5 * body, 0.75 + 0.4 * body))
        if distance >= next_rib:
            _rib(rng, points, x, y, math.atan2(along[1], along[0]) + side * rng.uniform(0.6, 1.05))
            side = -side
            next_rib += rng.uniform(9, 19)
        distance += 3.0


def _rib(
    rng: np.random.Generator, points: list[tuple[float, float, float, float]], x: float, y: float, heading: float
) -> None:
    """Appends a curved branch that grows thinner."""
    steps = int(rng.integers(9, 19))
    curl = rng.uniform(-0.05, 0.05)
    for step in range(steps):
        left = 1 - step / steps
        x += 2.6 * math.cos(heading)
        y += 2.6 * math.sin(heading)
        heading += curl
        points.append((x, y, 2.2 + 3.4 * left, 0.5 + 0.4 * left))


def flower(rng: np.random.Generator, canvas: Canvas, inside: Field) -> Field:
    """Large bright clumps with ragged rims, well apart from each other."""
    x, y = _scatter(rng, canvas, inside, 55, 0.17)
    size = _random(rng, 15, 23, len(x))
    petals = 7
    turn = _random(rng, 0, 2 * math.pi, len(x) * petals)
    away = _random(rng, 0.35, 0.75, len(x) * petals) * np.repeat(size, petals)
    all_x = np.concatenate([x, np.repeat(x, petals) + away * np.cos(turn)])
    all_y = np.concatenate([y, np.repeat(y, petals) + away * np.sin(turn)])
    radius = np.concatenate([size, np.repeat(size, petals) * _random(rng, 0.4, 0.65, len(turn))])
    top = np.concatenate([np.full(len(x), 1.0, np.float32), _random(rng, 0.5, 0.9, len(turn))])
    field = bumps(canvas, all_x, all_y, radius, top)
    field *= 1 + np.float32(0.36) * fractal(rng, canvas, 16, 0.5, gain=0.75)
    return np.float32(3.4) * smooth(field, 0.2, 1.1) + np.float32(0.5) * smooth(field, 0.04, 0.3)


def gravel(rng: np.random.Generator, canvas: Canvas, inside: Field) -> Field:
    """Small bright grains strung along arcs."""
    x, y = _scatter(rng, canvas, inside, 9.5, 0.3)
    arcs = fractal(rng, canvas, 75, 40)
    strength = np.abs(np.sin(np.float32(math.pi * 1.3) * sample_at(arcs, canvas, x, y)))
    kept = strength + _random(rng, -0.2, 0.2, len(x)) > 0.42
    x, y, strength = x[kept], y[kept], strength[kept]
    radius = _random(rng, 3.2, 4.6, len(x)) + np.float32(1.6) * strength
    field = bumps(canvas, x, y, radius, _random(rng, 0.55, 1.05, len(x)))
    field *= 1 + np.float32(0.3) * fractal(rng, canvas, 5, 0.4, gain=0.75)
    return np.float32(2.1) * smooth(field, 0.15, 1.0)


def sugar(rng: np.random.Generator, canvas: Canvas, inside: Field) -> Field:
    """Dust: very fine, shallow, everywhere, a little thicker and thinner in the wind."""
    del inside
    grains = fractal(rng, canvas, 4.4, 2.2, gain=0.9)
    drift = fractal(rng, canvas, 60, 15, stretch=1.8)
    return np.float32(0.85) * smooth(grains + np.float32(0.45) * drift, 0.05, 2.2) + np.float32(0.07)


TEXTURES: dict[str, Texture] = {"Fish": fish, "Flower": flower, "Gravel": gravel, "Sugar": sugar}
