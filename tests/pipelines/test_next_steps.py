"""Every command ends with the next step: what it names can be called as it stands."""

import json
import shlex

import pytest
import yaml
from compiled_runs import CONFIG

from shardwright.pipelines import cli

STEP = "Next: shardwright "


@pytest.fixture
def called(tmp_path, monkeypatch, capsys):
    """Calls a command in an empty folder; returns its exit code, its output, and the command that it names next."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments, code=0):
        assert cli.main([*arguments]) == code
        printed = capsys.readouterr()
        named = printed.out.rpartition("Next: shardwright ")[2].splitlines()[0] if STEP in printed.out else ""
        return printed.out + printed.err, shlex.split(named.partition(", or ")[0])

    return call


def test_the_steps_lead_from_a_drawn_data_set_to_its_report(called):
    _, step = called("sample", "--out", "my data", "--count", "40", "--height", "64", "--width", "96")
    assert step == ["init", "my data"]
    _, step = called(*step)
    assert step == ["ingest", "my-data.yaml", "--out", "DIR"]
    assert called("validate", "my-data.yaml")[1] == step
    printed, step = called(*step, "--workers", "1")
    assert [line.split()[0] for line in printed.splitlines()[-6:]] == [
        "DIR:",
        "images",
        "splits",
        "shards",
        "classes",
        "Next:",
    ]
    assert "  images   40 in, 40 written, 0 rejected\n" in printed
    assert "  classes  Fish, Flower, Gravel, Sugar\n" in printed
    assert step == ["report", "DIR"]
    called(*step)
    assert called("stats", "DIR")[1] == called("inspect", "DIR")[1] == step
    assert called("subset", "DIR", "--count", "20", "--out", "a part")[1] == ["report", "a part"]
    _, step = called("diff", "DIR", "a part", code=1)
    assert step == ["diff", "DIR", "a part", "--html", "changes.html"]
    assert called(*step, code=1)[1] == []


def test_a_script_gets_no_next_step(called):
    called("sample", "--out", "data", "--count", "40", "--height", "64", "--width", "96", "--quiet")
    printed, _ = called("init", "data", "--json")
    json.loads(printed)
    for form in ("--quiet", "--json"):
        printed, step = called("ingest", "data.yaml", "--out", f"out{form}", "--workers", "1", form)
        assert step == []
        assert printed.count("\n") == 1 or json.loads(printed)


def test_rejects_and_duplicates_are_counted(called, tmp_path):
    called("sample", "--out", "data", "--count", "40", "--height", "64", "--width", "96")
    called("init", "data")
    images = sorted((tmp_path / "data/train_images").iterdir())
    images[1].write_bytes(images[0].read_bytes())
    images[2].write_bytes(b"no image")
    text = yaml.safe_load((tmp_path / "data.yaml").read_text())
    text |= {"duplicates": {"exact": "first"}, "rejects": {"max_fraction": 0.1}}
    (tmp_path / "data.yaml").write_text(yaml.safe_dump(text))
    printed, _ = called("ingest", "data.yaml", "--out", "out", "--workers", "1")
    assert "  images   40 in, 38 written, 1 rejected (1 " in printed
    assert ", 1 duplicate\n" in printed
    assert f"  rejected {images[2].name}: " in printed


@pytest.mark.parametrize(
    ("target", "missing"),
    [
        ("vertex", ["vertex.image", "vertex.project", "vertex.region", "vertex.pipeline_root"]),
        ("kubeflow", ["kubeflow.image", "kubeflow.push_directory"]),
    ],
)
def test_everything_that_a_platform_lacks_is_listed_at_once(called, tmp_path, target, missing):
    config = {name: CONFIG[name] for name in ("name", "task", "input")}
    (tmp_path / "c.yaml").write_text(
        yaml.safe_dump({**config, "trainer": {"encoder": "efficientnetv2-b0", "weights": "b0.weights.h5"}})
    )
    printed, _ = called("validate", "c.yaml", "--target", target, "--json", code=2)
    rows = json.loads(printed)
    keys = [row["key"] for row in rows]
    assert keys == [*missing, "input.images", "input.labels.path", "trainer.weights"]
    assert all(row["fix"].startswith(("Write", "Build", "Put", "Copy")) for row in rows)
    for call in (["validate"], ["compile", "--out", f"out.{'json' if target == 'vertex' else 'yaml'}"]):
        printed, _ = called(*call, "c.yaml", "--target", target, code=2)
        positions = [printed.index(f"{key}: ") for key in keys]
        assert positions == sorted(positions)
    (tmp_path / "c.yaml").write_text(yaml.safe_dump({**config, target: CONFIG[target]}))
    _, step = called("validate", "c.yaml", "--target", target)
    assert step[:4] == ["compile", "c.yaml", "--target", target]


def test_without_a_command_the_help_is_shown(capsys):
    with pytest.raises(SystemExit) as end:
        cli.main([])
    assert end.value.code == 2
    assert "documentation: shardwright docs" in capsys.readouterr().out
