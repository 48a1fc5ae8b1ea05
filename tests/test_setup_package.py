"""The installed package: the wheel, its requirements against the locks, the names next to a user's own folders."""

import ast
import email
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

from shardwright.config import parse_config
from shardwright.dataset.reader import ImageDataset
from shardwright.ingest import ingest_recipe, input_fingerprint, locate
from shardwright.pipelines.cli import build_parser
from shardwright.running.extras import COMMANDS, CONTAINS, EXTRAS, missing_extra

ROOT = Path(__file__).parents[1]
PACKAGES = {
    "shardwright": "shardwright",
    "components": "shardwright.components",
    "pipelines": "shardwright.pipelines",
    "schemas": "shardwright.schemas",
}
SHARDWRIGHT = Path(sys.executable).with_name("shardwright")


def _commands() -> set[str]:
    return set(build_parser().below)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """The wheel that users get: a copy of the tree becomes an sdist, and a wheel is built from that sdist alone."""
    copy = tmp_path_factory.mktemp("wheel")
    for name in PACKAGES:
        shutil.copytree(
            ROOT / name, copy / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info")
        )
    shutil.copytree(ROOT / "docs", copy / "docs")
    for name in ("pyproject.toml", "setup.py", "setup.cfg", "LICENSE", "README.md"):
        if (ROOT / name).exists():
            shutil.copy(ROOT / name, copy)
    unpacked = tmp_path_factory.mktemp("sdist")
    with tarfile.open(_build("sdist", copy)) as sdist:
        sdist.extractall(unpacked)
    (source,) = unpacked.iterdir()
    return zipfile.ZipFile(_build("wheel", source))


def _build(kind: str, folder: Path) -> Path:
    build = f"from setuptools import build_meta; print(build_meta.build_{kind}('dist'))"
    done = subprocess.run([sys.executable, "-c", build], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return folder / "dist" / done.stdout.splitlines()[-1]


def _member(wheel: zipfile.ZipFile, name: str) -> str:
    return wheel.read(next(member for member in wheel.namelist() if member.endswith(f".dist-info/{name}"))).decode()


def test_wheel_holds_every_file_of_the_four_packages(wheel: zipfile.ZipFile) -> None:
    expected = {
        f"{package.replace('.', '/')}/{path.relative_to(ROOT / folder).as_posix()}"
        for folder, package in PACKAGES.items()
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and not path.name.startswith(".")
    }
    # The pages without their pictures, for `shardwright docs`.
    expected |= {f"shardwright/docs/{page.relative_to(ROOT / 'docs')}" for page in (ROOT / "docs").rglob("*.md")}
    found = {name for name in wheel.namelist() if ".dist-info/" not in name}
    assert found == expected
    assert {f"{package.replace('.', '/')}/py.typed" for package in PACKAGES.values()} <= found
    assert "shardwright/config/yaml_config.py" in found


def test_wheel_installs_the_command_and_the_licence(wheel: zipfile.ZipFile) -> None:
    assert "shardwright = shardwright.pipelines.cli:main" in _member(wheel, "entry_points.txt")
    assert "Apache License" in _member(wheel, "licenses/LICENSE")


def test_metadata_is_complete_and_names_no_address_that_does_not_exist(wheel: zipfile.ZipFile) -> None:
    found = email.message_from_string(_member(wheel, "METADATA"))
    assert found["License-Expression"] == "Apache-2.0"
    assert found["Author"]
    assert found["Description-Content-Type"] == "text/markdown"
    assert str(found.get_payload()).startswith("# Shardwright")
    classifiers = found.get_all("Classifier", [])
    supported = Requirement(f"python{found['Requires-Python']}").specifier
    pythons = {line.rsplit(" ", 1)[1] for line in classifiers if re.search(r":: 3\.\d+$", line)}
    assert pythons == {f"3.{minor}" for minor in range(30) if Version(f"3.{minor}.5") in supported}
    assert "Typing :: Typed" in classifiers
    assert set(found.get_all("Provides-Extra", [])) == {*EXTRAS, "all", "gpu", "tpu"}
    assert found.get_all("Project-URL") is None


def _requirements(wheel: zipfile.ZipFile, environment: dict[str, str]) -> list[Requirement]:
    """Returns the requirements of an installation of the wheel; `extra` in the environment names an extra."""
    lines = email.message_from_string(_member(wheel, "METADATA")).get_all("Requires-Dist", [])
    asked = [Requirement(line) for line in lines]
    return [one for one in asked if one.marker is None or one.marker.evaluate(environment)]


@pytest.mark.parametrize(
    ("lock", "python"), [("fallback", "3.10"), ("current", "3.11"), ("current", "3.12"), ("current", "3.13")]
)
def test_requirements_admit_what_the_locks_pin(wheel: zipfile.ZipFile, lock: str, python: str) -> None:
    environment = {"python_version": python, "python_full_version": f"{python}.5", "sys_platform": "linux"}
    pins = {}
    for line in (ROOT / f"requirements/{lock}.lock").read_text().splitlines():
        if re.match(r"[a-z0-9]", line):
            pin = Requirement(line.rstrip("\\ "))
            if pin.marker is None or pin.marker.evaluate(environment):
                pins[pin.name] = Version(str(pin.specifier).removeprefix("=="))
    metadata = email.message_from_string(_member(wheel, "METADATA"))
    assert Version(f"{python}.5") in Requirement(f"python{metadata['Requires-Python']}").specifier
    asked = _requirements(wheel, {**environment, "extra": "all"})
    assert len(asked) > 10
    for one in asked:
        assert pins[one.name.lower()] in one.specifier, f"{one} does not admit {one.name} {pins[one.name.lower()]}"


# `google` is shared by many distributions; the longest prefix decides.
GOOGLE = {
    "google.api_core": "google-api-core",
    "google.auth": "google-auth",
    "google.cloud.aiplatform": "google-cloud-aiplatform",
    "google.cloud.aiplatform_v1": "google-cloud-aiplatform",
    "google.cloud.storage": "google-cloud-storage",
    "google.protobuf": "protobuf",
    "google.resumable_media": "google-resumable-media",
}


def _imported(path: Path) -> Iterator[str]:
    """Whole names of the modules that a file imports, of `google` also the names taken from a module.

    Imports for types alone do not count: nothing imports them at run time.
    """
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for_types = {
        inner
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for statement in node.body
        for inner in ast.walk(statement)
    }
    for node in ast.walk(tree):
        if node in for_types:
            continue
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{name.name}" for name in node.names]
            yield from names if node.module in ("google", "google.cloud") else [node.module]


@cache
def _providers() -> dict[str, set[str]]:
    """Top-level import name -> the installed distributions it comes from."""
    found: dict[str, set[str]] = {}
    for one in metadata.distributions():
        listed = (one.read_text("top_level.txt") or "").split()
        files = [file.parts[0] for file in one.files or () if len(file.parts) > 1 and file.suffix == ".py"]
        for top in {*listed, *files}:
            found.setdefault(top, set()).add(one.metadata["Name"].lower().replace("_", "-"))
    return found


@pytest.mark.one_stack
def test_what_is_imported_is_declared_and_the_other_way_round(wheel: zipfile.ZipFile) -> None:
    wanted: dict[str, set[str]] = {}  # an imported module -> the distributions that provide it
    providers = _providers()
    for folder in PACKAGES:
        for path in (ROOT / folder).rglob("*.py"):
            for name in _imported(path):
                top = name.split(".")[0]
                if top in sys.stdlib_module_names or top in PACKAGES.values():
                    continue
                prefix = next((prefix for prefix in GOOGLE if f"{name}.".startswith(f"{prefix}.")), "")
                owners = {GOOGLE[prefix]} if top == "google" else providers[top]
                wanted.setdefault(name, owners)
    lines = email.message_from_string(_member(wheel, "METADATA")).get_all("Requires-Dist", [])
    declared = {Requirement(line).name.lower().replace("_", "-") for line in lines}
    assert len(wanted) > 20
    assert not {name: owners for name, owners in wanted.items() if not owners & declared}
    assert not declared - set().union(*wanted.values())


def _third_party(module: Path) -> set[str]:
    """Modules of others that a file imports when it is imported: not in functions, nor for types alone."""
    found = set()
    for node in ast.parse(module.read_text(encoding="utf-8")).body:
        inner = [] if isinstance(node, (ast.If, ast.FunctionDef, ast.ClassDef)) else ast.walk(node)
        for one in inner:
            names = [name.name for name in one.names] if isinstance(one, ast.Import) else []
            names += [one.module or ""] if isinstance(one, ast.ImportFrom) else []
            found |= {n for n in names if n.split(".")[0] not in {*sys.stdlib_module_names, "shardwright", ""}}
    return found


def test_the_base_is_all_that_the_core_imports_at_once(wheel: zipfile.ZipFile) -> None:
    """All else belongs to an extra, and where it is missing the error names that extra."""
    base = {one.name for one in _requirements(wheel, {"python_version": "3.12", "extra": ""})}
    assert base == {"blake3", "google-crc32c", "jinja2", "markupsafe", "numpy", "pillow", "pyyaml", "rich"}
    modules = {"PIL", "blake3", "google_crc32c", "jinja2", "markupsafe", "numpy", "yaml"}
    needs: dict[str, set[str]] = {}
    for path in (ROOT / "shardwright").rglob("*.py"):
        for name in _third_party(path):
            if name.split(".")[0] not in modules:
                needs.setdefault(name, set()).add(path.relative_to(ROOT / "shardwright").as_posix())
    for name, paths in needs.items():
        missing = missing_extra(ModuleNotFoundError(f"No module named {name!r}", name=name))
        assert missing is not None, f"{name}, imported by {sorted(paths)}, is in no extra"
    # TensorFlow and the stores' clients are imported by their own modules alone.
    assert {path.split("/")[0] for paths in needs.values() for path in paths} <= {
        "loader",
        "images",
        "storage",
        "dataset",
    }


def test_every_extra_brings_what_its_modules_need(wheel: zipfile.ZipFile) -> None:
    providers = _providers()
    for extra, names in EXTRAS.items():
        declared = {one.name.lower() for one in _requirements(wheel, {"python_version": "3.10", "extra": extra})}
        for name in names:
            prefix = next((prefix for prefix in GOOGLE if name.startswith(prefix)), "")
            owners = {GOOGLE[prefix]} if prefix else providers[name.split(".")[0]]
            assert owners & {*declared, "kubernetes"}, f"shardwright[{extra}] does not bring {name}"


@pytest.mark.parametrize("extra", CONTAINS)
def test_an_extra_contains_the_extras_that_the_table_names(wheel: zipfile.ZipFile, extra: str) -> None:
    def brought(name: str) -> set[str]:
        return {str(one) for one in _requirements(wheel, {"python_version": "3.12", "extra": name})}

    def plain(lines: set[str]) -> set[str]:
        return {line.split(";")[0] for line in lines}

    for part in CONTAINS[extra]:
        assert plain(brought(part)) <= plain(brought(extra)), f"{extra} does not contain {part}"


def test_extras_for_one_kind_of_machine_are_not_part_of_all(wheel: zipfile.ZipFile) -> None:
    def brought(extra: str) -> set[str]:
        lines = _requirements(wheel, {"python_version": "3.12", "extra": extra})
        return {f"{one.name}[{','.join(sorted(one.extras))}]" for one in lines}

    assert {"tensorflow[and-cuda]", "jax[cuda12]"} <= brought("gpu")
    assert "jax[tpu]" in brought("tpu")
    assert not {"tensorflow[and-cuda]", "jax[cuda12]", "jax[tpu]"} & brought("all")
    # JAX of the fallback stack finds neither on the package index.
    assert not [one for one in _requirements(wheel, {"python_version": "3.10", "extra": "tpu"}) if one.extras]


@pytest.mark.parametrize(
    ("module", "command", "extra"),
    [
        ("tensorflow", None, "tf"),
        ("tensorflow", "predict", "tf"),
        ("tensorflow", "run", "tfx"),  # with [tf] alone, TFX would be missing next
        ("tensorflow_metadata", "schema", "tfx"),
        ("google", "schema", "tfx"),  # google.protobuf, not a store
        ("google", "ingest", "gcs"),
        ("google.cloud", "run", "gcs"),
        ("google.cloud.storage", "run", "gcs"),
        ("boto3", "run", "s3"),
        ("pyarrow", "ingest", "parquet"),
        ("pyarrow", "run", "tfx"),
        ("tensorflow", "vertex", "vertex"),
        ("kfp", "submit", "vertex"),
        ("kfp", "kubeflow", "kubeflow"),
        ("absl", "bench", "tf"),  # TensorFlow brings it
    ],
)
def test_a_missing_package_names_the_extra_that_its_command_needs(module: str, command: str | None, extra: str) -> None:
    error = missing_extra(ModuleNotFoundError(f"No module named {module!r}", name=module), command)
    assert error is not None
    # If none of Google's packages is there, the named module is the first that the command needs.
    shown = {"google.protobuf" if extra == "tfx" else "google.api_core"} if module == "google" else {module}
    shown = {"google.cloud.storage"} if module == "google.cloud" else shown
    assert str(error).partition(" ")[0] in shown
    assert str(error).partition(" ")[2] == f"is not installed. Install it: pip install 'shardwright[{extra}]'."


@pytest.mark.parametrize(
    ("module", "command", "hidden", "shown"),
    [
        ("absl", "predict", "tensorflow", "tensorflow"),
        ("absl", "predict", "boto3", "absl"),  # a part of an extra that is there
        ("google", "schema", "tfx", "tfx"),
        ("absl", "deliver", "google.cloud.aiplatform", "google.cloud.aiplatform"),
    ],
)
def test_of_an_extra_that_is_missing_its_main_package_is_named(
    module: str, command: str, hidden: str, shown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Absl was named where TensorFlow was missing: it is imported first."""
    monkeypatch.setitem(sys.modules, hidden, None)
    error = missing_extra(ModuleNotFoundError(f"No module named {module!r}", name=module), command)
    assert str(error).startswith(f"{shown} is not installed. Install it: ")


def test_a_module_of_no_extra_is_not_explained() -> None:
    assert missing_extra(ModuleNotFoundError("No module named 'own'", name="own"), "run") is None


def test_a_store_without_its_client_names_the_extra(tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['boto3'] = None; import shardwright.storage.buckets as b\n"
        "try: b.stat('s3://bucket/name')\n"
        "except b.UsageError as error: print(error)"
    )
    assert _run(tmp_path, sys.executable, "-c", code) == (
        "boto3 is not installed. Install it: pip install 'shardwright[s3]'.\n"
    )


def test_names_of_the_package_can_be_listed_without_tensorflow(tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['tensorflow'] = None\n"
        "import inspect, pydoc, shardwright\n"
        "from shardwright import *\n"
        "assert 'steps_per_epoch' in pydoc.render_doc(shardwright) and hasattr(shardwright, 'load')\n"
        "print(dict(inspect.getmembers(shardwright))['load'].__doc__)\n"
        "try: steps_per_epoch('missing', 'train', 2)\n"
        "except NotFound as error: print(type(error).__name__)\n"
        "try: load('ds', 'train', 2)\n"
        "except UsageError as error: print(type(error).__name__)"
    )
    assert _run(tmp_path, sys.executable, "-c", code) == (
        "Cannot be called here: tensorflow is not installed. Install it: pip install 'shardwright[tf]'.\n"
        "NotFound\nMissingExtra\n"
    )


def test_the_page_lists_every_command_with_its_extra() -> None:
    page = (ROOT / "docs/get-started/installation.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`[a-z-]+`(?:, `[a-z-]+`)*) \| (.+) \|$", page.split("## Which command")[1], re.MULTILINE)
    listed = {command: needs for names, needs in rows for command in re.findall(r"`([a-z-]+)`", names)}
    assert listed.keys() == _commands()
    for command, needs in listed.items():
        wanted = f"`{COMMANDS[command]}`" if command in COMMANDS else "–"
        assert needs == ("`kubeflow` or `vertex`, by target" if command == "compile" else wanted), command


def test_every_base_command_is_run_on_the_base_installation() -> None:
    script = (ROOT / "tools/bare.sh").read_text(encoding="utf-8")
    ran = set(re.findall(r"^    run ([a-z-]+) ", script, re.MULTILINE))
    # The target decides what `compile` needs, and `weights` downloads.
    assert _commands() - COMMANDS.keys() - {"compile", "weights"} == ran


@pytest.mark.parametrize(
    ("package", "taken", "refused"),
    [
        ("pillow", ["11.3.0", "12.3.0"], ["11.0.0", "13.0.0"]),  # AvifImagePlugin came with 11.3
        ("google-crc32c", ["1.6.0", "1.9.0"], ["1.5.0"]),  # its compiled part does not load on Python 3.10
        ("urllib3", ["1.26.20", "2.8.0"], ["1.26.0"]),  # its own six cannot be imported on Python 3.12
        ("boto3", ["1.36.0", "1.44.5"], ["1.35.0"]),  # IfNoneMatch of PutObject
        ("botocore", ["1.36.0", "1.44.5"], ["1.35.0"]),
        ("apache-beam", ["2.59.0"], ["2.60.0", "2.68.0"]),  # on Python 3.10
    ],
)
def test_ranges_hold_only_versions_that_work(
    wheel: zipfile.ZipFile, package: str, taken: list[str], refused: list[str]
) -> None:
    asked = _requirements(wheel, {"python_version": "3.10", "extra": "all"})
    (range_,) = [one.specifier for one in asked if one.name == package]
    assert [version for version in taken + refused if version in range_] == taken


@pytest.fixture
def foreign(tmp_path: Path) -> Path:
    """A TFX project's folder: it has `components/` and `pipelines/` of its own, which must not be mistaken for ours."""
    for name in PACKAGES:
        if name != "shardwright":
            (tmp_path / name).mkdir()
            (tmp_path / name / "__init__.py").write_text(f"raise SystemExit('{name} of the working directory')\n")
    return tmp_path


def _run(foreign: Path, *command: str, **variables: str) -> str:
    env = {**os.environ, **variables}
    done = subprocess.run(command, cwd=foreign, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_command_runs_beside_foreign_components_and_pipelines(foreign: Path) -> None:
    _run(foreign, str(SHARDWRIGHT), "sample", "--out", "data", "--count", "2", "--height", "64", "--width", "96")
    assert len(list((foreign / "data").rglob("*.jpg"))) == 2
    # `python -m` puts the working directory first, where a plain name would find the foreign folder.
    assert "sample" in _run(foreign, sys.executable, "-m", "shardwright.pipelines.cli", "--help")


@pytest.mark.slow
def test_executor_runs_beside_foreign_components_and_pipelines(
    foreign: Path, image_input: Callable[..., dict[str, Any]]
) -> None:
    """TFX's containers start an executor by its class path, from whatever folder they stand in."""
    config = parse_config(image_input(foreign), base=str(foreign))
    location = locate(config)
    out = foreign / "examples"
    artifact = {
        "artifact": {"uri": str(out)},
        "artifact_type": {"name": "Examples", "properties": {"split_names": "STRING", "span": "INT", "version": "INT"}},
        "__artifact_class_module__": "tfx.types.standard_artifacts",
        "__artifact_class_name__": "Examples",
    }
    properties = {
        "input_fingerprint": input_fingerprint(config, location),
        "recipe": ingest_recipe(config, tuple(config.input.classes or ())),
    }
    _run(
        foreign,
        *(sys.executable, "-m", "tfx.scripts.run_executor"),
        "--executor_class_path=shardwright.components.image_example_gen.executor.Executor",
        "--inputs={}",
        f"--outputs={json.dumps({'examples': [artifact]})}",
        f"--exec-properties={json.dumps(properties)}",
        SHARDWRIGHT_INPUT=json.dumps({"images": location.images, "labels": location.labels}),
        SHARDWRIGHT_STAGING=str(foreign / "staging"),
    )
    assert ImageDataset.open(out).manifest.totals["written"] == 24
