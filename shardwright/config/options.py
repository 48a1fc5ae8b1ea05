"""Options of the configuration, each declared once: a field with its type, default, limits, unit and one sentence.

    @dataclass(frozen=True)
    class Shapes(Section):
        PATH: ClassVar[str] = "shapes"

        quality: int = option(90, least=1, most=100, help="JPEG quality.")
        max_bytes: int = option(1 << 30, least=1, form=BYTES, help="A file of more bytes is rejected.")

From the field follow how YAML is read (`parsing`), which values are refused (`Section`), the docstring of the section,
the JSON Schema (`json_schema`) and the reference page. Conditions on several options are in a section's own `check`.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field
from typing import Any, ClassVar

from shardwright.errors import ConfigError

_OPTION = "option"
# The options of each section: to read them from the fields again takes half the time of a check.
_OPTIONS: dict[type[Any], Mapping[str, Option]] = {}
# What else the metadata of a field may say: `canonical` has the effect on recipes, and `schema` is the JSON Schema of a
# value with forms that its type does not show. A field with `key=False` is no key of the file.
_METADATA = frozenset(("always", "key", "ordered", "place", "published", "schema", "written_as"))


# Refuses a text by its YAML path and value.
Form = Callable[[str, str], None]


@dataclass(frozen=True)
class Pattern:
    """A regular expression that a text must match as a whole.

    Attributes:
        regex: the expression.
        fix: what to write instead.
        problem: what is wrong with other texts.
    """

    regex: re.Pattern[str]
    fix: str
    problem: str = "is not well formed"

    def __call__(self, path: str, text: str) -> None:
        """Refuses a text of another form.

        Raises:
            ConfigError: it does not match.
        """
        if not self.regex.fullmatch(text):
            raise ConfigError(path, f"{text!r} {self.problem}", self.fix)


@dataclass(frozen=True)
class Unit:
    """The units that a whole number may have when it is written as a text.

    Attributes:
        factors: unit in upper case -> its factor.
        regex: these texts, in the syntax of JSON Schema.
        example: a number with a unit.
    """

    factors: Mapping[str, int]
    regex: str
    example: str = ""


NO_UNIT = Unit({"": 1}, r"^\s*[0-9]+(\.0+)?\s*$")
BYTES = Unit(
    {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30},
    r"^\s*[0-9]+(\.0+|\.[0-9]+(?=\s*[KMGkmg]))?\s*(([KMGkmg][Ii]?)?[Bb])?\s*$",
    "150MB",
)
PIXELS = Unit(
    {"": 1, "P": 1, "KP": 10**3, "MP": 10**6, "GP": 10**9},
    r"^\s*[0-9]+(\.0+|\.[0-9]+(?=\s*[KMGkmg]))?\s*([KMGkmg]?[Pp])?\s*$",
    "20MP",
)


@dataclass(frozen=True)
class Option:
    """What a field says about its values, beside the type and the default. Limits of a list are those of its items.

    Attributes:
        help: one sentence for the reference page.
        choices: all values; with a range, all texts that may take the place of a number.
        least: smallest number.
        most: largest number; only together with `least`.
        form: refuses texts that are not well formed; or the units of a number.
    """

    help: str
    choices: tuple[Any, ...] = ()
    least: float | None = None
    most: float | None = None
    form: Form | Unit | None = None

    @property
    def unit(self) -> Unit:
        """The units of its numbers."""
        return self.form if isinstance(self.form, Unit) else NO_UNIT

    @property
    def has_range(self) -> bool:
        """True if its numbers have limits."""
        return self.least is not None

    def check(self, value: object, path: str) -> None:
        """Refuses a value that is not allowed.

        Args:
            value: the value; `None` is allowed, as the type has it.
            path: its YAML path, for the message.

        Raises:
            ConfigError: the value, or one in it, is not allowed.
        """
        if isinstance(value, Section):
            # One with a place of its own has been checked.
            if value.PATH is None:
                value.check(path)
        elif isinstance(value, Mapping):
            for key, inner in value.items():
                self.check(inner, f"{path}.{key}")
        elif isinstance(value, tuple):
            for number, inner in enumerate(value):
                self.check(inner, f"{path}[{number}]")
        elif self.choices and self.has_range and isinstance(value, str):
            if value not in self.choices:
                fix = f"Write a number, or {', '.join(self.choices)}."
                raise ConfigError(path, f"{value!r} is not a number", fix)
        elif self.choices and not self.has_range and value is not None:
            one_of(path, value, self.choices)
        elif isinstance(value, (int, float)) and self.least is not None:
            if self.most is None:
                at_least(path, value, self.least)
            else:
                between(path, value, self.least, self.most)
        elif callable(self.form) and isinstance(value, str):
            self.form(path, value)


def option(
    default: Any = MISSING,
    *,
    help: str = "",  # noqa: A002 -- as in argparse
    factory: Any = MISSING,
    choices: tuple[Any, ...] = (),
    least: float | None = None,
    most: float | None = None,
    form: Form | Unit | None = None,
    **metadata: Any,
) -> Any:
    """Returns the field of an option; without `default` and `factory` the option is required.

    Args:
        default: its default.
        help: `Option.help`; by default the first line of the section's docstring.
        factory: makes the default, such as a section.
        choices: `Option.choices`.
        least: `Option.least`.
        most: `Option.most`.
        form: `Option.form`.
        **metadata: what `canonical` and `json_schema` read.
    """
    if unknown := metadata.keys() - _METADATA:
        raise TypeError(f"metadata of an option: {sorted(unknown)} is unknown; known are {sorted(_METADATA)}")
    sentence = help
    if not help and isinstance(factory, type) and issubclass(factory, Section):
        sentence = (factory.__doc__ or "").partition("\n")[0]
    made = Option(sentence, choices, least, most, form)
    of_dataclass: Callable[..., Any] = field
    return of_dataclass(default=default, default_factory=factory, metadata={_OPTION: made, **metadata})


def options_of(section: type[Any]) -> Mapping[str, Option]:
    """Returns the options of a section by their names; a field that is no option has no limits."""
    if section not in _OPTIONS:
        _OPTIONS[section] = {of.name: of.metadata.get(_OPTION, Option("")) for of in dataclasses.fields(section)}
    return _OPTIONS[section]


def default_of(of: dataclasses.Field[Any]) -> Any:
    """Returns the default of a field; `MISSING` if it is required."""
    return of.default_factory() if of.default_factory is not MISSING else of.default


class Section:
    """Base of the sections: frozen dataclasses whose fields are options.

    A subclass with a `PATH`, its place in the YAML file, is checked when it is made; one that occurs at several places
    is checked by the section that it is in. The options become the `Attributes` of the docstring.
    """

    PATH: ClassVar[str | None] = None

    def __init_subclass__(cls) -> None:
        """Describes the options in the docstring."""
        fields = {name: value for name, value in vars(cls).items() if isinstance(value, dataclasses.Field)}
        lines = [f"    {name}: {of.metadata[_OPTION].help}" for name, of in fields.items()]
        cls.__doc__ = "\n".join([inspect.cleandoc(cls.__doc__ or cls.__name__), "", "Attributes:", *lines])

    def __post_init__(self) -> None:
        """Checks the values; an error names the YAML path of the value."""
        if self.PATH is not None:
            self.check(self.PATH)

    def check(self, path: str) -> None:
        """Refuses values that an option does not allow; subclasses add conditions on several options.

        Args:
            path: YAML path of the section.

        Raises:
            ConfigError: a value is not allowed.
        """
        for name, of in options_of(type(self)).items():
            of.check(getattr(self, name), f"{path}.{name}" if path else name)

    def error(self, key: str, problem: str, fix: str = "") -> ConfigError:
        """Returns the error about a key of this section, which has a place; by default the fix is to remove the key."""
        path = ".".join(filter(None, (self.PATH, key)))
        return ConfigError(path, problem, fix or f"Remove {path}.")


def one_of(path: str, value: object, allowed: tuple[Any, ...]) -> None:
    """Refuses a value that is not one of those allowed."""
    if value not in allowed:
        raise ConfigError(path, f"{value!r} is not known", f"Use one of: {', '.join(map(str, allowed))}.")


def at_least(path: str, value: float, least: float) -> None:
    """Refuses a number below `least`, and NaN."""
    if not value >= least:
        raise ConfigError(path, f"{value!r} is too small", f"Use at least {least}.")


def between(path: str, value: float, low: float, high: float) -> None:
    """Refuses a number outside `low` to `high`, and NaN."""
    if not low <= value <= high:
        raise ConfigError(path, f"{value!r} is out of range", f"Use a value from {low} to {high}.")
