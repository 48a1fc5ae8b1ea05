"""The parsers of the commands: help in groups, and errors of one line that suggest what may be meant."""

from __future__ import annotations

import argparse
import difflib
import textwrap
from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Any, NoReturn

from shardwright.pipelines.commands.argparse_compat import actions_of
from shardwright.pipelines.commands.catalog import ENTRIES, GROUPS
from shardwright.pipelines.commands.documentation import address
from shardwright.text.escaping import escape
from shardwright.untrusted.json_text import is_text

_WIDTH = 100
# From this likeness on, a name is suggested.
_CLOSE = 0.7


class Parser(argparse.ArgumentParser):
    """A parser whose errors take one line, also if arguments contain line breaks.

    Attributes:
        below: the commands below it, if there are any.
        summary: of a command, for lists.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(allow_abbrev=False, formatter_class=argparse.RawDescriptionHelpFormatter, **options)
        self.below: Commands | None = None
        self.summary = ""

    @property
    def options(self) -> list[str]:
        """The names of all options."""
        return [name for action in self.actions for name in action.option_strings]

    @property
    def actions(self) -> list[argparse.Action]:
        """The options and arguments."""
        return actions_of(self)

    def error(self, message: str) -> NoReturn:
        """Ends the program with exit code 2."""
        super().error(escape(message))

    def format_help(self) -> str:
        """Returns the help; of the program itself, with its commands in groups."""
        if self.below is None or not self.below.grouped:
            return super().format_help()
        lines = [self.format_usage().rstrip(), "", *textwrap.wrap(self.description or "", _WIDTH)]
        width = max(map(len, self.below.parsers))
        for title, entries in GROUPS.items():
            lines += ["", f"{title}:"]
            lines += [f"  {name:<{width}}  {entries[name].summary}" for name in entries if name in self.below.parsers]
        lines += [
            "",
            "options:",
            "  -h, --help     show this help; `shardwright COMMAND --help` shows that of a command",
        ]
        lines += ["  --version      show the version", "", "exit codes: 0 done; 1 a check failed; 2 the call is wrong"]
        return "\n".join([*lines, "documentation: shardwright docs", ""])

    def unknown_options(self, arguments: Sequence[str]) -> NoReturn:
        """Ends the program because of arguments that no option takes; suggests what may be meant."""
        first = next((one for one in arguments if one.startswith("-")), arguments[0])
        suggestion = suggest(first.partition("=")[0], self.options) if first.startswith("-") else ""
        self.error(f"unknown argument {first!r}.{suggestion}")


class Commands:
    """The commands of a parser.

    The name of the command that is called becomes the option `invoked`.

    Args:
        parser: the program, or a command with further commands.
        above: the name of that command, empty for the program.

    Attributes:
        parsers: name -> its parser.
        grouped: whether the help lists them in groups.
    """

    def __init__(self, parser: Parser, above: str = "") -> None:
        self._above = above
        self.grouped = not above
        dest = argparse.SUPPRESS if above else "invoked"
        self._subparsers = parser.add_subparsers(title="commands", required=True, metavar="COMMAND", dest=dest)
        self.parsers: dict[str, Parser] = {}
        parser.below = self

    def add(self, name: str) -> Parser:
        """Adds a command, which must be in the catalog; every command can be quiet."""
        parser = self._parser(name)
        parser.add_argument("-q", "--quiet", action="store_true", help="print errors and the result only")
        parser.set_defaults(parser=parser)
        return parser

    def add_group(self, name: str) -> Commands:
        """Adds a command that only has further commands."""
        return Commands(self._parser(name), name)

    def _parser(self, name: str) -> Parser:
        entry = ENTRIES[f"{self._above} {name}".strip()]
        example = f"example:\n  shardwright {entry.example}\n\ndocumentation: {address(entry.page)}"
        description = "\n".join(
            textwrap.wrap(f"{entry.summary[0].upper()}{entry.summary[1:]}. {entry.description}", _WIDTH)
        )
        parser: Parser = self._subparsers.add_parser(name, help=entry.summary, description=description, epilog=example)
        parser.summary = entry.summary
        self.parsers[name] = parser
        return parser


def refuse_unused(options: argparse.Namespace, mode: str, *names: str) -> None:
    """Refuses options that a call gives although it does not use them: nobody would notice that they do not count.

    Args:
        options: those of the call.
        mode: the option, or the thing, for which they mean nothing.
        names: the names of such options.

    Raises:
        UsageError: names the first that is given.
    """
    from shardwright.errors import UsageError

    for action in options.parser.actions:
        used = set(names).isdisjoint(action.option_strings)
        if not used and getattr(options, action.dest) != action.default:
            raise UsageError(f"{action.option_strings[0]}: {mode} does not use it. Leave it out.")


def suggest(text: str, known: Sequence[str] | Mapping[str, object]) -> str:
    """Returns a sentence that suggests the closest of some names, or an empty text."""
    close = difflib.get_close_matches(text, list(known), n=1, cutoff=_CLOSE)
    return f" Did you mean {close[0]}?" if close else ""


def parse(parser: Parser, arguments: Sequence[str], options: argparse.Namespace) -> None:
    """Parses a command line into `options`; ends the program with exit code 2 if it is wrong."""
    called = _called(parser, arguments)
    for word in arguments:
        if not is_text(word):
            called.error(f"argument {word!r} is not UTF-8. Rename the file or folder.")
    for word in takewhile("--".__ne__, arguments):
        # A missing argument, which argparse reports first, is often a misspelled one.
        if word.startswith("--") and word.partition("=")[0] not in called.options:
            called.unknown_options([word])
    _, rest = parser.parse_known_args(arguments, options)
    if rest:
        called.unknown_options(rest)


def _called(parser: Parser, arguments: Sequence[str]) -> Parser:
    """Returns the parser of the command that is called; ends the program if there is none of that name."""
    for position, word in enumerate(arguments):
        if word.startswith("-") or parser.below is None:
            break
        found = parser.below.parsers.get(word)
        if found is None:
            names = parser.below.parsers
            parser.error(f"unknown command {word!r}.{suggest(word, names)} `{parser.prog} --help` lists all.")
        return _called(found, arguments[position + 1 :])
    return parser
