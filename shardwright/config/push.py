"""`push`: where a blessed model goes, beside the folder of pushed models."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar

from shardwright.config.options import Pattern, Section, option
from shardwright.errors import ConfigError
from shardwright.text.redaction import is_secret

_REPOSITORY = re.compile(r"[A-Za-z0-9][\w.-]{0,94}/[A-Za-z0-9](?:[\w.-]{0,94}\w)?", re.ASCII)
_LICENSE = re.compile(r"[a-z0-9][a-z0-9.+-]{0,62}", re.ASCII)
_VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]{0,127}", re.ASCII)


def _check_repository(path: str, name: str) -> None:
    if not _REPOSITORY.fullmatch(name) or "--" in name or ".." in name:
        raise ConfigError(path, f"{name!r} is not a repository", "Write OWNER/NAME, such as my-team/clouds.")


def _check_variable(path: str, name: str) -> None:
    if not _VARIABLE.fullmatch(name):
        # Not the value: it may be the token.
        shown = "the value" if len(name) > 20 or is_secret("", name) else repr(name)
        fix = "Write HF_TOKEN, and give the token to that variable; a configuration contains none."
        raise ConfigError(path, f"{shown} is not the name of an environment variable (A-Z, 0-9, _)", fix)


@dataclass(frozen=True)
class HubConfig(Section):
    """A repository of a model hub, which gets every blessed model."""

    PATH: ClassVar[str] = "push.hub"

    repository: str = option(form=_check_repository, help="OWNER/NAME; it is made if there is none.")
    license: str = option(
        form=Pattern(_LICENSE, "Write its identifier, such as apache-2.0, cc-by-4.0 or other.", "is not a license"),
        help="License of the model, by the identifier that the hub uses. Nothing stands in for it: you decide what "
        "others may do with the model.",
    )
    private: bool = option(True, help="Whether only you see the repository. A public one is not pushed to then.")
    token_env: str = option("HF_TOKEN", form=_check_variable, help="Environment variable with the token.")
    about: str | None = option(
        None, help="Markdown file with intended use and limits, for the model card, which otherwise asks for them."
    )
    app: bool = option(False, help="Whether to add `app.py`, a page of Gradio that shows predictions.")


@dataclass(frozen=True)
class PushConfig(Section):
    """Where blessed models go, beside the folder of pushed models."""

    PATH: ClassVar[str] = "push"

    hub: HubConfig | None = option(None, help="A repository of Hugging Face's hub, or of one with the same API.")
