"""Hostile names of files, folders, classes, keys and columns, through every command that prints names."""

import contextlib
import io
import json
import sys

import pytest
from ingesting import run
from PIL import Image

from shardwright.dataset.reader import ImageDataset
from shardwright.pipelines.cli import main
from shardwright.text.escaping import escape

EVIL = "evil\x1b]0;title\x07\x1b[2J\u202e\u200b\x9b\u2028"
MARK = "evil\\u001b]0;title\\u0007\\u001b[2J\\u202e\\u200b\\u009b\\u2028"
KIND = "kind\x7f\x9b\u202e\u200b"  # A class may not contain controls below the space.
FORGED = "shardwright: forged"


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Datasets `ds` and `other` of images with hostile names, a configuration, tables, and a broken image."""
    root = tmp_path_factory.mktemp("hostile") / EVIL
    for number in range(6):
        folder = root / "images" / f"{KIND}{number % 2}"
        folder.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (8, 6), (40 * number, 9, 9)).save(folder / f"{number}{EVIL}\n{FORGED}.png", "png")
    (folder / f"broken{EVIL}\n{FORGED}.png").write_bytes(b"\x89PNG\r\n\x1a\n nothing")
    raw = {"task": "classification", "input": {"images": str(root / "images")}, "rejects": {"max_fraction": 0.5}}
    raw |= {"split": {"ratios": {"train": 0.7, "eval": 0.3}}, "evaluator": {"split": "eval"}}
    run(raw, root / "ds", workers=1)
    raw["shards"] = {"count": 2}
    run(raw, root / "other", workers=1)
    (root / "config.yaml").write_text(json.dumps(raw))
    (root / "unknown.yaml").write_text(json.dumps({f"{EVIL}\n{FORGED}": 1, **raw}))
    (root / "value.yaml").write_text(json.dumps({**raw, "task": f"{EVIL}\n{FORGED}"}))
    (root / "broken.yaml").write_bytes(b"a: [\x1b[2J\n")
    (root / "refused" / EVIL).mkdir(parents=True)
    Image.new("RGB", (8, 6)).save(root / "refused" / EVIL / "a.png")
    (root / "refused.yaml").write_text(json.dumps({**raw, "input": {"images": str(root / "refused")}}))
    table = root / "labels.csv"
    table.write_text(f"image,label\n{EVIL},{EVIL}\n")
    (root / "keys").write_text(f"missing{EVIL}\n")
    return root


def calls(root, new):
    dataset = ImageDataset.open(root / "ds")
    shard = next(iter(dataset.shards("train")))
    key = next(iter(dataset.keys("train")))
    ds = str(root / "ds")
    return [
        ["ingest", str(root / "config.yaml"), "--out", str(new / "in"), "--workers", "1"],
        ["ingest", str(root / "unknown.yaml"), "--out", str(new / "no")],
        ["ingest", str(root / "value.yaml"), "--out", str(new / "no")],
        ["ingest", str(root / "broken.yaml"), "--out", str(new / "no")],
        ["ingest", str(root / "refused.yaml"), "--out", str(new / "no")],
        ["validate", str(root / "config.yaml"), "--data"],
        ["validate", str(root / "config.yaml"), "--data", "--show"],
        ["validate", str(root / "value.yaml")],
        ["init", str(root / "images"), "--out", str(new / "made.yaml")],
        ["init-pipeline", str(new / "project"), "--images", str(root / "images")],
        ["run", str(root / "none.yaml")],
        ["verify", ds],
        ["verify", str(new / "damaged")],
        ["stats", ds],
        ["inspect", ds],
        ["inspect", str(shard)],
        ["inspect", str(shard), "--record", "0"],
        ["get", ds, key],
        ["get", ds, f"{EVIL}\n{FORGED}"],
        ["diff", ds, str(root / "other")],
        ["diff", ds, str(new / "subset")],
        ["export", ds, "--out", str(new / "exported")],
        ["export", ds, "--out", str(new / "exported2"), "--classes", f"{EVIL}9"],
        ["reshard", ds, "--out", str(new / "resharded")],
        ["subset", ds, "--splits", f"{EVIL}\n{FORGED}", "--out", str(new / "no")],
        ["merge", ds, str(root / "other"), "--out", str(new / "merged")],
        ["forget", ds, "--keys", str(root / "keys"), "--out", str(new / "forgotten")],
        ["relabel", ds, str(root / "labels.csv"), "--out", str(new / "relabeled")],
        ["retry-rejects", str(root / "config.yaml"), ds, "--out", str(new / "retried"), "--workers", "1"],
        ["report", ds, "--out", str(new / "page.html")],
        ["lineage", ds],
        ["drift", ds, str(root / "other")],
        ["clean", str(root)],
        ["schema", "infer", ds],
        ["schema", "diff", str(root / "labels.csv"), str(root / "none")],
        ["schema", "render", str(root / "unknown.yaml")],
        ["predict", str(root / "model"), str(root / "images"), "--out", str(new / "predicted.csv")],
        [f"{EVIL}\n{FORGED}"],
        ["sample", "--out", str(new / "sample"), "--count", EVIL],
        ["stats", ds, f"{EVIL}\n{FORGED}"],
    ]


@pytest.mark.parametrize("form", ["text", "json"])
def test_no_command_prints_a_hostile_name_as_it_is(place, tmp_path, form, monkeypatch):
    new = tmp_path / EVIL
    new.mkdir()
    damaged = new / "damaged"
    main(["subset", str(place / "ds"), "--count", "4", "--out", str(new / "subset")])
    main(["subset", str(place / "ds"), "--count", "4", "--out", str(damaged)])
    ledger = next(damaged.glob("ledger/*"))
    ledger.write_bytes(ledger.read_bytes().replace(b'"written"', b'"writtem"', 1))
    named = set()
    for call in calls(place, new):
        out, error = io.StringIO(), io.StringIO()
        monkeypatch.setattr(sys, "stdout", out)
        monkeypatch.setattr(sys, "stderr", error)
        code: object = None
        with contextlib.suppress(SystemExit):
            code = main([*call, "--json"] if form == "json" else call)
        output = out.getvalue() + error.getvalue()
        assert output, call
        assert "Traceback" not in output, call
        assert escape(output, lines=True) == output, call
        # One document, or none after an error.
        if form == "json" and (code == 0 or out.getvalue()):
            json.loads(out.getvalue())
        else:
            # A line of a name may not pass for a line of ours.
            assert sum(line.startswith(FORGED) for line in output.splitlines()) == 0, (call, output)
        if any(name in output for name in (MARK, escape(KIND), repr(EVIL)[1:-1])):  # argparse takes `repr`
            named.add(call[0])
    missing = {call[0] for call in calls(place, new)} - named
    assert missing <= {"clean", "drift"}, (missing, output)
