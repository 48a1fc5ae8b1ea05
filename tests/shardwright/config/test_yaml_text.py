"""YAML that was made to use up time or memory is refused with its line; what is written is read back."""

from itertools import pairwise

import pytest
from guarded import guarded
from hypothesis import example, given
from hypothesis import strategies as st

from shardwright.config import load_config, yaml_text
from shardwright.config.yaml_text import dump_yaml, parse_yaml
from shardwright.errors import UsageError
from shardwright.pipelines.cli import main
from shardwright.text.escaping import escape

NAMES = "abcdefghi"
# Characters that YAML takes for line breaks, marks or numbers, that it does not allow, and that are not printed.
SPECIAL = "\x85\u2028\u2029\ufeff\u200d\xa0\u202e\U000e0041\udce9\ud83d\ude00\ufffe\U0010ffff\n\t\r\x00\x1b"
SPECIAL += "a \"'\\:#-?{}[],&*!|>%@`~é😀01.eE_+"
TEXTS = st.text(st.characters() | st.sampled_from(SPECIAL))


def bomb(form):
    """Nine lines that stand for hundreds of millions of values."""
    lines = [f"{one}: &{one} {form.format(','.join([f'*{before}'] * 9))}" for before, one in pairwise(NAMES)]
    return "\n".join(["a: &a [x, x, x]", *lines])


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (bomb("[{}]"), "aliases that stand for more than 100,000 values (line 6"),
        (bomb("{{k: [{}]}}"), "aliases that stand for more than 100,000 values (line 6"),
        (f"input:\n  classes: {{x: 1}}\nz: &z [{'y,' * 400}]\nb: [{'*z,' * 400}]", "aliases that stand for more than"),
        ("a: &a [1, *a]", "a value that contains itself (line 1"),
        ("[" * 5000, "values more than 100 deep (line 1"),
        ("{a: " * 5000, "values more than 100 deep (line 1"),
        (f"a: {'9' * 5000}", "a number of 5,000 characters (line 1"),
        (f"a: {'59:' * 5000}1.5", "characters (line 1"),
    ],
)
def test_bombs_exit_2(tmp_path, capsys, text, problem):
    (tmp_path / "bomb.yaml").write_text(text)
    with guarded():
        assert main(["ingest", str(tmp_path / "bomb.yaml"), "--out", str(tmp_path / "out")]) == 2
    assert problem in capsys.readouterr().err


def test_many_keys_are_refused_before_all_of_them_are_read(tmp_path, monkeypatch):
    monkeypatch.setattr(yaml_text, "_MOST_NODES", 1000)
    (tmp_path / "many.yaml").write_text("".join(f"k{i}: 1\n" for i in range(2000)))
    with pytest.raises(UsageError, match=r"more than 1,000 values \(line 50[01]"):
        load_config(tmp_path / "many.yaml")


def test_files_of_many_bytes_and_devices_are_not_read_whole(tmp_path):
    (tmp_path / "long.yaml").write_text("#" * (yaml_text.MOST_BYTES + 1))
    with guarded():
        for file in (tmp_path / "long.yaml", "/dev/zero"):
            with pytest.raises(UsageError, match="more than 4,194,304 bytes"):
                load_config(file)


def test_what_a_configuration_needs_is_read():
    classes = "\n".join(f"  n{i:08d}: {i}" for i in range(2000))
    assert len(parse_yaml(f"classes:\n{classes}\nx: &x [1, 2]\ny: *x")["classes"]) == 2000
    assert parse_yaml("x: &x {a: 1.5}\ny: [*x, *x]") == {"x": {"a": 1.5}, "y": [{"a": 1.5}, {"a": 1.5}]}


@given(key=TEXTS, value=TEXTS, options=st.sampled_from([{}, {"default_flow_style": True, "width": float("inf")}]))
@example(key=SPECIAL, value=SPECIAL, options={})
@example(key="x" * 300, value="x " * 300, options={"default_flow_style": True, "width": float("inf")})
def test_every_text_is_read_back_also_from_what_is_printed(key, value, options):
    values = {"k": {key: value, "list": [value]}, "z": 1}
    text = dump_yaml(values, **options)
    assert parse_yaml(text) == values
    assert escape(text, lines=True) == text
