"""Untrusted text on a terminal, in a log and in a notebook: nothing in it steers, turns or hides anything."""

import io
import json
import logging
import sys
import unicodedata

import pytest

from shardwright.errors import CheckFailed, ConfigError
from shardwright.running import progress
from shardwright.text.escaping import EscapingFormatter, escape, escape_message, escaped_streams, escaping, unescaped

HOSTILE = "\x00\x07\x08\t\x0b\r\x1b\x7f\x80\x85\x9b\xad\u061c\u200b\u200d\u200e"
HOSTILE += "\u2028\u2029\u202e\u2060\u2066\ufeff\ud800\udfff\U000e0041\u3164\u034f\U000e0100"


def test_every_hostile_character_becomes_its_number() -> None:
    for character in HOSTILE:
        assert json.loads(f'"{escape(f"a{character}b")}"') == f"a{character}b"
        assert escape(character, lines=True).isascii()


@pytest.mark.parametrize("text", ["plain", "träin/猫 ñ – ×", 'quotes " and \\', "❤️", "Ελλάδα עברית"])
def test_what_people_write_stays(text: str) -> None:
    assert escape(text) == text


def test_no_character_that_unicode_calls_a_control_is_left() -> None:
    every = "".join(map(chr, [*range(0x3000), *range(0xD700, 0x11000), *range(0xE0000, 0xE0200)]))
    left = {unicodedata.category(character) for character in escape(every)}
    assert {"Lu", "Sm"} <= left
    assert not left & {"Cc", "Cf", "Cs", "Zl", "Zp"}


def test_line_ends_stay_only_where_they_are_meant() -> None:
    assert escape("a\nb\r\n") == "a\\u000ab\\u000d\\u000a"
    assert escape("a\nb\r\n", lines=True) == "a\nb\\u000d\n"
    assert escape_message("a\nshardwright: b") == "a\n  shardwright: b"


def test_json_stays_json_and_keeps_its_meaning() -> None:
    value = {HOSTILE: [HOSTILE, "é"]}
    shown = escape(json.dumps(value, ensure_ascii=False, indent=1), lines=True)
    assert json.loads(shown) == json.loads(json.dumps(value))
    assert escape(shown, lines=True) == shown


def test_streams_escape_whatever_way_is_taken(capsys: pytest.CaptureFixture[str]) -> None:
    before = sys.stdout, sys.stderr
    with escaped_streams(), escaped_streams():
        print("a\x1b[2J", flush=True)
        sys.stdout.writelines(["b\u202e", "\n"])
        sys.stderr.write("c\x9b\n")
        logging.StreamHandler().emit(logging.makeLogRecord({"msg": "e\x1b"}))
        assert not sys.stdout.isatty()
    assert (sys.stdout, sys.stderr) == before
    out, error = capsys.readouterr()
    assert out == "a\\u001b[2J\nb\\u202e\n"
    assert error == "c\\u009b\ne\\u001b\n"


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_a_stream_of_few_characters_gets_numbers(encoding: str) -> None:
    data = io.BytesIO()
    stream = escaping(io.TextIOWrapper(data, encoding=encoding))
    print(json.dumps("ü猫😀\udc80", ensure_ascii=False), file=stream, flush=True)
    assert json.loads(data.getvalue().decode(encoding)) == "ü猫😀\udc80"
    assert escaping(stream) is stream
    assert unescaped(stream) is not stream


def test_a_bar_keeps_its_colors_and_other_prints_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    terminal = io.StringIO()
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(sys, "stdout", terminal)
    with escaped_streams(), progress.progress(2, "reading") as shown:
        shown.advance()
        print("name\x1b]0;title\x07")
        progress.print_note("note\x1b]0;title\x07\nforged")
    printed = terminal.getvalue()
    assert "\x1b[" in printed
    assert "\x1b]0" not in printed
    assert "\x07" not in printed
    assert "name\\u001b]0;title\\u0007" in printed
    assert "  note\\u001b]0;title\\u0007\\u000aforged" in printed


def test_log_records_are_escaped_and_cannot_forge_another() -> None:
    record = logging.makeLogRecord({"msg": "read %s", "args": ("a\x1b\nERROR forged",), "levelname": "INFO"})
    assert EscapingFormatter("%(levelname)s %(message)s").format(record) == "INFO read a\\u001b\n  ERROR forged"


def test_errors_are_escaped_for_notebooks_and_tracebacks() -> None:
    assert str(CheckFailed("a\x1b[2J: rejected\nfix it")) == "a\\u001b[2J: rejected\nfix it"
    assert str(ConfigError("input.\u202e", "unknown key", "Remove it.")) == "input.\\u202e: unknown key. Remove it."
