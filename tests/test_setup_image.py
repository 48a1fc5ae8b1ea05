"""The image, by what its Dockerfile says: `make test-full` builds it and runs what is in it."""

import importlib.util
import json
import re
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest
from apache_beam.portability.api import beam_provision_api_pb2 as provision
from google.protobuf import json_format

from shardwright.pipelines.cloud.image import LABEL

CHECKOUT = Path(__file__).parents[1]
DOCKERFILE = re.sub(r"\\\n", " ", (CHECKOUT / "Dockerfile").read_text(encoding="utf-8"))
STAGES = re.split(r"^(?=FROM )", DOCKERFILE, flags=re.MULTILINE)[1:]
LAST = STAGES[-1]
(SYSTEM,) = (stage for stage in STAGES if re.match(r"FROM \S+ AS system$", stage, re.MULTILINE))


def instructions(stage: str, word: str) -> list[str]:
    return [line.strip() for line in re.findall(rf"^{word} +(.*)$", stage, re.MULTILINE)]


def test_what_is_run_is_no_root_and_begins_in_a_folder_of_its_own() -> None:
    # By number, or Kubernetes refuses it under `runAsNonRoot: true`.
    assert instructions(LAST, "USER") == ["1000:1000"]
    assert LAST.startswith("FROM system\n")
    assert "useradd --uid 1000 --user-group" in SYSTEM
    assert instructions(LAST, "WORKDIR") == ["/workspace"]
    assert LAST.index("USER ") > max(match.start() for match in re.finditer("RUN |COPY ", LAST))


def test_nothing_that_was_given_to_a_build_stays_in_the_image() -> None:
    """Arguments are shown by `docker history`: an index may be named with a password."""
    arguments = {name.partition("=")[0] for stage in (SYSTEM, LAST) for name in instructions(stage, "ARG")}
    assert arguments == {"ACCELERATOR", "DEBIAN_FRONTEND", "REVISION"}
    assert any("UV_DEFAULT_INDEX" in stage for stage in STAGES[:-1])
    assert not re.search(r"(?i)secret|password|token|credential", DOCKERFILE)
    # No folder is copied whole: what a checkout has next to the code is left out.
    sources = [
        part for line in instructions(DOCKERFILE, "COPY") for part in line.split()[:-1] if not part.startswith("--")
    ]
    assert not {".", "./"} & set(sources)
    allowed = (CHECKOUT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    assert allowed[0] == "*"


def test_no_build_tools_stay() -> None:
    assert re.search(r"g\+\+", "".join(STAGES[:-1]))
    assert not re.search(r"g\+\+|gcc|python3-dev|curl|uv\b", SYSTEM + LAST)


def test_beams_workers_run_in_the_images_own_environment() -> None:
    """Beam's launcher makes another one otherwise: it may not there, and the packages would not be in it."""
    variables = dict(part.split("=", 1) for line in instructions(LAST, "ENV") for part in line.split())
    assert variables["RUN_PYTHON_SDK_IN_DEFAULT_ENVIRONMENT"] == "1"
    assert variables["PATH"].startswith("/opt/shardwright/bin:")


@pytest.mark.parametrize("lock", ["current", "image", "image-gpu", "image-tpu", "fallback"])
def test_pip_is_locked_with_hashes(lock: str) -> None:
    """Beam's launcher looks for Beam with it, and TFX builds a wheel of a `module_file`."""
    text = (CHECKOUT / "requirements" / f"{lock}.lock").read_text(encoding="utf-8")
    (hashes,) = re.findall(r"^pip==[0-9.]+ \\\n((?: +--hash=sha256:[0-9a-f]{64}(?: \\)?\n)+)", text, re.MULTILINE)
    assert hashes.count("sha256:") >= 2


@pytest.mark.parametrize("lock", ["image", "image-gpu", "image-tpu"])
def test_the_image_has_no_development_tool_and_the_versions_that_were_tested(lock: str) -> None:
    def pins(name: str) -> dict[str, str]:
        text = (CHECKOUT / "requirements" / f"{name}.lock").read_text(encoding="utf-8")
        return dict(re.findall(r"^([a-z0-9-]+)(?:\[[^]]*\])?==([^ ;]+) ", text, re.MULTILINE))

    tools = (CHECKOUT / "requirements" / "dev.in").read_text(encoding="utf-8").split("\n")[1:]
    names = {re.sub(r"\[.*", "", line).lower() for line in tools if line} - {"setuptools", "wheel"}
    assert len(names) > 10
    # TFX itself wants Flask.
    assert names & pins(lock).keys() <= {"flask"}
    tested = pins("current")
    assert len(pins(lock)) > 150
    assert {name: version for name, version in pins(lock).items() if tested.get(name, version) != version} == {}


def test_pip_is_in_the_environment() -> None:
    assert importlib.util.find_spec("pip.__main__")


def test_beams_launcher_stops_without_beam_and_starts_the_worker_with_it(tmp_path: Path) -> None:
    """Its stand-in takes the launcher's steps: what it asks of an environment decides whether a worker starts."""
    called = tmp_path / "called"
    # The endpoints of the runner's answer win over those of the options, as in Beam's own launcher.
    info = provision.ProvisionInfo(runner_capabilities=["a", "b"], sibling_worker_ids=["1-2"])
    info.control_endpoint.url = "localhost:2"
    info.pipeline_options.update({"beam:option:job_name:v1": "x"})
    (tmp_path / "info").write_text(json_format.MessageToJson(info, indent=None))
    options = [f"--{name}_endpoint=localhost:1" for name in ("logging", "artifact", "provision", "control")]
    command = [sys.executable, str(CHECKOUT / "tools/image/boot"), "--id=1-1", *options]

    def run(pip: int, fails: int = 0, **variables: str) -> subprocess.CompletedProcess:
        # Answers as the environment's Python: to pip, to the question for the provision information, as the worker.
        python = tmp_path / "python"
        python.write_text(
            f'#!/bin/sh\necho "$1 $2 $3" >>{called}\ncase "$2" in pip) exit {pip} ;; esac\n'
            f'[ "$1" = -m ] || exec cat {tmp_path}/info\n'
            'echo "$WORKER_ID $PIPELINE_OPTIONS $CONTROL_API_SERVICE_DESCRIPTOR $RUNNER_CAPABILITIES"\n'
            f"exit {fails}\n"
        )
        python.chmod(0o755)
        environment = {"PATH": f"{tmp_path}:/usr/bin:/bin", **variables}
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

    done = run(0, RUN_PYTHON_SDK_IN_DEFAULT_ENVIRONMENT="1")
    expected = '{} {{"beam:option:job_name:v1": "x"}} url: "localhost:2" a b'
    assert (done.returncode, sorted(done.stdout.splitlines())) == (0, [expected.format(one) for one in ("1-1", "1-2")])
    assert "-m apache_beam.runners.worker.sdk_worker_main" in called.read_text()
    done = run(0, fails=3, RUN_PYTHON_SDK_IN_DEFAULT_ENVIRONMENT="1")
    assert done.returncode == 1
    assert re.search(r"worker 1-[12] exited 4 times: 3$", done.stderr.strip())
    done = run(1, RUN_PYTHON_SDK_IN_DEFAULT_ENVIRONMENT="1")
    assert done.returncode == 1
    assert "Apache Beam is not installed" in done.stderr


def test_packages_do_not_wait_for_code() -> None:
    """A layer is made again when what is copied before it has changed."""
    (packages,) = (stage for stage in STAGES if stage.startswith("FROM system AS packages"))
    assert not any(
        folder in line
        for line in instructions(packages, "COPY")
        for folder in ("shardwright/", "pipelines/", "components/")
    )


def test_packages_that_were_installed_again_are_taken_again() -> None:
    """Buildah keeps a layer whose command is the same, whatever is mounted: a new stamp is copied before it."""
    stamp, taken = "COPY --from=packages /opt/shardwright/stamp ", "RUN --mount=type=bind,from=packages,"
    assert 0 < LAST.index(stamp) < LAST.index(taken)
    install = (CHECKOUT / "tools/image/install").read_text(encoding="utf-8")
    assert 'cat /proc/sys/kernel/random/uuid >"$venv/stamp"' in install.partition("    shardwright)")[0]


def test_labels_and_arguments() -> None:
    assert "org.opencontainers.image.revision" in LAST
    arguments = {name.partition("=")[0] for name in instructions(DOCKERFILE, "ARG")}
    assert arguments >= {"ACCELERATOR", "BASE", "BEAM_SDK"}
    assert f'{LABEL}="${{ACCELERATOR}}"' in LAST
    # Bases can be given by digest: no stage names one without an argument.
    bases = [re.match(r"FROM (\S+)", stage)[1] for stage in STAGES]
    assert set(bases) <= {"${BASE}", "${BEAM_SDK}", "packages", "system"}


@pytest.mark.parametrize(
    ("accelerator", "extra"), [("gpu", {"nvidia-cudnn-cu12", "jax-cuda12-plugin"}), ("tpu", {"libtpu"})]
)
def test_an_image_for_an_accelerator_has_its_packages_and_no_other_has_them(accelerator: str, extra: set[str]) -> None:
    def pins(name: str) -> set[str]:
        text = (CHECKOUT / "requirements" / f"{name}.lock").read_text(encoding="utf-8")
        return set(re.findall(r"^([a-z0-9-]+)(?:\[[^]]*\])?==", text, re.MULTILINE))

    assert extra <= pins(f"image-{accelerator}")
    others = {"image", "image-gpu", "image-tpu"} - {f"image-{accelerator}"}
    assert not any(extra & pins(other) for other in others)
    # The others have all that the image for CPUs has.
    assert pins("image") <= pins(f"image-{accelerator}")


def test_the_list_of_packages_is_complete_and_the_same_each_time() -> None:
    lock = CHECKOUT / "requirements" / "image.lock"
    command = [sys.executable, str(CHECKOUT / "tools/supply/sbom.py")]
    text = subprocess.run([*command, str(lock)], check=True, capture_output=True, text=True).stdout
    assert text == subprocess.run([*command, str(lock)], check=True, capture_output=True, text=True).stdout
    document = json.loads(text)
    assert (document["bomFormat"], document["specVersion"]) == ("CycloneDX", "1.5")
    pins = re.findall(r"^([a-z0-9-]+)(?:\[[^]]*\])?==([^ ;\\]+)", lock.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(pins) > 150
    assert [(one["name"], one["version"]) for one in document["components"]] == sorted(pins)
    assert len({one["bom-ref"] for one in document["components"]}) == len(pins)
    hashes = [reference["hashes"] for one in document["components"] for reference in one["externalReferences"]]
    assert all(hashes)
    assert sum(map(len, hashes)) == len(set(re.findall(r"sha256:([0-9a-f]{64})", lock.read_text(encoding="utf-8"))))
    assert document["components"][0]["purl"] == "pkg:pypi/{name}@{version}".format(**document["components"][0])
    # Nothing is listed that is not installed.
    fallback = CHECKOUT / "requirements" / "fallback.lock"
    text = subprocess.run([*command, str(fallback), "--installed"], check=True, capture_output=True, text=True).stdout
    listed = {(one["name"], one["version"]) for one in json.loads(text)["components"]}
    assert all(metadata.version(name) == version for name, version in listed)


def test_the_entrypoint_runs_for_its_user_whatever_the_umask_of_the_checkout() -> None:
    (code,) = (stage for stage in STAGES if stage.startswith("FROM packages AS code"))
    assert "install -m 755 tools/image/entrypoint /opt/code/entrypoint" in code
    assert "COPY --from=code /opt/code /opt/shardwright" in LAST
    assert 'ENTRYPOINT ["/opt/shardwright/entrypoint"]' in LAST


def test_what_is_run_of_the_checkout_was_copied() -> None:
    copied: dict[str, list[str]] = {}
    used = 0
    for stage in STAGES:
        base, name = re.match(r"FROM (\S+)(?: AS (\S+))?", stage).groups()
        lines = [line for line in instructions(stage, "COPY") if not line.startswith("--from")]
        copied[name] = [*copied.get(base, []), *(part for line in lines for part in line.split()[:-1])]
        for file in re.findall(r"\btools/[\w./-]+", " ".join(instructions(stage, "RUN"))):
            used += 1
            assert any(file == at or (at.endswith("/") and file.startswith(at)) for at in copied[name]), file
    assert used >= 3


def test_an_image_that_cannot_be_built_is_not_tried(tmp_path: Path) -> None:
    """The files in the store may be of an older checkout."""
    tools = tmp_path / "tools"
    shutil.copytree(CHECKOUT / "tools", tools)
    script = tools / "image.sh"
    text = script.read_text(encoding="utf-8")
    for name, body in (("build", "false\n    echo went on"), ("try", "echo tried")):
        text, found = re.subn(rf"^{name}\(\) \{{\n.*?^\}}", f"{name}() {{\n    {body}\n}}", text, flags=re.S | re.M)
        assert found == 1
    script.write_text(text, encoding="utf-8")
    done = subprocess.run(["bash", str(script), "try"], capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert done.stdout == ""
