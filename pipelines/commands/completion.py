"""`shardwright completion`: scripts for bash, zsh and fish, generated from the parsers of the commands."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

from shardwright.pipelines.commands.parsers import Commands, Parser

SHELLS = ("bash", "zsh", "fish")


class _Option(NamedTuple):
    """An option.

    Attributes:
        names: `--out`, `-q`.
        values: known values.
        takes_value: whether a value follows.
        help: for people.
    """

    names: tuple[str, ...]
    values: tuple[str, ...]
    takes_value: bool
    help: str


class _Command(NamedTuple):
    """A command.

    Attributes:
        words: `schema render`; empty for the program.
        help: for people.
        options: its options.
        below: names and summaries of further commands.
    """

    words: str
    help: str
    options: tuple[_Option, ...]
    below: tuple[tuple[str, str], ...]


def add(commands: Commands, program: Parser) -> None:
    """Adds the command to the parser of `shardwright`.

    Args:
        commands: the commands.
        program: the parser of the program.
    """
    completion = commands.add("completion")
    completion.add_argument("shell", choices=SHELLS, help="the shell that you use")
    completion.set_defaults(command=partial(_completion, program))


def _completion(program: Parser, options: argparse.Namespace) -> int:
    print(completion_script(program, options.shell), end="")
    return 0


def completion_script(program: Parser, shell: str) -> str:
    """Returns the script for a shell."""
    described = list(_commands(program, "", ""))
    write = {"bash": _bash, "zsh": _zsh, "fish": _fish}[shell]
    # zsh wants the name of the command in the first line.
    first = "#compdef shardwright\n" if shell == "zsh" else ""
    made = f"# Completion of shardwright for {shell}, made by `shardwright completion {shell}`.\n"
    return first + made + write(described)


def _commands(parser: Parser, words: str, summary: str) -> Iterator[_Command]:
    below = parser.below.parsers if parser.below is not None else {}
    summaries = {name: found.summary for name, found in below.items()}
    yield _Command(words, summary, tuple(_options(parser)), tuple(summaries.items()))
    for name, found in below.items():
        yield from _commands(found, f"{words} {name}".strip(), summaries[name])


def _options(parser: Parser) -> Iterator[_Option]:
    for action in parser.actions:
        if action.option_strings:
            values = tuple(map(str, action.choices or ()))
            text = "" if action.help in (None, argparse.SUPPRESS) else str(action.help)
            yield _Option(tuple(action.option_strings), values, action.nargs != 0, text)


def _bash(commands: list[_Command]) -> str:
    """Returns a function with a case for each command, and one for each option with known values."""
    cases, values = [], []
    for command in commands:
        words = [name for option in command.options for name in option.names]
        cases.append(f'    "{command.words}") words="{" ".join([*words, *(name for name, _ in command.below)])}" ;;')
        for option in command.options:
            if option.values:
                patterns = "|".join(f'"{command.words} {name}"' for name in option.names)
                values.append(f'    {patterns}) words="{" ".join(option.values)}" ;;')
    below = " ".join(
        f'"{command.words} {name}"'.replace('" ', '"') for command in commands for name, _ in command.below
    )
    groups = " ".join(command.words or "program" for command in commands if command.below)
    return _BASH.format(below=below, groups=groups, cases="\n".join(cases), values="\n".join(values))


_BASH = """_shardwright() {{
  local word="${{COMP_WORDS[COMP_CWORD]}}" before="${{COMP_WORDS[COMP_CWORD-1]}}" command="" words="" i known
  local -a below=({below})
  for ((i = 1; i < COMP_CWORD; i++)); do
    for known in "${{below[@]}}"; do
      [[ "$known" == "${{command:+$command }}${{COMP_WORDS[i]}}" ]] && command="$known" && break
    done
  done
  case "$command $before" in
{values}
  esac
  if [[ -z "$words" && ( "$word" == -* || " {groups} " == *" ${{command:-program}} "* ) ]]; then
    case "$command" in
{cases}
    esac
  fi
  COMPREPLY=()
  while IFS= read -r known; do
    COMPREPLY+=("$known")
  done < <(if [[ -n "$words" ]]; then compgen -W "$words" -- "$word"; else compgen -f -- "$word"; fi)
}}
complete -o filenames -F _shardwright shardwright
"""


def _zsh(commands: list[_Command]) -> str:
    """Returns a function for each command; `_arguments` knows the rest."""
    functions = []
    for command in commands:
        lines = [f"  '{_zsh_option(option)}' \\" for option in command.options]
        if command.below:
            listed = " ".join(f"'{name}:{_zsh_text(text)}'" for name, text in command.below)
            calls = "\n".join(f"      {name}) {_function(f'{command.words} {name}')} ;;" for name, _ in command.below)
            body = "\n".join(["  _arguments -C \\", *lines, ""])
            functions.append(_ZSH_GROUP.format(name=_function(command.words), body=body, listed=listed, calls=calls))
        else:
            body = "\n".join(lines)
            functions.append(f"{_function(command.words)}() {{\n  _arguments \\\n{body}\n  '*:file:_files'\n}}\n")
    return "\n".join(functions) + _ZSH_END


_ZSH_GROUP = """{name}() {{
  local -a commands=({listed})
  local state line
{body}    '1:command:->command' '*::argument:->arguments'
  case $state in
    command) _describe command commands ;;
    arguments) case $line[1] in
{calls}
    esac ;;
  esac
}}
"""


# A file in $fpath is run when the first completion is asked for; one that is sourced only registers its function.
_ZSH_END = """
if [[ "$zsh_eval_context[-1]" == loadautofunc ]]; then
  _shardwright "$@"
else
  compdef _shardwright shardwright
fi
"""


def _function(words: str) -> str:
    return "_shardwright" + "".join(f"_{word}" for word in words.replace("-", "_").split())


def _zsh_option(option: _Option) -> str:
    names = option.names[0] if len(option.names) == 1 else f"({' '.join(option.names)})'{{{','.join(option.names)}}}'"
    value = (
        "" if not option.takes_value else f":value:({' '.join(option.values)})" if option.values else ":value:_files"
    )
    return f"{names}[{_zsh_text(option.help)}]{value}"


def _zsh_text(text: str) -> str:
    for mark in "[]:":
        text = text.replace(mark, "\\" + mark)
    return text.replace("'", "'\\''")


def _fish(commands: list[_Command]) -> str:
    """Returns a line for each command and option, with the condition under which it is offered."""
    lines = ["complete -c shardwright -f -n __fish_use_subcommand"]
    for command in commands:
        words = command.words.split()
        for name, text in command.below:
            where = "__fish_use_subcommand" if not words else f"'__fish_seen_subcommand_from {words[0]}'"
            lines.append(f"complete -c shardwright -f -n {where} -a {name} -d '{_fish_text(text)}'")
        for option in command.options:
            condition = "__fish_use_subcommand"
            if words:
                condition = "'" + "; and ".join(f"__fish_seen_subcommand_from {word}" for word in words) + "'"
            names = " ".join(f"-l {one[2:]}" if one.startswith("--") else f"-s {one[1:]}" for one in option.names)
            value = (f" -x -a '{' '.join(option.values)}'" if option.values else " -r") if option.takes_value else ""
            lines.append(f"complete -c shardwright -n {condition} {names}{value} -d '{_fish_text(option.help)}'")
    return "\n".join(lines) + "\n"


def _fish_text(text: str) -> str:
    return text.replace("\\", "\\\\").replace("'", "\\'")
