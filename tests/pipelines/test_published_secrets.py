"""No secret and no folder of the machine is in what commands write or print.

The fields are those of the configuration's classes, so a new one is tested without being listed here.
"""

import base64
import dataclasses
import gzip
import io
import re
import typing
import zipfile
import zlib

import build
import pytest

from shardwright.config import Config, parse_config
from shardwright.errors import ConfigError
from shardwright.pipelines.cli import main
from shardwright.storage.durable import make_folder

MARK = "MARKOFASECRET"
HOME = "MARKOFAHOME"
_BASE64 = re.compile(rb"[A-Za-z0-9+/]{24,}={0,2}")
# The sections are below these keys, which a user chooses.
_KEYS = {"kubeflow.pods": "all", "kubeflow.resources": "Trainer", "kubeflow.tolerations": "Trainer"}


def string_fields(cls=Config, path=""):
    """Yields the YAML path of every field that takes a text, and how a text becomes its value."""
    hints = typing.get_type_hints(cls)
    for field in dataclasses.fields(cls):
        if not field.metadata.get("key", True):
            continue
        yield from _of_type(hints[field.name], f"{path}.{field.name}".removeprefix("."), lambda value: value)


def _of_type(kind, path, wrap):
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if kind is str:
        yield path, wrap
    elif dataclasses.is_dataclass(kind):
        hints = typing.get_type_hints(kind)
        for field in dataclasses.fields(kind):
            if field.metadata.get("key", True):
                yield from _of_type(
                    hints[field.name],
                    f"{path}.{field.name}",
                    lambda value, name=field.name: wrap({name: value}),
                )
    elif origin is tuple:
        yield from _of_type(inner[0], path, lambda value: wrap([value]))
    elif origin is not None and issubclass_of_mapping(origin):
        key = _KEYS.get(path, "a")
        yield from _of_type(inner[1], path, lambda value: wrap({key: value}))
    else:
        for one in inner:
            yield from _of_type(one, path, wrap)


def issubclass_of_mapping(origin):
    return isinstance(origin, type) and issubclass(origin, typing.get_origin(typing.Mapping[str, str]))


FIELDS = {path: wrap for path, wrap in string_fields() if path}


def raw_of(path, value):
    """Returns the raw configuration with a text at a path; `wrap` has built all below the section."""
    raw = {"input": {"images": "images/*.jpg"}}
    section, *_ = path.split(".")
    given = FIELDS[path](value)
    if isinstance(raw.get(section), dict) and isinstance(given, dict):
        given = {**raw[section], **given}
    return {**raw, section: given}


def test_the_fields_are_found():
    assert len(FIELDS) > 90
    for path in ("input.images", "kubeflow.pods.env", "vertex.trainer.env", "beam.options", "vertex.notify.emails"):
        assert path in FIELDS, path


@pytest.mark.parametrize("path", FIELDS)
def test_credentials_in_a_url_are_refused_in_every_field(path):
    for value in (f"https://anna:{MARK}@example.org/x", f"gs://bucket/x?X-Goog-Signature={MARK}"):
        with pytest.raises(ConfigError) as caught:
            parse_config(raw_of(path, value), base="/")
        assert MARK not in str(caught.value)


@pytest.mark.parametrize("path", [path for path in FIELDS if path.endswith(".env")])
def test_secrets_are_refused_as_values_of_variables(path):
    name = {"all": {"env": {"API_TOKEN": f"{MARK}-of-a-service"}}}
    raw = {"kubeflow": {"pods": name}} if path.startswith("kubeflow") else {"vertex": {"trainer": name["all"]}}
    raw.setdefault("vertex", {}).setdefault("trainer", {})["machine"] = "g2-standard-8"
    raw["vertex"]["trainer"] |= {"gpu": "NVIDIA_L4", "gpus": 1}
    with pytest.raises(ConfigError) as caught:
        build.config(**raw)
    assert MARK not in str(caught.value)
    assert "API_TOKEN" in str(caught.value)
    assert "Secret" in str(caught.value)


def contents(data, depth=3):
    """Yields bytes, and what is packed in them: gzip, zlib, ZIP and base64."""
    yield data
    if not depth:
        return
    try:
        if data[:2] == b"\x1f\x8b":
            yield from contents(gzip.decompress(data), depth - 1)
        elif data[:2] == b"PK":
            with zipfile.ZipFile(io.BytesIO(data)) as archive:
                for name in archive.namelist():
                    yield from contents(archive.read(name), depth - 1)
        elif data[:1] == b"\x78":
            yield from contents(zlib.decompress(data), depth - 1)
    except (OSError, EOFError, zlib.error, zipfile.BadZipFile):
        pass
    for found in _BASE64.findall(data):
        try:
            yield from contents(base64.b64decode(found + b"=" * (-len(found) % 4)), depth - 1)
        except ValueError:
            continue


def leaks(folder, *marks):
    """Returns the files below a folder that contain one of the marks, or its name in UTF-16."""
    forms = [form for mark in marks for form in (mark.encode(), mark.encode("utf-16-le"), mark[::-1].encode())]
    return {
        f"{file.relative_to(folder)}: {mark}"
        for file in sorted(folder.rglob("*"))
        if file.is_file() and not file.is_symlink()
        for mark in forms
        if any(mark in data for data in contents(file.read_bytes()))
    }


def test_the_search_finds_what_is_packed(tmp_path):
    packed = gzip.compress(base64.b64encode(b"a long text before " + MARK.encode()))
    (tmp_path / "x").write_bytes(packed)
    assert leaks(tmp_path, MARK)


@pytest.fixture
def project(tmp_path, image_input, monkeypatch):
    """A configuration with a mark in each place that may have one, in a folder whose path is one, too."""
    folder = tmp_path / HOME / "project"
    make_folder(folder)
    raw = image_input(folder / "in", layout="image_label", images=24)
    inside = str(folder / "in")
    text = f"""
input: {raw["input"]!r}
split: {{ratios: {{train: 60%, eval: 20%, test: 20%}}}}
rejects: {{max_fraction: 0.5}}
run: {{root: {HOME}-runs/x, staging: {inside}-staging}}
beam: {{options: [--labels={MARK}]}}
kubeflow:
  image: registry.example.org/{MARK.lower()}:1
  pods:
    all:
      env: {{A: {MARK}}}
      secret_env: {{B: {MARK.lower()}/key}}
      annotations: {{example.org/a: {MARK}}}
      labels: {{a: {MARK}}}
vertex:
  trainer: {{machine: g2-standard-8, gpu: NVIDIA_L4, gpus: 1, env: {{A: {MARK}}}}}
  notify: {{emails: [{MARK}@example.org]}}
"""
    (folder / "photos.yaml").write_text(text)
    (folder / "in" / "images" / "003.jpg").write_bytes(b"no image")
    monkeypatch.chdir(folder)
    return folder


def test_no_command_writes_or_prints_them(project, capfd):
    calls = [
        "ingest photos.yaml --out ds",
        "validate photos.yaml",
        "inspect ds",
        "stats ds",
        "verify ds",
        "card ds --out card.md",
        "card ds --croissant --out card.json",
        "report ds --out page.html",
        "subset ds --out part --share 0.5",
        "reshard ds --out other --shard-count 2",
        "retry-rejects photos.yaml ds --out again",
        "export ds --out files",
        "lineage ds",
        "diff ds part",
    ]
    failing = {"diff": (1,), "retry-rejects": (1,)}
    before = {path.name for path in project.iterdir()}
    for call in calls:
        code = main(call.split())
        shown = "".join(capfd.readouterr())
        assert code in (0, *failing.get(call.split()[0], ())), (call, shown)
        assert MARK not in shown, call
    made = [path for path in project.iterdir() if path.name not in before]
    assert len(made) >= 7
    for place in made:
        found = leaks(place, MARK, HOME) if place.is_dir() else leaks(project, MARK, HOME)
        assert {one for one in found if not one.startswith("photos.yaml")} == set(), place.name


@pytest.mark.slow
@pytest.mark.parametrize("target", ["kubeflow", "vertex"])
def test_a_compiled_document_refers_to_secrets_and_names_no_folder_of_the_machine(project, capfd, target):
    """Values of `env` are in the document, since pods need them; what looks like a secret was refused before."""
    text = (project / "photos.yaml").read_text()
    places = {
        "kubeflow": "kubeflow:\n  pipeline_root: gs://my-bucket/k\n  data_root: gs://my-bucket/in\n"
        "  push_directory: /models\n  volumes: [{claim: models, path: /models}]\n",
        "vertex": "vertex:\n  project: my-project\n  region: europe-west4\n  pipeline_root: gs://my-bucket/v\n"
        "  data_root: gs://my-bucket/in\n  image: registry.example.org/x:1\n"
        "  service_account: a@my-project.iam.gserviceaccount.com\n",
    }
    text = text.replace(f"{target}:\n", places[target]).replace(
        f"run: {{root: {HOME}-runs/x, staging: {project}/in-staging}}\n", ""
    )
    (project / "photos.yaml").write_text(text)
    name = "document.json" if target == "vertex" else "document.yaml"
    assert main(["compile", "photos.yaml", "--target", target, "--out", name]) == 0, capfd.readouterr()
    document = (project / name).read_bytes()
    assert not [data for data in contents(document) if HOME.encode() in data]
    assert (b"secretAsEnv" in document) == (target == "kubeflow")
