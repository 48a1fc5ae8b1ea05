"""`clean --target`: old runs on a bucket go; what a blessed model or a later run needs, and foreign files, stay."""

import dataclasses
import json
import shutil
import time
from pathlib import Path

import pytest
from descent import Months, record_months
from object_stores import running_stores

from shardwright.errors import DatasetError, UsageError
from shardwright.lineage.record import write_lineage
from shardwright.pipelines.cli import main
from shardwright.pipelines.cloud import clean_bucket as clean
from shardwright.pipelines.cloud.clean_bucket import bucket_places, clean_bucket, lifecycle_text
from shardwright.storage import buckets, is_remote

# The clients of the stores are tested with the stores, on both stacks.
pytestmark = pytest.mark.one_stack
RUN = {month: f"{month:012d}" for month in range(4)}
FOREIGN = ("notes.txt", "123/other-20260101000000/ImageExampleGen_-1/examples/1/x", "beam/temp/x", "123/clouds-now/x")


@pytest.fixture(scope="module")
def stores():
    with running_stores() as running:
        yield running


@pytest.fixture(scope="module")
def months(small_dataset, tmp_path_factory):
    """Three months as `descent` has them, and an evaluation of an earlier run that nothing refers to."""
    made = Months(tmp_path_factory.mktemp("months") / "run", small_dataset)
    record_months(made)
    folder = made.root / "artifacts/Evaluator/evaluation/0"
    folder.mkdir(parents=True)
    write_lineage(folder, kind="evaluation", fingerprint="0" * 64, parents={"model": "0" * 64}, recipe={})
    return made


def folder_of(target, month):
    if target == "vertex":
        return f"123/clouds-20260{month + 1}01000000"
    return f"clouds/00000000-0000-4000-8000-{RUN[month]}"


@pytest.fixture(params=[("vertex", "gs"), ("kubeflow", "s3")], ids=["vertex", "kubeflow"])
def placed(request, stores, months, tmp_path):
    """Target, places, and the bucket's URL: the artifacts of each month in the folder of a run."""
    target, scheme = request.param
    url = stores.bucket(scheme)
    for folder in sorted(months.root.glob("artifacts/*/*/*")):
        component, key, month = folder.parts[-3:]
        stores.copy_of(folder, f"{url}/root/{folder_of(target, int(month))}/{component}_-1/{key}")
    stores.fill(f"{url}/root", dict.fromkeys(FOREIGN, b"mine"))
    stores.fill(f"{url}/root", {f"staging/{'a' * 64}/done": b"1234"})
    if target == "vertex":
        stores.copy_of(months.root / "pushed", f"{url}/root/pushed")
        section = {"vertex": {"pipeline_root": f"{url}/root"}}
    else:
        section = {"kubeflow": {"pipeline_root": f"{url}/root"}, "run": {"staging": f"{url}/root/staging"}}
    file = tmp_path / "clouds.yaml"
    file.write_text(json.dumps({"name": "clouds", "input": {"images": "gs://data/x"}, **section}))
    from shardwright.config import load_config

    pushed = None if target == "vertex" else str(months.root / "pushed")
    return target, bucket_places(load_config(str(file)), target, pushed), url, file


def later():
    return time.time() + 30 * 86400


def test_old_runs_go_and_what_is_needed_stays(placed, stores):
    target, places, url, _ = placed
    before = set(stores.tree(url))
    found = clean_bucket(places, 1, dry_run=True, now=later())
    assert set(stores.tree(url)) == before
    # Month 2 was stopped by the gate; run 0 is older than the last evaluation.
    removed = [f"{folder_of(target, month)}/" for month in (0, 2)]
    staged = f"{url}/root/staging/{'a' * 64}"
    assert [one.place for one in found.old] == [*removed, staged]
    assert found.old[-1].bytes == 4
    assert (found.runs, found.kept) == (4, 2)
    again = clean_bucket(places, 1, now=later())
    assert again == found
    gone = {name for name in before if any(part in name for part in (*removed, "/staging/"))}
    assert set(stores.tree(url)) == before - gone
    assert {f"root/{name}" for name in FOREIGN} <= before - gone
    assert clean_bucket(places, 1, now=later()).old == ()


def test_a_run_that_may_be_active_stays_and_so_do_the_last_ones(placed):
    _, places, _, _ = placed
    assert not [one for one in clean_bucket(places, 1, dry_run=True).old if "staging" not in one.place]
    kept = clean_bucket(places, 9, dry_run=True, now=later())
    assert (kept.runs, kept.kept) == (4, 4)


def test_nothing_goes_when_an_ancestor_cannot_be_read(placed, stores):
    target, places, url, _ = placed
    transform = f"{url}/root/{folder_of(target, 3)}/ImageTransform_-1/transformed_examples/lineage.json"
    stores.write(transform, b"{}")
    before = set(stores.tree(url))
    with pytest.raises(DatasetError, match="is damaged"):
        clean_bucket(places, 1, now=later())
    assert set(stores.tree(url)) == before


@pytest.fixture
def own_pushed(placed, stores, months, tmp_path):
    """The places, with a copy of the pushed models for one test."""
    target, places, _, _ = placed
    if target == "vertex":
        return places
    return dataclasses.replace(places, pushed=str(shutil.copytree(months.root / "pushed", tmp_path / "pushed")))


@pytest.mark.parametrize("model", ["1", "3"])
@pytest.mark.parametrize("text", [b"{}", None])
def test_nothing_goes_if_the_lineage_of_a_pushed_model_is_missing(placed, own_pushed, stores, model, text):
    url = placed[2]
    file = f"{own_pushed.pushed}/{model}/lineage.json"
    if is_remote(file):
        buckets.delete(file) if text is None else stores.write(file, text)
    else:
        Path(file).unlink() if text is None else Path(file).write_bytes(text)
    before = set(stores.tree(url))
    with pytest.raises(DatasetError, match=f"/{model}: the lineage of this model is missing"):
        clean_bucket(own_pushed, 1, now=later())
    assert set(stores.tree(url)) == before


def test_nothing_goes_if_the_pushed_models_are_elsewhere(placed, stores, months, tmp_path):
    target, places, url, _ = placed
    stores.copy_of(months.root / "pushed/3", f"{url}/root/{folder_of(target, 3)}/Pusher_-1/pushed_model")
    before = set(stores.tree(url))
    with pytest.raises(UsageError, match=r"has no BLESSED.json, but a run has pushed a model .*pushed_model"):
        clean_bucket(dataclasses.replace(places, pushed=str(tmp_path)), 1, now=later())
    assert set(stores.tree(url)) == before
    assert len(clean_bucket(places, 1, now=later()).old) == 3


def test_a_kill_leaves_nothing_that_looks_like_a_dataset(placed, stores, monkeypatch):
    _, places, url, _ = placed
    deleted = []

    def broken(name):
        if len(deleted) == 2:
            raise KeyboardInterrupt
        deleted.append(name)
        buckets_delete(name)

    buckets_delete = buckets.delete
    monkeypatch.setattr(clean.buckets, "delete", broken)
    with pytest.raises(KeyboardInterrupt):
        clean_bucket(places, 1, now=later())
    assert {name.rpartition("/")[2] for name in deleted} <= {"lineage.json", "manifest.json"}
    monkeypatch.undo()
    clean_bucket(places, 1, now=later())
    assert not [name for name in stores.tree(url) if "evaluation/0" in name or "/2/" in name]


def test_the_command(placed, capsys, monkeypatch):
    target, places, url, file = placed
    arguments = ["clean", str(file), "--target", target, *(["--pushed", places.pushed] if target != "vertex" else [])]
    # Every run has been quiet for long enough.
    monkeypatch.setattr(clean, "_DAY", -86400.0)
    assert main([*arguments, "--keep", "1", "--dry-run"]) == 0
    shown = capsys.readouterr().out
    assert f"{url}/root: 2 of 4 runs kept; 3 places, " in shown
    assert "--no-cache" in shown
    assert main([*arguments]) == 2
    assert "--keep: missing" in capsys.readouterr().err
    assert main([*arguments, "--keep", "0"]) == 2
    assert main([*arguments, "--lifecycle"]) == 0
    rules = json.loads(capsys.readouterr().out)[url]
    if target == "vertex":
        delete = rules["rules"]["rule"][0]
        assert delete["action"] == {"type": "Delete"}
        assert delete["condition"] == {"age": 14, "matchesPrefix": ["root/beam/", "root/staging/"]}
        assert rules["command"].startswith("gcloud storage buckets update gs://")
    else:
        (rule,) = rules["rules"]["Rules"]
        assert (rule["Filter"], rule["Expiration"]) == ({"Prefix": "root/staging/"}, {"Days": 14})


def test_clients_take_the_rules(placed, stores):
    """The real clients send them, and the store returns them."""
    target, places, url, _ = placed
    rules = json.loads(lifecycle_text(places))[url]["rules"]
    if target == "vertex":
        from google.cloud import storage

        bucket = storage.Client().bucket(url.removeprefix("gs://"))
        bucket.lifecycle_rules = rules["rule"]
        assert [dict(rule) for rule in bucket.lifecycle_rules] == rules["rule"]
        return
    import boto3

    client = boto3.client("s3")
    name = url.removeprefix("s3://")
    client.put_bucket_lifecycle_configuration(Bucket=name, LifecycleConfiguration=rules)
    assert client.get_bucket_lifecycle_configuration(Bucket=name)["Rules"][0]["Expiration"] == {"Days": 14}


def test_wrong_calls(tmp_path, capsys):
    file = tmp_path / "clouds.yaml"
    file.write_text(json.dumps({"name": "clouds", "input": {"images": "gs://data/x"}}))
    for arguments, message in (
        (["gs://bucket/runs", "--keep", "1"], "Give the pipeline's YAML file with --target"),
        ([str(file), "--keep", "1", "--lifecycle"], "need --target"),
        ([str(file), "--keep", "1", "--target", "kubeflow"], "kubeflow.pipeline_root: None is not a bucket"),
    ):
        assert main(["clean", *arguments]) == 2
        assert message in capsys.readouterr().err
    root = "minio://mlpipeline/v2"
    file.write_text(json.dumps({"input": {"images": "x"}, "kubeflow": {"pipeline_root": root}}))
    assert main(["clean", str(file), "--target", "kubeflow", "--keep", "1"]) == 2
    from shardwright.config import load_config

    section = {"pipeline_root": "gs://bucket/x", "push_directory": "/models/none"}
    file.write_text(json.dumps({"input": {"images": "x"}, "kubeflow": section}))
    with pytest.raises(UsageError, match="give its folder with --pushed"):
        bucket_places(load_config(str(file)), "kubeflow")
