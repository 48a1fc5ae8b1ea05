"""An option is declared once: its checks, units, docstring and help follow from the field."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import pytest

from shardwright.config.options import BYTES, PIXELS, Pattern, Section, option, options_of
from shardwright.config.parse_values import option_at, parse_section
from shardwright.errors import ConfigError


@dataclass(frozen=True)
class Disk(Section):
    """A disk, which occurs at several places."""

    size: int = option(least=1, form=BYTES, help="Bytes.")
    kind: str = option("ssd", choices=("ssd", "hdd"), help="Kind of the disk.")


@dataclass(frozen=True)
class Machine(Section):
    """A machine.

    It has disks.
    """

    PATH: ClassVar[str] = "machine"

    name: str = option(form=Pattern(re.compile("[a-z]+"), "Use a-z."), help="Its name.")
    share: float | str = option("all", choices=("all",), least=0, most=1, help="Share of its time.")
    pixels: int | None = option(None, least=1, form=PIXELS, help="Pixels of its screen.")
    boot: Disk = option(factory=lambda: Disk(1), help="The first disk.")
    disks: tuple[Disk, ...] = option((), help="More disks.")
    named: Mapping[str, Disk] = option(factory=dict, help="Name -> disk.")
    flags: tuple[str, ...] = option((), choices=("a", "b"), help="Flags.")

    def check(self, path: str) -> None:
        super().check(path)
        if self.disks and self.named:
            raise ConfigError(f"{path}.named", "disks are given, too", "Give one of them.")


def read(**options):
    return parse_section(Machine, {"name": "m", **options}, "machine")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"name": "M"}, "machine.name: 'M' is not well formed. Use a-z."),
        ({"share": 2}, "machine.share: 2.0 is out of range. Use a value from 0 to 1."),
        ({"share": "none"}, "machine.share: 'none' is not a number. Write a number, or all."),
        ({"pixels": "0MP"}, "machine.pixels: 0 is too small. Use at least 1."),
        ({"pixels": "20MB"}, "machine.pixels: '20MB' is not a whole number. Write a number such as 16 or 20MP."),
        ({"boot": {"size": 0}}, "machine.boot.size: 0 is too small. Use at least 1."),
        ({"boot": {"size": 1, "kind": "tape"}}, "machine.boot.kind: 'tape' is not known. Use one of: ssd, hdd."),
        ({"disks": [{"size": 1}, {"size": 0}]}, "machine.disks[1].size: 0 is too small. Use at least 1."),
        ({"named": {"x": {"size": 0}}}, "machine.named.x.size: 0 is too small. Use at least 1."),
        ({"flags": ["a", "c"]}, "machine.flags[1]: 'c' is not known. Use one of: a, b."),
        ({"disks": [{"size": 1}], "named": {"x": {"size": 1}}}, "machine.named: disks are given, too. Give one of"),
        ({"boot": {}}, "machine.boot.size: missing. Add it."),
    ],
)
def test_what_a_field_does_not_allow_is_refused_at_its_place(options, message):
    with pytest.raises(ConfigError) as caught:
        read(**options)
    assert str(caught.value).startswith(message)


def test_what_it_allows_is_read_with_its_unit():
    made = read(share="50%", pixels="1.5MP", boot={"size": "2KiB"}, disks=[{"size": "1 gb", "kind": "hdd"}], flags="b")
    assert made == Machine("m", 0.5, 1_500_000, Disk(2048), (Disk(10**9, "hdd"),), flags=("b",))
    assert read() == Machine("m")


def test_a_section_made_in_python_is_checked_and_described():
    with pytest.raises(ConfigError, match=r"machine\.boot\.kind: 'x' is not known"):
        Machine("m", boot=Disk(1, "x"))
    text = Machine.__doc__
    assert text.startswith("A machine.\n\nIt has disks.\n\nAttributes:\n    name: Its name.\n    share: Share")
    assert options_of(Machine)["boot"].help == "The first disk."


def test_an_option_is_found_by_its_path():
    assert option_at(Machine, "boot.size").unit is BYTES
    assert option_at(Machine, "boot.nothing") is option_at(Machine, "nothing") is None


def test_a_section_as_default_describes_itself_and_a_slip_in_a_declaration_is_noticed():
    class Holder(Section):
        machine: Machine = option(factory=Machine)

    assert Holder.__doc__.endswith("machine: A machine.")
    with pytest.raises(TypeError, match="'plcae'"):
        option(1, plcae=True, help="Its place.")
