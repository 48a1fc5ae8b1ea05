"""Sections as recipes: what is written, under which name, and that reading gives the same section."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

import pytest

from shardwright.config.canonical import NOWHERE, read_section, recipe_options
from shardwright.errors import ConfigError


@dataclass(frozen=True)
class Inner:
    PATH: ClassVar[str] = "outer.inner"

    rate: float = 0.5
    steps: int = field(default=3, metadata={"always": True})


@dataclass(frozen=True)
class Outer:
    PATH: ClassVar[str] = "outer"

    folder: str = field(metadata={"place": True})
    size: tuple[int, int] | None = None
    order: Mapping[str, int] | None = field(default=None, metadata={"ordered": True})
    words: Mapping[str, Inner] = field(default_factory=dict)
    preset: str = field(default="plain", metadata={"written_as": "features.preset"})
    inner: Inner = field(default_factory=Inner)
    hosts: int = field(default=1, metadata={"place": True})


def test_only_what_differs_from_its_default_is_written():
    assert recipe_options(Outer("/data", hosts=8)) == {}
    assert recipe_options(Inner()) == {"steps": 3}
    assert recipe_options(Outer("/data", inner=Inner(rate=1))) == {"inner": {"rate": 1, "steps": 3}}


def test_the_order_of_pairs_and_other_names():
    section = Outer("/data", (2, 3), {"b": 1, "a": 2}, {"x": Inner()}, "other")
    assert recipe_options(section) == {
        "size": [2, 3],
        "order": [["b", 1], ["a", 2]],
        "words": {"x": {"steps": 3}},
        "features": {"preset": "other"},
    }


def test_a_section_is_read_as_it_was_written_but_for_its_places():
    section = Outer("/data", (2, 3), {"b": 1, "a": 2}, {"x": Inner(0.1)}, "other", Inner(steps=4), hosts=8)
    read = read_section(Outer, recipe_options(section), "outer")
    assert read == Outer(NOWHERE, (2, 3), {"b": 1, "a": 2}, {"x": Inner(0.1)}, "other", Inner(steps=4))
    assert list(read.order) == ["b", "a"]
    assert read_section(Outer, {}, "outer") == Outer(NOWHERE)


@pytest.mark.parametrize("wrong", [{"folder": "/data"}, {"sizes": 3}, {"preset": 3}, {"inner": {"rat": 1}}])
def test_other_options_are_refused(wrong):
    with pytest.raises(ConfigError):
        read_section(Outer, wrong, "outer")
