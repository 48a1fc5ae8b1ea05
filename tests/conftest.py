"""Fixtures for all tests."""

import gc
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import first_cases
import prefork
import pytest
from hypothesis import settings

from shardwright.checksum import checksum_of
from shardwright.processes import gc_paused

# No wall time decides a test, and every machine tries the same examples. The other stack tries the first of them again
# (`few`, tools/run_tests), and `make soak` many.
for _profile, _examples in {"few": 5, "dev": 25, "thorough": 400}.items():
    settings.register_profile(_profile, deadline=None, derandomize=True, database=None, max_examples=_examples)
settings.load_profile(os.environ.get("SHARDWRIGHT_EXAMPLES", "dev"))

# Collections find next to nothing in tests, and took a fifteenth of the time of those that parse sources.
gc.set_threshold(20_000, 20, 50)

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")


def pytest_configure(config: pytest.Config) -> None:
    """Processes that tests start are forks of one server (`tests/support/prefork.py`), shared by all test processes."""
    if prefork.FOLDER in os.environ:
        prefork.install(Path(os.environ[prefork.FOLDER]))
    else:
        folder = Path(tempfile.mkdtemp(prefix="shardwright-prefork-"))
        prefork.install(folder)
        config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """A test process of pytest-xdist is a fork, too: nobody waits for it who would count its processor time."""
    if hasattr(session.config, "workerinput"):
        prefork.record_own_time()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Processor time of the forks, which `tools/timed` adds to that of the test processes; with `-v` by command."""
    spent = prefork.calls(Path(os.environ.get(prefork.FOLDER, os.devnull)))
    terminalreporter.write_line(
        f"forked processes: {sum(map(sum, spent.values())):.1f} s of processor time in {sum(map(len, spent.values()))}"
    )
    if terminalreporter.verbosity > 0:
        for name, seconds in sorted(spent.items(), key=lambda item: -sum(item[1])):
            terminalreporter.write_line(f"  {sum(seconds):7.1f} s in {len(seconds):3d}: {name}")
    if shown := terminalreporter.config.option.durations:
        # Wall time depends on what else the machine does, and does not contain what others wait for.
        terminalreporter.write_sep("=", f"most processor time, {shown} tests")
        tests = prefork.tests(Path(os.environ.get(prefork.FOLDER, os.devnull)))
        for name, used in sorted(tests.items(), key=lambda item: -item[1])[:shown]:
            terminalreporter.write_line(f"{used:7.1f} s {name}")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Records the processor time of each test for `--durations`."""
    before = sum(os.times()[:4])
    yield
    prefork.record_test(item.nodeid, sum(os.times()[:4]) - before)


@pytest.hookimpl(hookwrapper=True)
def pytest_collection() -> Iterator[None]:
    """Collecting the tests imports TFX."""
    with gc_paused():
        yield


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """With `-m slow`, modules that do not contain the word are not imported: two of three."""
    if config.option.markexpr == "slow" and collection_path.suffix == ".py":
        return "slow" not in collection_path.read_text(encoding="utf-8") or None
    return None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out what takes many minutes or a cluster, if its marker is not named, and cases on the other stack."""
    if "two_stacks" in config.option.markexpr:
        items[:], rest = first_cases.split(items)
        config.hook.pytest_deselected(items=rest)
    unnamed = [marker for marker in ("soak", "cluster") if marker not in config.option.markexpr]
    left_out = [item for item in items if any(map(item.get_closest_marker, unnamed))]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if not any(map(item.get_closest_marker, unnamed))]


@pytest.fixture(scope="session", autouse=True)
def _no_waiting_for_the_disk() -> Iterator[None]:
    """Flushes nothing: a test's files need not survive a power failure. `power_cuts` sees what would be flushed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)
        yield


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real data; tests that need it are skipped without it."""
    root = Path(os.environ.get("SHARDWRIGHT_TEST_DATA", Path(__file__).parents[1] / "../shared/data")).resolve()
    if not root.is_dir():
        pytest.skip(f"no real data at SHARDWRIGHT_TEST_DATA ({root})")
    return root


@pytest.fixture(scope="session")
def small_dataset() -> Callable[..., Path]:
    """Writes a dataset of made-up examples, as `ImageExampleGen` would."""
    return _write_dataset


def _write_dataset(
    root: Path,
    *,
    task: str = "segmentation",
    counts: Mapping[str, Sequence[int]] | None = None,
    size: Callable[[int], tuple[int, int]] = lambda number: (24, 36),
    image_format: str = "png",
    classes: tuple[str, ...] = ("Fish", "Sugar"),
    change: Callable[[int, dict[str, Any]], dict[str, Any]] = lambda number, example: example,
    key_of: Callable[[str, int], str] = lambda split, number: f"{split}/{number:04d}",
) -> Path:
    """Writes shards of `counts[split]` records each; pixels and masks of an image follow from its number.

    `change` may alter the features of a record before it is written, `key_of` says its key. Returns the dataset's
    folder, `root / "dataset"`.
    """
    import io

    import numpy as np
    from PIL import Image

    from shardwright.dataset.manifest import mask_feature
    from shardwright.masks import rle
    from shardwright.staging import commit, staging
    from shardwright.tfrecords import encode, records

    def example(number: int, key: str) -> dict[str, Any]:
        height, width = size(number)
        random = np.random.default_rng(number)
        cells = Image.fromarray(random.integers(0, 256, (4, 5, 3), dtype=np.uint8))
        file = io.BytesIO()
        cells.resize((width, height), Image.Resampling.BICUBIC).save(file, image_format)
        features: dict[str, Any] = {
            "image/encoded": file.getvalue(),
            "image/format": image_format.encode(),
            "image/height": height,
            "image/width": width,
            "image/channels": 3,
            "image/orientation": 1,
            "image/filename": f"{key}.{image_format}".encode(),
            "image/key": key.encode(),
            "image/blake3": checksum_of(file.getvalue()).encode(),
        }
        if task == "classification":
            label = number % len(classes)
            return {**features, "image/class/label": label, "image/class/text": classes[label].encode()}
        present = []
        for index, name in enumerate(classes):
            top, left, down, right = np.sort(random.integers(0, 25, (2, 2)), axis=0).reshape(-1)
            mask = np.zeros((height, width), np.uint8)
            mask[top * height // 24 : down * height // 24, left * width // 24 : right * width // 24] = 1
            runs = rle.encode(mask)
            features[mask_feature(name, "rle")] = encode.ints(runs.reshape(-1))
            features[mask_feature(name, "area")] = rle.area(runs)
            present += [index] if len(runs) else []
        texts = encode.byte_strings([classes[index].encode() for index in present])
        return {**features, "image/class/label": encode.ints(present), "image/class/text": texts}

    counts = {"train": [3, 2], "eval": [2]} if counts is None else counts
    planned, number = {}, 0
    plan_fields = {"kind": "ingest", "task": task, "classes": classes, "recipe": {}, "parent": "0" * 64}
    fingerprint = checksum_of(str(root).encode())
    place = staging.Staging.open(root / "staging", fingerprint)
    kinds: dict[str, str] = {}
    for split, shards in sorted(counts.items()):
        for index, count in enumerate(shards):
            outcomes = []
            for _ in range(count):
                key = key_of(split, number)
                features = change(number, example(number, key))
                payload = encode.encode_example(features)
                for name, values in records.decode_example(payload).items():
                    kinds[name] = "bytes" if isinstance(values, list) else values.dtype.name
                outcomes.append(staging.RecordResult(key, payload))
                number += 1
            planned[staging.PlannedShard(split, index, len(shards))] = outcomes
    plan = commit.DatasetPlan(**plan_fields, features=kinds, inputs=number, shards=tuple(planned))
    for shard, outcomes in planned.items():
        place.write_shard(shard, outcomes, facts=plan.facts(shard))
    commit.commit(place, plan, root / "dataset", {})
    return root / "dataset"


@pytest.fixture(scope="session")
def image_input() -> Callable[..., dict[str, Any]]:
    """Writes images with annotations, as a user has them, and returns the configuration that reads them."""
    return _write_input


def _write_input(root: Path, *, layout: str = "image_label", images: int = 24, seed: int = 0) -> dict[str, Any]:
    """Writes `root/images` and, but for class folders, `root/labels.csv`.

    Layouts: `image_label` (clouds), `image_id_class_id` and `image_class` (Severstal), `label_csv`, `class_folders`.
    """
    import numpy as np
    from PIL import Image

    from shardwright.masks import rle

    classes = ("Fish", "Sugar")
    masked = layout.startswith("image_")
    header = {
        "image_label": "Image_Label,EncodedPixels",
        "image_id_class_id": "ImageId_ClassId,EncodedPixels",
        "image_class": "ImageId,ClassId,EncodedPixels",
        "label_csv": "image,label",
        "class_folders": "",
    }[layout]
    rows = []
    for number in range(images):
        random = np.random.default_rng([seed, number])
        height, width = 20 + number % 5, 30
        label = number % len(classes)
        name = f"{classes[label]}/{number:03d}.jpg" if layout == "class_folders" else f"{number:03d}.jpg"
        file = root / "images" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        cells = Image.fromarray(random.integers(0, 256, (4, 5, 3), dtype=np.uint8))
        cells.resize((width, height), Image.Resampling.BICUBIC).save(file, "jpeg")
        if layout == "label_csv":
            rows.append(f"{name},{classes[label]}")
        for index, text in enumerate(classes if masked else ()):
            mask = random.random((height, width)) < 0.3
            pairs = rle.to_pairs(rle.encode(mask)) if (number + index) % 3 else ""
            called = {"image_label": f"{name}_{text}", "image_class": f"{name},{index + 1}"}
            rows.append(f"{called.get(layout, f'{name}_{index + 1}')},{pairs}")
    raw: dict[str, Any] = {
        "task": "segmentation" if masked else "classification",
        "input": {"images": str(root / "images"), "classes": list(classes)},
        "shards": {"records": 7},
    }
    if header:
        (root / "labels.csv").write_text("\n".join([header, *rows]) + "\n")
        raw["input"]["labels"] = {"path": str(root / "labels.csv")}
    return raw
