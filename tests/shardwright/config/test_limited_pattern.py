"""A pattern of the configuration that takes too long for a name is refused, in every option that has one."""

import signal
import threading

import pytest
from guarded import guarded
from ingesting import changed, run
from PIL import Image

from shardwright.config import limited_pattern
from shardwright.config.limited_pattern import LimitedPattern
from shardwright.errors import UsageError

EVIL = "(?P<label>(a+)+)$"
NAME = "a" * 40 + "b"


@pytest.fixture(autouse=True)
def _limited(monkeypatch):
    monkeypatch.setattr(limited_pattern, "_SECONDS", 0.02)
    with guarded():
        yield


def test_a_match_that_takes_too_long():
    before = signal.getsignal(signal.SIGVTALRM)
    with pytest.raises(UsageError, match=r"split.group.regex: '\(a\+\)\+\$' takes more than 0.02 s for 'aaa"):
        LimitedPattern("(a+)+$", "split.group.regex").search(NAME)
    assert signal.getsignal(signal.SIGVTALRM) is before
    assert signal.getitimer(signal.ITIMER_VIRTUAL) == (0.0, 0.0)


def test_matches_are_those_of_re():
    pattern = LimitedPattern(r"(?P<label>\w+)_(\d+)", "input.labels.regex")
    found = []
    thread = threading.Thread(target=lambda: found.append(pattern.search("cat_12")))
    thread.start()
    thread.join()
    for match in (pattern.search("cat_12"), *found):
        assert match is not None
        assert match.groups() == ("cat", "12")
    assert pattern.search("cat") is None
    assert dict(pattern.groupindex) == {"label": 1}


@pytest.mark.parametrize(
    "change",
    [
        {"labels": {"format": "file_name", "regex": EVIL}},
        {"labels": {"path": "labels.csv", "key_regex": EVIL}},
        {"group": EVIL},
    ],
)
def test_every_option_with_a_pattern_is_limited(tmp_path, change):
    (tmp_path / "images" / "x").mkdir(parents=True)
    Image.new("RGB", (8, 6)).save(tmp_path / "images" / "x" / f"{NAME}.png")
    (tmp_path / "labels.csv").write_text("image,label\na,b\n")
    raw = {"task": "classification", "input": {"images": str(tmp_path / "images")}}
    if "group" in change:
        raw["split"] = {"method": "group", "group": {"regex": "(?:a+)+($)"}}
    else:
        labels = {**change["labels"]}
        if "path" in labels:
            labels["path"] = str(tmp_path / "labels.csv")
        raw = changed(raw, labels=labels)
    with pytest.raises(UsageError, match=r"takes more than 0.02 s"):
        run(raw, tmp_path / "out")
