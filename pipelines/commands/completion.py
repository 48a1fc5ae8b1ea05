"""`shardwright completion`: scripts for bash, zsh and fish, generated from the parsers of the commands.

`shtab` makes such scripts, too, under a license that we do not take (MPL-2.0); with `argcomplete` every key starts a
Python.
"""

from __future__ import annotations

import argparse
from argparse import Namespace
from collections.abc import Iterator, Mapping

from shardwright.pipelines.commands.parsers import Parser, build_parser


def run(options: Namespace) -> int:
    """Prints the script of a shell."""
    print(completion_script(build_parser(), options.shell), end="")
    return 0


def completion_script(program: Parser, shell: str) -> str:
    """Returns the script for a shell."""
    parsers = dict(_commands(program, ""))
    write = {"bash": _bash, "zsh": _zsh, "fish": _fish}[shell]
    # zsh wants the name of the command in the first line.
    first = "#compdef shardwright\n" if shell == "zsh" else ""
    made = f"# Completion of shardwright for {shell}, made by `shardwright completion {shell}`.\n"
    return first + made + write(parsers)


def _commands(parser: Parser, words: str) -> Iterator[tuple[str, Parser]]:
    """Yields all parsers by the words of their commands; those of the program are empty."""
    yield words, parser
    for name, below in parser.below.items():
        yield from _commands(below, f"{words} {name}".strip())


def _options(parser: Parser) -> list[argparse.Action]:
    return [action for action in parser.actions if action.option_strings]


def _values(option: argparse.Action) -> str:
    return " ".join(map(str, option.choices or ()))


def _bash(parsers: Mapping[str, Parser]) -> str:
    """Returns a function with a case for each command, and one for each option with known values."""
    cases, values = [], []
    for words, parser in parsers.items():
        cases.append(f'    "{words}") words="{" ".join([*parser.options, *parser.below])}" ;;')
        for option in _options(parser):
            if option.choices:
                patterns = "|".join(f'"{words} {name}"' for name in option.option_strings)
                values.append(f'    {patterns}) words="{_values(option)}" ;;')
    below = " ".join(f'"{words}"' for words in parsers if words)
    groups = " ".join(words or "program" for words, parser in parsers.items() if parser.below)
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


def _zsh(parsers: Mapping[str, Parser]) -> str:
    """Returns a function for each command; `_arguments` knows the rest."""
    functions = []
    for words, parser in parsers.items():
        lines = [f"  '{_zsh_option(option)}' \\" for option in _options(parser)]
        if parser.below:
            listed = " ".join(f"'{name}:{_zsh_text(below.summary)}'" for name, below in parser.below.items())
            calls = "\n".join(f"      {name}) {_function(f'{words} {name}')} ;;" for name in parser.below)
            body = "\n".join(["  _arguments -C \\", *lines, ""])
            functions.append(_ZSH_GROUP.format(name=_function(words), body=body, listed=listed, calls=calls))
        else:
            body = "\n".join(lines)
            functions.append(f"{_function(words)}() {{\n  _arguments \\\n{body}\n  '*:file:_files'\n}}\n")
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


def _zsh_option(option: argparse.Action) -> str:
    names = option.option_strings
    written = names[0] if len(names) == 1 else f"({' '.join(names)})'{{{','.join(names)}}}'"
    value = "" if option.nargs == 0 else f":value:({_values(option)})" if option.choices else ":value:_files"
    return f"{written}[{_zsh_text(option.help or '')}]{value}"


def _zsh_text(text: str) -> str:
    for mark in "[]:":
        text = text.replace(mark, "\\" + mark)
    return text.replace("'", "'\\''")


def _fish(parsers: Mapping[str, Parser]) -> str:
    """Returns a line for each command and option, with the condition under which it is offered."""
    lines = ["complete -c shardwright -f -n __fish_use_subcommand"]
    for command, parser in parsers.items():
        words = command.split()
        for name, below in parser.below.items():
            where = "__fish_use_subcommand" if not words else f"'__fish_seen_subcommand_from {words[0]}'"
            lines.append(f"complete -c shardwright -f -n {where} -a {name} -d '{_fish_text(below.summary)}'")
        seen = "; and ".join(f"__fish_seen_subcommand_from {word}" for word in words)
        condition = f"'{seen}'" if words else "__fish_use_subcommand"
        for option in _options(parser):
            kinds = [(name.lstrip("-"), "l" if name.startswith("--") else "s") for name in option.option_strings]
            names = " ".join(f"-{kind} {name}" for name, kind in kinds)
            value = "" if option.nargs == 0 else f" -x -a '{_values(option)}'" if option.choices else " -r"
            lines.append(f"complete -c shardwright -n {condition} {names}{value} -d '{_fish_text(option.help or '')}'")
    return "\n".join(lines) + "\n"


def _fish_text(text: str) -> str:
    return text.replace("\\", "\\\\").replace("'", "\\'")
