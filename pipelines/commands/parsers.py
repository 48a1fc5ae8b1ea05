"""The parsers of the commands, made of the catalog: help in groups, and errors of one line with a suggestion."""

from __future__ import annotations

import argparse
import difflib
import functools
import textwrap
from collections.abc import Iterable, Sequence
from itertools import takewhile
from typing import Any, NoReturn

from shardwright.errors import UsageError
from shardwright.pipelines.commands.catalog import ENTRIES, GROUPS
from shardwright.pipelines.commands.documentation import address
from shardwright.pipelines.commands.entry import Entry, Option, flag
from shardwright.text.escaping import escape
from shardwright.untrusted.json_text import is_text
from shardwright.version import __version__

_WIDTH = 100
# From this likeness on, a name is suggested.
_CLOSE = 0.7
_QUIET = flag("--quiet", "print errors and the result only", "-q")


class Parser(argparse.ArgumentParser):
    """A parser whose errors take one line, also if arguments contain line breaks.

    Attributes:
        actions: its options and arguments, in the order in which they were added.
        below: the commands below it, by name.
        summary: of a command, for lists.
    """

    def __init__(self, **options: Any) -> None:
        self.actions: list[argparse.Action] = []
        self.below: dict[str, Parser] = {}
        self.summary = ""
        super().__init__(allow_abbrev=False, formatter_class=argparse.RawDescriptionHelpFormatter, **options)

    @property
    def options(self) -> list[str]:
        """The names of all options."""
        return [name for action in self.actions for name in action.option_strings]

    def add_argument(self, *names: str, **settings: Any) -> argparse.Action:
        """Adds an option or an argument."""
        self.actions.append(super().add_argument(*names, **settings))
        return self.actions[-1]

    def add_entry(self, entry: Entry) -> None:
        """Adds what a command takes; every command can be quiet."""
        for option in (*entry.options, _QUIET):
            if isinstance(option, Option):
                self.add_argument(*option.names, **option.settings)
                continue
            instead = self.add_mutually_exclusive_group()
            self.actions += [instead.add_argument(*alternative.names, **alternative.settings) for alternative in option]
        self.set_defaults(parser=self)

    def error(self, message: str) -> NoReturn:
        """Ends the program with exit code 2."""
        super().error(escape(message))

    def format_help(self) -> str:
        """Returns the help; of the program itself, with its commands in groups."""
        if not self.below or self.summary:
            return super().format_help()
        lines = [self.format_usage().rstrip(), "", *textwrap.wrap(self.description or "", _WIDTH)]
        width = max(map(len, self.below))
        for title, entries in GROUPS.items():
            lines += ["", f"{title}:"]
            lines += [f"  {name:<{width}}  {entries[name].summary}" for name in entries if name in self.below]
        lines += [
            "",
            "options:",
            "  -h, --help     show this help; `shardwright COMMAND --help` shows that of a command",
        ]
        lines += ["  --version      show the version", "", "exit codes: 0 done; 1 a check failed; 2 the call is wrong"]
        return "\n".join([*lines, "documentation: shardwright docs", ""])

    def unknown_options(self, arguments: Sequence[str]) -> NoReturn:
        """Ends the program because of arguments that no option takes; suggests what may be meant."""
        first = next((argument for argument in arguments if argument.startswith("-")), arguments[0])
        suggestion = _suggest(first.partition("=")[0], self.options) if first.startswith("-") else ""
        self.error(f"unknown argument {first!r}.{suggestion}")


@functools.cache
def build_parser() -> Parser:
    """Returns the parser of the program, with all commands.

    The name of the command that is called becomes the option `invoked`, and its code the option `call`.
    """
    program = Parser(
        prog="shardwright",
        description="Turns image folders and segmentation CSVs into sharded, checked, reproducible TFRecord datasets, "
        "and trains on them.",
    )
    program.add_argument("--version", action="version", version=f"shardwright {__version__}")
    groups = {"": program.add_subparsers(title="commands", required=True, metavar="COMMAND", dest="invoked")}
    parsers = {"": program}
    for name, entry in ENTRIES.items():
        above, _, word = name.rpartition(" ")
        summary = f"{entry.summary[0].upper()}{entry.summary[1:]}. {entry.description}"
        parser: Parser = groups[above].add_parser(
            word,
            help=entry.summary,
            description="\n".join(textwrap.wrap(summary, _WIDTH)),
            epilog=f"example:\n  shardwright {entry.example}\n\ndocumentation: {address(entry.page)}",
        )
        parser.summary = entry.summary
        parsers[name] = parsers[above].below[word] = parser
        if entry.options:
            parser.add_entry(entry)
            parser.set_defaults(call=entry.call or f"{name.replace('-', '_')}:run")
        else:
            groups[name] = parser.add_subparsers(
                title="commands", required=True, metavar="COMMAND", dest=argparse.SUPPRESS
            )
    return program


def parse(arguments: Sequence[str], options: argparse.Namespace) -> None:
    """Parses a command line into `options`; ends the program with exit code 2 if it is wrong."""
    program = build_parser()
    if not arguments:
        program.print_help()
        program.exit(2)
    called = _called(program, arguments)
    for word in arguments:
        if not is_text(word):
            called.error(f"argument {word!r} is not UTF-8. Rename the file or folder.")
    for word in takewhile("--".__ne__, arguments):
        # A missing argument, which argparse reports first, is often a misspelled one.
        if word.startswith("--") and word.partition("=")[0] not in called.options:
            called.unknown_options([word])
    _, rest = program.parse_known_args(arguments, options)
    if rest:
        called.unknown_options(rest)


def _called(parser: Parser, arguments: Sequence[str]) -> Parser:
    """Returns the parser of the command that is called; ends the program if there is none of that name."""
    for position, word in enumerate(arguments):
        if word.startswith("-") or not parser.below:
            break
        if word not in parser.below:
            suggestion = _suggest(word, parser.below)
            parser.error(f"unknown command {word!r}.{suggestion} `{parser.prog} --help` lists all.")
        return _called(parser.below[word], arguments[position + 1 :])
    return parser


def _suggest(text: str, known: Iterable[str]) -> str:
    """Returns a sentence that suggests the closest of some names, or an empty text."""
    close = difflib.get_close_matches(text, list(known), n=1, cutoff=_CLOSE)
    return f" Did you mean {close[0]}?" if close else ""


def refuse_unused(options: argparse.Namespace, mode: str, *names: str) -> None:
    """Refuses options that a call gives although it does not use them: nobody would notice that they do not count.

    Args:
        options: those of the call.
        mode: the option, or the thing, for which they mean nothing.
        names: the names of such options.

    Raises:
        UsageError: names the first that is given.
    """
    for action in options.parser.actions:
        used = set(names).isdisjoint(action.option_strings)
        if not used and getattr(options, action.dest) != action.default:
            raise UsageError(f"{action.option_strings[0]}: {mode} does not use it. Leave it out.")
