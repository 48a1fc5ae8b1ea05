"""`compile` compares the image's label with the accelerator of the machine that trains."""

from pathlib import Path

import pytest

from shardwright.errors import ConfigError
from shardwright.pipelines.cloud.image import image_accelerator, image_notes

IMAGE = "registry.example/shardwright:1.0"


def engine(folder: Path, name: str, body: str) -> None:
    folder.mkdir(exist_ok=True)
    program = folder / name
    program.write_text(f"#!/bin/sh\n{body}\n")
    program.chmod(0o755)


@pytest.fixture
def engines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of container engines; no other one can be found."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    return folder


def labeled(folder: Path, label: str, name: str = "docker") -> None:
    # The template must ask for our label, and the last argument must be the image.
    engine(
        folder,
        name,
        f"""[ "$1 $2 $5" = "image inspect {IMAGE}" ] || exit 1
[ "$4" = '{{{{index .Config.Labels "shardwright.accelerator"}}}}' ] || exit 1
echo {label}""",
    )


@pytest.mark.parametrize("accelerator", ["gpu", "tpu"])
def test_an_image_for_the_accelerator_is_taken_without_a_word(engines: Path, accelerator: str) -> None:
    labeled(engines, accelerator)
    assert image_notes("kubeflow", IMAGE, accelerator) == ()


@pytest.mark.parametrize(("built_for", "accelerator"), [("cpu", "gpu"), ("cpu", "tpu"), ("gpu", "tpu")])
def test_an_image_for_another_machine_is_refused_with_the_build_argument(
    engines: Path, built_for: str, accelerator: str
) -> None:
    labeled(engines, built_for)
    with pytest.raises(ConfigError) as caught:
        image_notes("vertex", IMAGE, accelerator)
    assert str(caught.value) == (
        f"vertex.image: {IMAGE} was built for {built_for.upper()}s, "
        f"and the Trainer's machine has a {accelerator.upper()}. "
        f"Build it with: docker build --build-arg ACCELERATOR={accelerator}"
    )


@pytest.mark.parametrize("body", [None, "exit 1", "echo", "echo '<no value>'", "echo someone elses label"])
def test_an_image_that_cannot_be_looked_at_is_a_note_with_the_build_argument(engines: Path, body: str | None) -> None:
    if body is not None:
        engine(engines, "docker", body)
    (note,) = image_notes("kubeflow", IMAGE, "gpu")
    assert "docker build --build-arg ACCELERATOR=gpu" in note
    assert IMAGE in note


def test_podman_is_asked_where_docker_does_not_have_the_image(engines: Path) -> None:
    engine(engines, "docker", "exit 1")
    labeled(engines, "tpu", "podman")
    assert image_accelerator(IMAGE) == "tpu"


@pytest.mark.parametrize("accelerator", ["auto", "cpu"])
def test_nobody_is_asked_about_a_machine_without_an_accelerator(engines: Path, accelerator: str) -> None:
    engine(engines, "docker", f": >{engines}/asked")
    assert image_notes("kubeflow", IMAGE, accelerator) == ()
    assert not (engines / "asked").exists()
