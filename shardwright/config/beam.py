"""`beam`: what Beam is told, for all components and for single ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from shardwright.errors import ConfigError


@dataclass(frozen=True)
class BeamConfig:
    """Options for Beam, for all components and for single ones by their name."""

    PATH: ClassVar[str] = "beam"

    options: tuple[str, ...] = ()
    per_component: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        places = {"beam.options": self.options}
        places |= {f"beam.per_component.{name}": options for name, options in self.per_component.items()}
        for path, options in places.items():
            for option in options:
                if not option.startswith("--"):
                    raise ConfigError(path, f"{option!r} is no option of Beam", "Write --name=value.")
