"""The generated pages of the reference: they are those of the code, and complete."""

import argparse
import ast
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from command_page import EXIT_CODES, VARIABLES
from markdown_pages import anchors, leads_nowhere
from reference_pages import DATASET_FILES, FEATURES, FOLDER, PAGES

from shardwright import errors
from shardwright.config.json_schema import config_schema
from shardwright.dataset.feature_presets import COMMON_FEATURES
from shardwright.label_formats import FORMATS
from shardwright.pipelines.commands.documentation import ERROR_PAGES, page_of_error, section_anchor

ROOT = Path(__file__).parents[1]
# The name of the package makes it a fork that has TFX already (`prefork`).
PROGRAM = """# shardwright.components
import json, sys
from reference_pages import PAGES
print(json.dumps({name: page() for name, page in PAGES.items()}))
"""


@pytest.fixture(scope="module")
def made() -> dict[str, str]:
    """All pages, from a process of their own: the one of the tests may have other functions in place of ours."""
    path = os.pathsep.join([str(ROOT), str(ROOT / "tests/support")])
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout.splitlines()[-1]))


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_that_of_the_code(name: str, made: dict[str, str]) -> None:
    file = FOLDER / f"{name}.md"
    if os.environ.get("SHARDWRIGHT_RENEW_GOLDEN"):
        file.write_text(made[name], encoding="utf-8")
    assert file.read_text(encoding="utf-8") == made[name], "renew it with SHARDWRIGHT_RENEW_GOLDEN=1"


def table_of_formats() -> str:
    rows = ["| format | reads | gives | keeps | in Python |", "|---|---|---|---|---|"]
    for row in FORMATS:
        # The part of a file that has the classes, such as `flags`, is worth a word.
        named = f" ({row.classes})" if re.fullmatch("`.{1,9}`", row.classes) else ""
        classes = f"classes{named}" if row.classes else ""
        gives = ("masks" if row.masks else "", "boxes" if row.boxes else "", classes)
        keeps = [name for name in ("splits", "sizes") if getattr(row, name)]
        cells = [row.meaning, ", ".join(filter(None, gives)), ", ".join(keeps)]
        first, last = (
            f"[`{row.name}`]({row.page})" if row.page != "index.md" else f"`{row.name}`",
            f"`{row.function}`",
        )
        rows.append(f"| {' | '.join([first, *(cell or '–' for cell in cells), last])} |")
    return "\n".join(rows)


def test_the_table_of_formats_is_that_of_the_rows() -> None:
    page = ROOT / "docs" / "formats" / "index.md"
    before, begin, rest = page.read_text(encoding="utf-8").partition("<!-- formats -->\n")
    found, end, after = rest.partition("\n<!-- end of formats -->")
    assert begin
    assert end
    if os.environ.get("SHARDWRIGHT_RENEW_GOLDEN"):
        page.write_text(before + begin + table_of_formats() + end + after, encoding="utf-8")
    else:
        assert found == table_of_formats()


def test_every_variable_of_the_code_is_listed() -> None:
    read = set()
    for folder in ("shardwright", "components", "pipelines"):
        for file in (ROOT / folder).rglob("*.py"):
            read |= set(re.findall(r'"(SHARDWRIGHT_[A-Z_]*[A-Z])"', file.read_text(encoding="utf-8")))
    assert read == VARIABLES.keys()


def test_every_common_feature_is_described() -> None:
    assert FEATURES.keys() == COMMON_FEATURES.keys()


def test_exit_codes_are_those_of_the_errors() -> None:
    codes = {str(kind.exit_code) for kind in vars(errors).values() if hasattr(kind, "exit_code")}
    assert codes <= EXIT_CODES.keys()


def test_the_files_of_a_dataset_are_listed_and_its_records_are_parsed(small_dataset, tmp_path, capsys) -> None:
    folder = small_dataset(tmp_path, classes=("Fish", "Sugar"), counts={"train": [3]})
    folder.rename(tmp_path / "ds")
    listed = {re.sub("SPLIT", "[a-z]+", re.sub("N+", "[0-9]+", name)) for name in DATASET_FILES}
    for file in (path for path in (tmp_path / "ds").rglob("*") if path.is_file()):
        name = file.relative_to(tmp_path / "ds").as_posix()
        assert any(re.fullmatch(pattern, name) for pattern in listed), name
    (snippet,) = re.findall(r"```python\n(.*?)```", (FOLDER / "tfrecord-features.md").read_text("utf-8"), re.DOTALL)
    import tensorflow as tf

    from shardwright.loader import load

    found = []
    names = {"print": lambda *shapes: found.append(shapes)}
    exec(snippet.replace("ds/Split", f"{tmp_path}/ds/Split"), names)  # the page's own program
    images, masks = next(iter(load(tmp_path / "ds", "train", batch_size=3, normalize="none", dtype="uint8")))
    assert found == [(images.shape[1:], masks.shape[1:3])]
    records = tf.data.TFRecordDataset(names["shards"])
    parsed = sorted((names["parse"](record)[1].numpy().tolist()) for record in records)
    assert parsed == sorted(masks[..., 0].numpy().tolist())


# On the page of messages, and printed by programs of others.
OTHERS_MESSAGES = ("SDK harness", "No space left", "nodes are available", "only supports schema version 2.1.0")


def texts_of_the_code() -> str:
    """All texts of the installed code, with an ellipsis in place of every value."""
    texts = []
    for folder in ("shardwright", "components", "pipelines"):
        for file in (ROOT / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                if isinstance(node, ast.JoinedStr):
                    parts = (str(part.value) if isinstance(part, ast.Constant) else "…" for part in node.values)
                    texts.append("".join(parts))
                elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                    texts.append(node.value)
    return "\n".join(texts)


def test_messages_of_the_page_are_those_of_the_code() -> None:
    page = (FOLDER / "messages.md").read_text(encoding="utf-8")
    headings = re.findall(r"^### (.*)", page, re.MULTILINE)
    quoted = [found for heading in headings for found in re.findall(r"`([^`]*)`", heading)]
    fragments = {part.strip(" ,:.") for message in quoted for part in message.split("…")}
    fragments = {part for part in fragments if len(part) > 7 and not part.startswith(OTHERS_MESSAGES)}
    assert len(fragments) > 40
    code = texts_of_the_code()
    assert [part for part in sorted(fragments) if part not in code] == []


def test_every_error_leads_to_an_anchor_that_exists() -> None:
    called = argparse.Namespace(invoked="verify")
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, Exception)]
    assert len(kinds) > 5
    made = [kind("a.b", "wrong", "Fix it.") if kind is errors.ConfigError else kind("wrong") for kind in kinds]
    pages = [*(page_of_error(error, called) for error in made), *ERROR_PAGES.values()]
    wrong = [page for page in pages if leads_nowhere(FOLDER.parent / page.split("#")[0], "", page.partition("#")[2])]
    assert wrong == []
    assert page_of_error(errors.UsageError("wrong"), argparse.Namespace()) == "reference/command-line.md"


@pytest.mark.parametrize(
    ("path", "anchor"),
    [
        ("taks", "top-level"),
        ("split.ratios.train", "split"),
        ("input.labels.rle.order", "inputlabelsrle"),
        ("vertex.resources.Trainer.cpu", "vertexresources"),
        ("kubeflow.volumes[0].claim", "kubeflow"),
    ],
)
def test_a_key_leads_to_its_section(path: str, anchor: str) -> None:
    assert section_anchor(path) == anchor


def test_every_section_of_the_configuration_has_its_anchor() -> None:
    known = anchors(FOLDER / "configuration.md")
    paths = re.findall(r"^## `(.*)`$", (FOLDER / "configuration.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert len(paths) > 30
    assert {section_anchor(path.replace("*", "any")) for path in paths} <= known
    assert {section_anchor(key) for key in config_schema()["properties"]} <= known
