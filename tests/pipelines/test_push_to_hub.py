"""`deliver --hub`: the real huggingface_hub against a stand-in for the hub's HTTP interface (`model_hub.py`)."""

import json
import os
import re
import runpy
import subprocess
import sys
from types import SimpleNamespace

import pytest
import tensorflow as tf
import yaml
from model_hub import running_hub
from PIL import Image
from tensorflow.core.protobuf import saved_model_pb2

from shardwright.config import load_config, parse_config
from shardwright.errors import ConfigError, StorageError, UsageError
from shardwright.lineage.blessing import Blessing, model_digest, write_blessing
from shardwright.lineage.record import write_lineage
from shardwright.pipelines import run_local as local_run
from shardwright.pipelines.cli import main
from shardwright.storage.fingerprint import fingerprint

TOKEN = "hf_" + "Zq8" * 11
NAME = "my-team/clouds"
HUB = {"repository": NAME, "license": "apache-2.0"}
METRICS = {"mean_dice": 0.5, "dice/Fish": 0.25, "dice/Sugar": 0.75}
MEASURED = {"split": "test", "images": 30, "size": [24, 40], "thresholds": [0.4, 0.6], "min_areas": [1, 1]}
WEIGHTS = b"\0weights"


@pytest.fixture
def hub(monkeypatch):
    constants = pytest.importorskip("huggingface_hub.constants")
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True, raising=False)
    # `read_token` sets the variable of this constant, which the library reads when it is imported.
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_TELEMETRY", True)
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    with running_hub(TOKEN) as found:
        monkeypatch.setattr(constants, "ENDPOINT", found.address)
        yield found


def push_model(root, version, weights=WEIGHTS, parts=1):
    """Pushes a model into the folder of a run, and blesses it."""
    model = root / "pushed" / version
    (model / "assets").mkdir(parents=True)
    (model / "variables").mkdir()
    saved = saved_model_pb2.SavedModel(saved_model_schema_version=1)
    saved.meta_graphs.add().meta_info_def.tensorflow_version = "2.16"
    (model / "saved_model.pb").write_bytes(saved.SerializeToString())
    (model / "assets/classes.json").write_text('["Fish", "Sugar"]')
    (model / "assets/thresholds.json").write_text('{"thresholds": [0.4, 0.6]}')
    for part in range(parts):
        (model / f"variables/variables.data-0000{part}-of-0000{parts}").write_bytes(weights + bytes([part]))
    parents = {"dataset": fingerprint("transform")}
    recipe = {"epochs": 3, "weights": "/home/somebody/weights.h5"}
    write_lineage(model, kind="model", fingerprint=fingerprint(version), parents=parents, recipe=recipe, files=True)
    write_blessing(root / "pushed", Blessing(version, model_digest(model), METRICS, measured=MEASURED))
    return model


@pytest.fixture
def blessed(tmp_path, monkeypatch):
    """The folder of a configuration with a blessed model; and calls `deliver --hub` there."""
    monkeypatch.chdir(tmp_path)
    push_model(tmp_path / "run", "1700000000")
    write(tmp_path)
    return tmp_path


def write(folder, **hub):
    rle = {"path": "train.csv", "rle": {"order": "column"}}
    raw = {"name": "clouds", "task": "segmentation", "input": {"images": "photos", "labels": rle}}
    raw |= {"run": {"root": "run"}, "push": {"hub": {**HUB, **hub}}}
    (folder / "clouds.yaml").write_text(yaml.safe_dump(raw))


def deliver(*options):
    return main(["deliver", "clouds.yaml", "--hub", *options])


def test_a_blessed_model_becomes_one_commit_and_one_tag(hub, blessed, capsys):
    assert deliver("--json") == 0
    printed = json.loads(capsys.readouterr().out)
    repository = hub.repositories[NAME]
    assert repository.private
    assert len(repository.commits) == 2
    assert repository.commits[-1][1] == "Blessed model 1700000000: mean_dice 0.5"
    assert repository.tags == {printed["tag"]: repository.sha()}
    assert printed == {
        "repository": NAME,
        "tag": printed["tag"],
        "commit": repository.sha(),
        "address": f"{hub.address}/{NAME}/tree/{printed['tag']}",
        "pushed": True,
    }
    model = blessed / "run/pushed/1700000000"
    local = {f"saved_model/{file.relative_to(model)}": file.read_bytes() for file in model.rglob("*") if file.is_file()}
    assert {n: c for n, c in repository.files.items() if n.startswith("saved_model/")} == local
    assert {"saved_model/lineage.json", "saved_model/assets/thresholds.json"} < set(local)
    assert set(repository.files) - set(local) == {".gitattributes", "README.md", "metrics.json"}
    metrics = json.loads(repository.files["metrics.json"])
    assert metrics == {"metrics": METRICS, "measured": MEASURED, "digest": model_digest(model)}
    assert hub.stored, "the weights went through LFS"


def test_the_same_model_is_pushed_once(hub, blessed, capsys):
    assert deliver() == 0
    sent = len(hub.asked)
    assert deliver() == 0
    assert "has this model already; nothing was pushed" in capsys.readouterr().out
    repository = hub.repositories[NAME]
    assert (len(repository.commits), len(repository.tags)) == (2, 1)
    assert not [path for _, path, _, _ in hub.asked[sent:] if re.search("commit|preupload|lfs", path)]


def test_the_next_model_replaces_the_files_of_the_last_one(hub, blessed):
    push_model(blessed / "run", "1700000001", parts=2)
    assert deliver() == 0
    push_model(blessed / "run", "1700000002", b"\0other")
    assert deliver() == 0
    repository = hub.repositories[NAME]
    assert (len(repository.commits), len(repository.tags)) == (3, 2)
    weights = sorted(name for name in repository.files if "variables.data" in name)
    assert weights == ["saved_model/variables/variables.data-00000-of-00001"]
    assert list(repository.tags.values()) == [repository.sha(1), repository.sha(2)]
    write(blessed, license="mit")
    assert deliver() == 0
    assert (len(repository.commits), len(repository.tags)) == (4, 3), "another license is another version"


def test_a_push_that_ended_before_its_tag_is_completed(hub, blessed):
    hub.refuse["/tag/"] = (503, {})
    assert deliver() == 1
    assert hub.repositories[NAME].tags == {}
    hub.refuse.clear()
    assert deliver() == 0
    repository = hub.repositories[NAME]
    assert len(repository.commits) == 2
    assert list(repository.tags.values()) == [repository.sha()]


def test_the_card_has_the_metadata_that_the_hub_reads(hub, blessed):
    (blessed / "about.md").write_text("## Intended use\n\nTo watch clouds.\n")
    write(blessed, about="about.md")
    assert deliver() == 0
    text = hub.repositories[NAME].files["README.md"].decode()
    from huggingface_hub import ModelCard

    card = ModelCard(text)
    assert (card.data.license, card.data.library_name) == ("apache-2.0", "shardwright")
    assert (card.data.pipeline_tag, card.data.metrics) == ("image-segmentation", ["mean_dice"])
    (result,) = card.data.eval_results
    assert (result.task_type, result.metric_type, result.metric_value) == ("image-segmentation", "mean_dice", 0.5)
    assert (result.dataset_name, result.dataset_split) == ("clouds", "test")
    assert "| dice/Fish | 0.25 |" in text.replace("\\", "")
    assert "30 images of test, 24x40 pixels" in text
    assert "To watch clouds." in text
    assert "To be written" not in text
    assert "somebody" not in text
    assert str(blessed) not in text


def test_a_dry_run_needs_no_token_and_sends_nothing(hub, blessed, monkeypatch, capsys):
    monkeypatch.delenv("HF_TOKEN")
    assert deliver("--dry-run", "--json") == 0
    shown = json.loads(capsys.readouterr().out)
    assert deliver("--dry-run") == 0
    assert "README.md" in capsys.readouterr().out
    assert not hub.asked
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    assert deliver() == 0
    repository = hub.repositories[NAME]
    assert list(repository.tags) == [shown["tag"]]
    assert shown["files"] == {n: len(c) for n, c in repository.files.items() if n != ".gitattributes"}


def test_the_token_is_in_the_header_of_requests_and_nowhere_else(hub, blessed, capfd):
    write(blessed, app=True)
    assert deliver() == 0
    hub.refuse["."] = (500, {"X-Error-Message": f"you sent {TOKEN}"})
    assert deliver() == 1
    hub.refuse["."] = (403, {"X-Error-Message": f"you sent {TOKEN}"})
    assert deliver() == 2
    printed = capfd.readouterr()
    secret = TOKEN.encode()
    assert TOKEN not in printed.out + printed.err
    assert "you sent …" in printed.err
    assert not [path for _, path, _, body in hub.asked if secret in body or TOKEN in path]
    assert [(method, path) for method, path, known, _ in hub.asked if not (known or path.startswith("/lfs/"))] == []
    assert not [file for file in blessed.rglob("*") if file.is_file() and secret in file.read_bytes()]
    config = load_config("clouds.yaml")
    assert TOKEN not in str(config)
    assert "push" not in config.to_dict()


def test_the_library_sends_nothing_of_its_own():
    program = (
        "from shardwright.config import HubConfig\n"
        "from shardwright.pipelines.hub.push_model import read_token\n"
        "read_token(HubConfig(repository='a/b', license='mit'))\n"
        "from huggingface_hub import constants\n"
        "assert constants.HF_HUB_DISABLE_TELEMETRY and constants.HF_HUB_DISABLE_PROGRESS_BARS\n"
    )
    environment = {name: value for name, value in os.environ.items() if not name.startswith("HF_")}
    subprocess.run([sys.executable, "-c", program], env={**environment, "HF_TOKEN": TOKEN}, check=True)


def test_a_token_in_the_configuration_is_refused_without_being_shown():
    for key in ("token_env", "token"):
        with pytest.raises(ConfigError) as error:
            parse_config({"input": {"images": "x"}, "push": {"hub": {**HUB, key: TOKEN}}}, base=".")
        assert TOKEN not in str(error.value)


@pytest.mark.parametrize(
    ("hub_section", "said"),
    [
        ({"repository": NAME}, "push.hub.license"),
        ({"license": "mit"}, "push.hub.repository"),
        ({**HUB, "repository": "clouds"}, "OWNER/NAME"),
        ({**HUB, "repository": "a/b/c"}, "OWNER/NAME"),
        ({**HUB, "repository": "a/.."}, "OWNER/NAME"),
        ({**HUB, "license": ""}, "push.hub.license"),
        ({**HUB, "license": "Apache 2"}, "apache-2.0"),
    ],
)
def test_what_a_hub_would_refuse_is_refused_before(hub_section, said):
    with pytest.raises(ConfigError, match=re.escape(said)):
        parse_config({"input": {"images": "x"}, "push": {"hub": hub_section}}, base=".")


@pytest.mark.parametrize(
    ("path", "status", "headers", "code", "said"),
    [
        ("create", 401, {}, 2, "does not take the token of HF_TOKEN (401)"),
        ("create", 403, {"X-Error-Message": "not your team"}, 2, "(403: not your team)"),
        ("/models/", 403, {"X-Error-Code": "GatedRepo", "X-Error-Message": "gated"}, 2, "gated repository"),
        ("/models/", 404, {"X-Error-Code": "RepoNotFound"}, 2, "no such owner or repository (404)"),
        ("/commit/", 409, {}, 1, "somebody else has pushed there meanwhile (409)"),
        ("create", 429, {}, 1, "cannot answer now (429)"),
        ("create", 500, {}, 1, "cannot answer now (500)"),
        ("/tag/", 503, {}, 1, "cannot answer now (503)"),
        ("/lfs/[0-9a-f]", 403, {}, 2, "(403"),
        ("/commit/", 400, {"X-Error-Message": "too many files"}, 2, "too many files"),
    ],
)
def test_each_refusal_is_one_message(hub, blessed, capsys, path, status, headers, code, said):
    hub.refuse[path] = (status, headers)
    assert deliver() == code
    error = capsys.readouterr().err
    message = [line for line in error.splitlines() if "push.hub" in line]
    assert len(message) == 1, error
    assert said in message[0]
    assert "Traceback" not in error


def test_what_others_push_meanwhile_is_not_overwritten(hub, blessed, capsys):
    def other():
        repository = hub.repositories[NAME]
        repository.commits.append(({**repository.files, "README.md": b"by hand"}, "by hand"))

    hub.before_commit = other
    assert deliver() == 1
    assert "Push again" in capsys.readouterr().err
    assert hub.repositories[NAME].files["README.md"] == b"by hand"


def test_a_public_repository_gets_no_model_that_is_to_be_private(hub, blessed, capsys):
    write(blessed, private=False)
    assert deliver() == 0
    write(blessed)
    push_model(blessed / "run", "1700000003", b"\0secret")
    assert deliver() == 2
    assert "is public" in capsys.readouterr().err
    assert len(hub.repositories[NAME].commits) == 2


def test_an_unknown_license_is_said_in_the_words_of_the_hub(hub, blessed, capsys):
    write(blessed, license="beerware-9")
    assert deliver() == 2
    error = capsys.readouterr().err
    assert "must be one of [apache-2.0" in error
    assert len(hub.repositories[NAME].commits) == 1


def test_without_a_network_without_the_library_without_a_token(hub, blessed, monkeypatch, capsys):
    hub.server_close()
    assert deliver() == 1
    assert "the hub of my-team/clouds does not answer" in capsys.readouterr().err
    monkeypatch.setenv("HF_TOKEN", " ")
    assert deliver() == 2
    assert "HF_TOKEN has no token" in capsys.readouterr().err
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    assert deliver() == 2
    assert "pip install 'shardwright[hub]'" in capsys.readouterr().err


def test_no_blessed_model_no_push(hub, blessed, capsys):
    (blessed / "run/pushed/BLESSED.json").unlink()
    assert deliver() == 2
    assert "no model was blessed there yet" in capsys.readouterr().err
    assert deliver("--pushed", "elsewhere") == 2
    assert not hub.asked


def test_a_run_pushes_what_it_blessed_and_keeps_an_error_for_the_end(hub, blessed, monkeypatch):
    config = load_config("clouds.yaml")
    made = local_run._push_to_hub(config, blessed / "run", "clouds.yaml", {})
    assert made.pushed
    assert local_run._push_to_hub(config, blessed / "run", "clouds.yaml", {}).pushed is False
    hub.refuse["."] = (500, {})
    failed = local_run._push_to_hub(config, blessed / "run", "clouds.yaml", {"trainer.epochs": 3})
    assert isinstance(failed, StorageError)
    assert "The run is complete" in str(failed)
    assert f"deliver clouds.yaml --set trainer.epochs=3 --hub --pushed {blessed}/run/pushed" in str(failed)
    monkeypatch.delenv("HF_TOKEN")
    with pytest.raises(UsageError, match="HF_TOKEN has no token"):
        local_run.run_local("clouds.yaml")
    assert not (blessed / "shardwright-runs").exists()


@pytest.mark.parametrize("option", ["--kserve", "--roll-back"])
def test_ways_to_deliver_exclude_each_other(blessed, option):
    with pytest.raises(SystemExit):
        deliver(option)
    assert main(["deliver", "clouds.yaml", "--pushed", "x"]) == 2
    assert deliver("--traffic", "10") == 2


def test_a_configuration_without_a_repository_gets_an_example(hub, blessed, capsys):
    text = yaml.safe_load((blessed / "clouds.yaml").read_text())
    del text["push"]
    (blessed / "clouds.yaml").write_text(yaml.safe_dump(text))
    assert deliver() == 2
    example = yaml.safe_load(re.search(r"example (push: .*}})\.", capsys.readouterr().err)[1])
    assert parse_config({**text, **example}, base=".").push.hub.repository


class Served(tf.Module):
    """A model with the signature of ours: masks, or probabilities of an image."""

    def __init__(self, masks):
        self.masks = masks

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def serve(self, image_bytes):
        count = tf.size(image_bytes)
        if self.masks:
            return {"masks": tf.tile(tf.ones([1, 8, 12, 2], tf.uint8), [count, 1, 1, 1])}
        return {"probabilities": tf.tile([[0.25, 0.75]], [count, 1])}


@pytest.mark.parametrize("masks", [False, True])
def test_the_app_shows_what_the_model_answers(hub, blessed, monkeypatch, masks):
    """Gradio is a stand-in: a class with the functions that the page calls."""
    write(blessed, app=True)
    assert deliver() == 0
    files = hub.repositories[NAME].files
    assert "gradio" in files["requirements.txt"].decode()
    model = Served(masks)
    tf.saved_model.save(model, str(blessed / "down/saved_model"), signatures={"serving_default": model.serve})
    (blessed / "down/saved_model/assets/classes.json").write_bytes(files["saved_model/assets/classes.json"])
    (blessed / "down/app.py").write_bytes(files["app.py"])
    Image.new("RGB", (6, 4), (9, 9, 9)).save(blessed / "photo.png")

    def interface(function, picture, answer, title):
        return SimpleNamespace(function=function, answer=answer, launch=lambda: pytest.fail("it is only imported"))

    parts = {name: lambda name=name, **_: name for name in ("Image", "AnnotatedImage", "Label")}
    monkeypatch.setitem(sys.modules, "gradio", SimpleNamespace(Interface=interface, **parts))
    page = runpy.run_path(str(blessed / "down/app.py"))["page"]
    shown = page.function(str(blessed / "photo.png"))
    if not masks:
        assert (page.answer, shown) == ("Label", {"Fish": 0.25, "Sugar": 0.75})
        return
    picture, regions = shown
    assert (page.answer, picture.shape) == ("AnnotatedImage", (8, 12, 3))
    assert (picture == 9).all()
    assert [(mask.shape, name) for mask, name in regions] == [((8, 12), "Fish"), ((8, 12), "Sugar")]
