"""ImageTransform between buckets: input, staging and artifacts on an object store, workers on other machines."""

import tempfile

import build
import pytest
import tensorflow as tf
import tensorflow_transform as tft
from killed_transform import killed_transform
from object_stores import running_stores
from tfx.types import standard_artifacts

from shardwright.components.image_transform import executor
from shardwright.components.image_transform.transform_recipe import transform_recipe
from shardwright.dataset.reader import ImageDataset
from shardwright.errors import UsageError

pytestmark = pytest.mark.slow

KINDS = {
    "transformed_examples": standard_artifacts.Examples,
    "transform_graph": standard_artifacts.TransformGraph,
    "post_transform_stats": standard_artifacts.ExampleStatistics,
    "post_transform_schema": standard_artifacts.Schema,
}
RECIPE = transform_recipe(build.config(transform={"size": [20, 30], "text": {"site/name": {"vocabulary": 5}}}))
PROCESSES = ["--runner=DirectRunner", "--direct_running_mode=multi_processing", "--direct_num_workers=2"]


def run(source, root, *options):
    """Runs the executor; `source` and `root` are folders or URLs."""
    examples = standard_artifacts.Examples()
    examples.uri = source
    outputs = {name: kind() for name, kind in KINDS.items()}
    for name, artifact in outputs.items():
        artifact.uri = f"{root}/{name}"
    context = executor.Executor.Context(list(options), tmp_dir=f"{tempfile.gettempdir()}/tfx", unique_id="1")
    executor.Executor(context).Do(
        {"examples": [examples]}, {name: [one] for name, one in outputs.items()}, {"recipe": RECIPE}
    )
    return outputs


@pytest.fixture(scope="module")
def given(small_dataset, tmp_path_factory):
    """A dataset of five shards with a text for each image."""
    return small_dataset(
        tmp_path_factory.mktemp("in"),
        counts={"train": [1, 2, 2], "eval": [1], "test": [0]},
        change=lambda number, example: {**example, "site/name": f"near word{number % 3}".encode()},
    )


@pytest.fixture(scope="module")
def local(given, tmp_path_factory):
    """The output of the component on one machine."""
    root = tmp_path_factory.mktemp("local")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SHARDWRIGHT_STAGING", str(root / "staging"))
        run(str(given), str(root / "out"))
    files = sorted(file for file in (root / "out").rglob("*") if file.is_file())
    return {file.relative_to(root / "out").as_posix(): file.read_bytes() for file in files}


def bytes_of(tree):
    """All but the SavedModel: TensorFlow numbers its functions by what the process traced before."""
    return {name: data for name, data in tree.items() if "transform_fn" not in name}


def test_after_a_kill_another_machine_ends_with_the_bytes_of_a_local_run(given, local, tmp_path, monkeypatch):
    """On one of the stores, with Beam's worker processes; tests of the storage hold both alike."""
    with running_stores() as stores:
        bucket = stores.bucket("gs")
        stores.copy_of(given, f"{bucket}/examples")
        monkeypatch.setenv("SHARDWRIGHT_STAGING", f"{bucket}/staging")
        monkeypatch.setenv("TMPDIR", str(tmp_path / "first"))
        (tmp_path / "first").mkdir()
        killed_transform(f"{bucket}/examples", f"{bucket}/staging", RECIPE)
        done = [name for name in stores.tree(f"{bucket}/staging") if "/done/" in name]
        assert 0 < len(done) < 5

        # Workers get no folder of the machine that starts them.
        (tmp_path / "second").mkdir()
        monkeypatch.setenv("TMPDIR", str(tmp_path / "second"))
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "second"))
        stores.requests.clear()
        outputs = run(f"{bucket}/examples", f"{bucket}/out", *PROCESSES)
        made = stores.tree(f"{bucket}/out")
        assert bytes_of(made) == bytes_of(local)
        assert not stores.tree(f"{bucket}/staging")
        assert not list((tmp_path / "second").rglob("*.tfrecord"))
        texts = [path for method, path in stores.requests if method in ("POST", "PUT") and "texts" in path]
        assert texts == [], "texts that were kept are read again"
    assert outputs["transformed_examples"].split_names == '["eval", "test", "train"]'
    assert outputs["post_transform_stats"].split_names == '["eval", "test", "train"]'

    # The graph that was uploaded serves what the local one serves.
    for name, tree in (("made", made), ("local", local)):
        for file, data in tree.items():
            (tmp_path / name / file).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name / file).write_bytes(data)
    encoded = ImageDataset.open(given).example("train/0001")
    graphs = [tft.TFTransformOutput(str(tmp_path / name / "transform_graph")) for name in ("made", "local")]
    data = tf.constant([encoded.encoded])
    served = [graph.transform_raw_features({"image/encoded": data}) for graph in graphs]
    assert all((served[0][name].numpy() == served[1][name].numpy()).all() for name in ("image", "statistics/mean"))


@pytest.mark.parametrize("where", ["examples", "staging"])
def test_folders_that_workers_of_dataflow_cannot_reach_are_refused(given, tmp_path, monkeypatch, where):
    with running_stores() as stores:
        bucket = stores.bucket("gs")
        stores.copy_of(given, f"{bucket}/examples")
        monkeypatch.setenv("SHARDWRIGHT_STAGING", str(tmp_path) if where == "staging" else f"{bucket}/staging")
        source = str(given) if where == "examples" else f"{bucket}/examples"
        with pytest.raises(UsageError, match=rf"the {where}.*is a folder of this machine.*gs://BUCKET/FOLDER"):
            run(source, f"{bucket}/out", "--runner=DataflowRunner")
