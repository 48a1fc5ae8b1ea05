"""Which accelerator an image was built for, and whether that fits the machine that trains."""

from __future__ import annotations

import shutil
import subprocess

from shardwright.errors import ConfigError

# The Dockerfile sets it to the build argument ACCELERATOR: cpu, gpu or tpu.
LABEL = "shardwright.accelerator"
_ENGINES = ("docker", "podman")
_SECONDS = 10


def image_notes(section: str, image: str, accelerator: str) -> tuple[str, ...]:
    """Checks that the image contains the packages for the accelerator that trains.

    An image for GPUs or TPUs also trains on a CPU, so that other accelerators are not checked.

    Args:
        section: section of the configuration that names the image.
        image: the image of all tasks.
        accelerator: `trainer.accelerator` as the compiled pipeline has it.

    Returns:
        A note about the image, if this machine does not have it.

    Raises:
        ConfigError: the image was built for another machine.
    """
    if accelerator not in ("gpu", "tpu"):
        return ()
    build = f"docker build --build-arg ACCELERATOR={accelerator}"
    built_for = image_accelerator(image)
    if built_for is None:
        return (f"trainer.accelerator: {accelerator} needs an image that was built for it ({build}): {image}",)
    if built_for != accelerator:
        raise ConfigError(
            f"{section}.image",
            f"{image} was built for {built_for.upper()}s, and the Trainer's machine has a {accelerator.upper()}",
            f"Build it with: {build}",
        )
    return ()


def image_accelerator(image: str) -> str | None:
    """Returns the label of an image that this machine's Docker or Podman has; `None` if it cannot be read.

    No registry is asked: compiling needs neither network nor credentials.
    """
    for engine in _ENGINES:
        program = shutil.which(engine)
        if program is None:
            continue
        form = f'{{{{index .Config.Labels "{LABEL}"}}}}'
        command = [program, "image", "inspect", "--format", form, image]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False)
        except (OSError, subprocess.TimeoutExpired):
            continue
        label = done.stdout.strip()
        if done.returncode == 0 and label in ("cpu", "gpu", "tpu"):
            return label
    return None
