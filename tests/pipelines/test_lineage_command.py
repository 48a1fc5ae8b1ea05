"""`lineage`: every ancestor by digest, in any folder; it reports what is missing or was changed."""

import json
import shutil

import pytest
from descent import Months
from object_stores import SCHEMES, running_stores

from shardwright.edit.delete import datasets_containing, trained_on
from shardwright.errors import DatasetError
from shardwright.lineage.ancestry import Artifact, Family, artifact_at, find_artifacts, read_artifact
from shardwright.lineage.record import IMAGE_VARIABLE, files_digest, write_lineage
from shardwright.pipelines.cli import main


@pytest.fixture(scope="module")
def made(small_dataset, tmp_path_factory):
    return Months(tmp_path_factory.mktemp("months") / "run", small_dataset)


@pytest.fixture
def months(made, tmp_path):
    """A copy that a test may change."""
    shutil.copytree(made.root, tmp_path / "run")
    copy = object.__new__(Months)
    copy.root = tmp_path / "run"
    for name in ("datasets", "models"):
        places = {month: copy.root / place.relative_to(made.root) for month, place in getattr(made, name).items()}
        setattr(copy, name, places)
    return copy


def result(capsys, *arguments, code=0):
    assert main(["lineage", *map(str, arguments), "--json"]) == code
    return json.loads(capsys.readouterr().out)


def test_a_model_descends_from_both_datasets_and_the_model_it_began_with(made, capsys):
    found = result(capsys, made.models[3], "--search", made.root / "artifacts")
    places = {row["place"]: row for row in found["artifacts"]}
    assert {str(made.datasets[1]), str(made.datasets[3]), str(made.models[1])} <= set(places)
    assert str(made.datasets[2]) not in places
    assert places[str(made.models[3])]["parents"]["warm_start"]["place"] == str(made.models[1])
    assert places[str(made.datasets[3])]["data"] == "0" * 64
    assert places[str(made.models[3])]["recipe"] == {"epochs": 3}
    assert "python" in places[str(made.models[3])]["versions"]
    assert [one["place"] for one in found["evaluations"]] == [str(made.evaluation)]
    assert found["missing"] == found["problems"] == []


def test_as_text_every_ancestor_is_shown_once(made, capsys):
    assert main(["lineage", str(made.root), "--search", str(made.root / "artifacts")]) == 0
    out = capsys.readouterr().out
    assert out.startswith(f"model {read_artifact(str(made.models[3])).fingerprint[:12]} {made.models[3]}\n")
    assert out.count(str(made.datasets[1])) == 1
    assert "(above)" in out
    assert "compared with" in out


def test_a_missing_parent_is_reported(months, capsys):
    shutil.rmtree(months.datasets[1])
    found = result(capsys, months.root, "--search", months.root / "artifacts")
    assert len(found["missing"]) == 2
    assert all("in none of the places searched" in line for line in found["missing"])
    assert main(["lineage", str(months.root), "--search", str(months.root / "artifacts")]) == 0
    assert "was not found; --search DIR looks further" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("file", "before", "after", "output"),
    [
        (
            "artifacts/ImageExampleGen/examples/3/lineage.json",
            '"input": "0',
            '"input": "1',
            "changed after it was written",
        ),
        ("artifacts/ImageExampleGen/examples/3/manifest.json", '"records":5', '"records":6', "digest does not match"),
        ("pushed/3/saved_model.pb", "model", "madel", "its files are not those that it was made with"),
        ("pushed/3/saved_model.pb", "model", "madel", "its files are not those that BLESSED.json blessed"),
        (
            "artifacts/ImageTransform/transformed_examples/3/lineage.json",
            "transform_graph",
            "evaluated",
            "changed after",
        ),
    ],
)
def test_changes_are_reported(months, capsys, file, before, after, output):
    text = (months.root / file).read_text()
    assert before in text
    (months.root / file).write_text(text.replace(before, after))
    found = result(capsys, months.root, "--search", months.root / "artifacts", code=1)
    assert any(output in problem for problem in found["problems"]), found["problems"]


def test_a_lineage_with_a_new_digest_that_contradicts_its_manifest_is_reported(months, capsys):
    place = months.datasets[3]
    fingerprint = read_artifact(str(place)).fingerprint
    write_lineage(place, kind="ingest", fingerprint=fingerprint, parents={"input": "1" * 64}, recipe={})
    found = result(capsys, place, code=1)
    assert "lineage.json and manifest.json do not agree: parent 111111111111 and 000000000000" in found["problems"][0]


def test_what_strangers_write_is_no_crash(months, capsys):
    for text in (
        "",
        "[]",
        "{}",
        '{"kind": 1}',
        '{"kind": "x", "fingerprint": "y", "parents": [1], "recipe": {}}',
        "\udcff",
    ):
        (months.datasets[1] / "lineage.json").write_text(text, errors="surrogateescape")
        found = result(capsys, months.root, "--search", months.root / "artifacts", code=1)
        assert any("lineage.json" in problem for problem in found["problems"])
    write_lineage(
        months.datasets[1], kind="\x1b[2Jx", fingerprint="f", parents={"a\nb": "c\x07"}, recipe={"\x1b": "\n"}
    )
    main(["lineage", str(months.datasets[1])])
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert "\x07" not in out


@pytest.mark.parametrize("recipe", ['{"a": NaN}', '{"a": "\\ud800"}', "[" * 100_000])
def test_recipes_that_no_reader_takes_are_reported(months, capsys, recipe):
    text = f'{{"kind": "x", "fingerprint": "y", "parents": {{}}, "recipe": {recipe}}}'
    (months.datasets[1] / "lineage.json").write_text(text)
    assert "lineage.json" in result(capsys, months.datasets[1], code=1)["problems"][0]
    assert main(["lineage", str(months.datasets[1])]) == 1


def test_parents_that_name_each_other_end(tmp_path, capsys):
    for one, other in (("a", "b"), ("b", "a")):
        (tmp_path / one).mkdir()
        write_lineage(tmp_path / one, kind="model", fingerprint=one, parents={"dataset": other}, recipe={})
    assert len(result(capsys, tmp_path / "a")["artifacts"]) == 2
    assert main(["lineage", str(tmp_path / "a")]) == 0


def test_a_place_without_lineage_is_refused(tmp_path, capsys):
    assert main(["lineage", str(tmp_path)]) == 1
    assert "no lineage.json and no blessed model" in capsys.readouterr().err
    (tmp_path / "BLESSED.json").write_text('{"model": "../x"}')
    with pytest.raises(DatasetError, match="no blessed model"):
        artifact_at(str(tmp_path))
    write_lineage(tmp_path, kind="model", fingerprint="f", parents={}, recipe={})
    assert main(["lineage", str(tmp_path), "--search", str(tmp_path / "no")]) == 2
    assert "is not a folder" in capsys.readouterr().err


def test_models_are_known_by_what_they_were_trained_on(made):
    """Model 3 was begun with model 1; its dataset kept splits from dataset 1, which alone would prove nothing."""
    family = Family(find_artifacts(str(made.root)))

    def trained(key):
        return {one.place for one in trained_on(family, datasets_containing(family, {key}).records)}

    assert trained("train/0002") == {str(made.models[1]), str(made.models[3])}
    assert trained("train/0004") == {str(made.models[3])}
    assert {one.place for one in datasets_containing(family, {"train/0003"}).records} == {
        str(made.datasets[2]),
        str(made.datasets[3]),
    }
    assert trained("no such") == set()


def test_an_image_is_recorded_where_the_environment_names_one(tmp_path, monkeypatch):
    monkeypatch.setenv(IMAGE_VARIABLE, "registry/shardwright@sha256:aa")
    write_lineage(tmp_path, kind="model", fingerprint="f", parents={}, recipe={})
    assert read_artifact(str(tmp_path)) == Artifact(
        str(tmp_path),
        "model",
        "f",
        versions=read_artifact(str(tmp_path)).versions,
        image="registry/shardwright@sha256:aa",
    )


@pytest.mark.slow
@pytest.mark.parametrize("scheme", SCHEMES)
def test_on_a_bucket(made, capsys, scheme):
    with running_stores() as stores:
        url = stores.bucket(scheme)
        stores.copy_of(made.root, f"{url}/run")
        assert files_digest(f"{url}/run/pushed/3") == files_digest(str(made.models[3]))
        found = result(capsys, f"{url}/run/pushed/3", "--search", f"{url}/run/artifacts")
        assert {row["kind"] for row in found["artifacts"]} == {"model", "transform_graph", "ingest"}
        assert len(found["artifacts"]) == 6
        assert found["missing"] == found["problems"] == []
        assert result(capsys, f"{url}/run")["artifact"] == f"{url}/run/pushed/3"
        stores.write(f"{url}/run/pushed/1/saved_model.pb", b"other")
        assert "its files are not" in result(capsys, f"{url}/run/pushed/3", code=1)["problems"][0]
