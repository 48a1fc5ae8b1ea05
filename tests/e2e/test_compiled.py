"""Compiled pipelines, run task by task as the services do: from the input to the pushed model.

In Kubeflow's first run every task is killed once, each at another point, and run again. It must end in the bytes of
Vertex AI's run, in which nothing is killed.
"""

import json
import re
from pathlib import Path

import pytest
from compiled_runs import IMAGE, compiled, emulated, write_input
from emulator import CACHED, DUE, RAN, Emulator, TaskFailed
from killed_tasks import AttemptsKilled, contents

from shardwright.components.runtime.mounts import folder_of
from shardwright.dataset.reader import ImageDataset
from shardwright.lineage.ancestry import family_of
from shardwright.lineage.blessing import BLESSING_FILE, read_blessing
from shardwright.lineage.record import read_lineage

pytestmark = pytest.mark.slow

LOOKS_AROUND, FOLLOWS_THE_BASELINE = {"InputResolver", "BaselineResolver"}, {"Evaluator", "Pusher"}
# The process that starts the tasks has some in its environment.
SECRETS = {"AWS_SECRET_ACCESS_KEY": "hush-0b59c2", "WANDB_API_KEY": "hush-77d1ea", "GIT_TOKEN": "hush-c41f08"}
# The schema's content does not depend on the images.
SAME_FOR_OTHER_DATA = {"ImportSchemaGen"}
# Target -> file -> digest of its first run.
CONTENTS = {}


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return write_input(tmp_path_factory.mktemp("compiled"))


@pytest.fixture
def secrets(monkeypatch):
    """The process that starts the tasks has some."""
    for name, secret in SECRETS.items():
        monkeypatch.setenv(name, secret)


def no_secrets_in(places):
    """Looks at documents, artifacts and logs; returns how many there are."""
    files = [place for place in places if place.is_file()]
    for file in files:
        data = file.read_bytes()
        assert not [name for name, secret in SECRETS.items() if secret.encode() in data], file
    return len(files)


def change_a_byte(folder):
    """Another pixel in one image: the last byte before the end-of-image marker of a JPEG."""
    image = sorted(folder.glob("train_images/*.jpg"))[0]
    data = bytearray(image.read_bytes())
    data[-3] ^= 1
    image.write_bytes(bytes(data))


def is_kept_from(pipeline, push, earlier):
    """The results of a run with other data: from the dataset that the baseline model was evaluated on."""
    examples, report = (
        pipeline.outputs[task]["artifacts"][key]["uri"]
        for task, key in (("ImageExampleGen", "examples"), ("Report", "report"))
    )
    first, second = ImageDataset.open(earlier), ImageDataset.open(examples)
    assert read_blessing(push).examples == {"place": earlier, "digest": first.manifest.digest}
    assert second.manifest.digest != first.manifest.digest
    assert second.manifest.recipe["split"]["keep_from"] == first.manifest.digest
    assert {row.key: row.split for row in second.ledger()} == {row.key: row.split for row in first.ledger()}
    log = pipeline.home / "tasks" / f"{pipeline.runs:02d}-ImageExampleGen" / "log"
    assert f"19 of 20 images copied from {earlier}, 1 read" in log.read_text(encoding="utf-8")
    assert read_lineage(report)["parents"]["reference"] == first.manifest.digest


def run_with_faults(pipeline, **parameters):
    """Runs a pipeline whose every task is killed once; what it does later is not disturbed."""
    faults = AttemptsKilled(seed=2)
    pipeline.start, start = faults.run, pipeline.start
    done = pipeline.run(**parameters)
    pipeline.start = start
    faults.check(done)
    return done


def ends_in_the_same_bytes(found):
    """Compares the artifacts of Kubeflow's run with those of Vertex AI's, if that test ran."""
    if "vertex" not in CONTENTS:
        return
    assert found == CONTENTS["vertex"]
    names = ("tfrecord", "manifest.json", "saved_model.pb", "model.weights.h5", "variables.data-00000-of-00001")
    for name in names:
        assert any(path.endswith(name) for path in found), name


def pages_show(pipeline):
    """The outputs that the service's own pages show."""
    evaluated = pipeline.outputs["Evaluator"]["artifacts"]
    assert 0 <= evaluated["metrics"]["metadata"]["mean_dice"] <= 1
    assert "confusion_matrix" not in evaluated
    page = pipeline.outputs["Report"]["artifacts"]["page"]["uri"]
    file = Path(folder_of(page, pipeline.environment.get("SHARDWRIGHT_MOUNTS", "/")))
    assert file.read_bytes().startswith(b"<!DOCTYPE html>")


@pytest.mark.usefixtures("secrets")
def test_vertex_from_input_to_pushed_model(home, monkeypatch):
    document = compiled(home, "vertex", monkeypatch)
    pipeline, _ = emulated(home, document, home / "v")
    pipeline.environment |= SECRETS
    first = pipeline.run()
    assert set(first.values()) == {RAN}
    CONTENTS["vertex"] = contents(pipeline)
    assert no_secrets_in([document, *(home / "v").rglob("*")]) > 100
    pushed = read_blessing(home / "v" / "gs" / "models" / "clouds")
    assert pushed is not None
    model, family = family_of(str(home / "v" / "gs" / "models" / "clouds"), [str(home / "v")])
    ancestors = list(family.ancestors(model))
    assert [one.kind for one in ancestors] == ["model", "transform", "ingest"]
    assert {one.image for one in ancestors} == {IMAGE}
    pages_show(pipeline)

    # The test for Kubeflow shows what a change of the data does: the tasks and their caching are the same.
    again = pipeline.run()
    assert {task for task, what in again.items() if what == RAN} == LOOKS_AROUND | FOLLOWS_THE_BASELINE
    assert read_blessing(home / "v" / "gs" / "models" / "clouds") == pushed


@pytest.mark.usefixtures("secrets")
def test_kubeflow_from_input_to_pushed_model(home, monkeypatch):
    pipeline, parameters = emulated(home, compiled(home, "kubeflow", monkeypatch), home / "k")
    first = run_with_faults(pipeline, **parameters)
    assert set(first.values()) == {RAN}
    ends_in_the_same_bytes(contents(pipeline))
    assert (home / "k" / "models" / "clouds" / BLESSING_FILE).exists()
    pages_show(pipeline)

    # The assertions above show the effect of these two.
    again = pipeline.run(**parameters, without=FOLLOWS_THE_BASELINE)
    assert {task for task, what in again.items() if what == RAN} == LOOKS_AROUND
    assert {task for task, what in again.items() if what == DUE} == FOLLOWS_THE_BASELINE

    change_a_byte(home / "k" / "data")
    dataset = pipeline.outputs["ImageExampleGen"]["artifacts"]["examples"]["uri"]
    changed = pipeline.run(until="Report", **parameters)
    assert {task for task, what in changed.items() if what == CACHED} == SAME_FOR_OTHER_DATA
    is_kept_from(pipeline, home / "k" / "models" / "clouds", dataset)


PAGE = Path(__file__).parents[2] / "docs" / "reference" / "kfp-components.md"


@pytest.fixture
def plain(home, tmp_path, monkeypatch):
    """The pipeline of docs/reference/kfp-components.md, as it stands there but for the size of its images."""
    monkeypatch.chdir(tmp_path)
    code = re.search(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)[1]
    exec(compile(code.replace("[352, 544]", "[32, 48]"), str(PAGE), "exec"), {})
    (tmp_path / "mounts").mkdir()
    return Emulator.kubeflow(tmp_path / "clouds.yaml", tmp_path, folders={})


def test_plain_components_from_images_to_the_report(home, plain):
    first = plain.run(data_root=str(home / "data"))
    assert first == dict.fromkeys(["ingest", "verify", "transform", "report"], RAN)
    mounts = plain.home / "mounts" / "minio" / "mlpipeline" / "v2" / "artifacts" / "01"
    assert plain.outputs["verify"]["parameters"] == {"whole": True}
    assert json.loads((mounts / "verify" / "findings").read_text())["findings"] == []
    dataset, small = (ImageDataset.open(mounts / name) for name in ("ingest/dataset", "transform/transformed"))
    assert plain.outputs["ingest"]["parameters"]["fingerprint"] == dataset.manifest.fingerprint
    assert small.manifest.parent == dataset.manifest.digest
    assert small.manifest.totals["written"] == 20
    assert (mounts / "transform" / "graph" / "transform_fn" / "saved_model.pb").is_file()
    assert (mounts / "report" / "page").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    # Nothing but the artifacts, and the launcher's own log, is left for the launcher to trip over.
    left = {path.name for path in (mounts / "transform").iterdir()}
    assert left == {"transformed", "graph", "executor-logs-0"}
    assert set(plain.run(data_root=str(home / "data")).values()) == {CACHED}

    shard = next((mounts / "ingest" / "dataset").glob("Split-train/*.tfrecord"))
    data = bytearray(shard.read_bytes())
    data[-20] ^= 1
    shard.write_bytes(bytes(data))
    plain.cache = {key: value for key, value in plain.cache.items() if "whole" not in value["parameters"]}
    with pytest.raises(TaskFailed, match=r"verify ended with 1"):
        plain.run(data_root=str(home / "data"))
