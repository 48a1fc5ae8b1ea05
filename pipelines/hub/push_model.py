"""Pushes a blessed model to a repository of Hugging Face's hub, by `huggingface_hub`.

1. The repository, made if there is none. One that is public is refused where `push.hub.private` says otherwise.
2. A commit with the files that changed, on the head that was seen: what others push meanwhile is not overwritten.
3. A tag of the content. Where the repository has it, there is nothing to do.

The token is read from the environment and handed to the library's client only.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from shardwright.config import Config
from shardwright.config.push import HubConfig
from shardwright.errors import CheckFailed, ShardwrightError, StorageError, UsageError
from shardwright.pipelines.hub.hub_files import MODEL, HubFiles, hub_files
from shardwright.running.progress import counted
from shardwright.text.escaping import escape
from shardwright.text.redaction import HIDDEN
from shardwright.version import __version__

_KEY = "push.hub"
_LONGEST = 200
# Libraries whose errors mean that there was no answer; which one it is depends on the version of huggingface_hub.
_HTTP_CLIENTS = ("httpx", "httpx2", "httpcore", "httpcore2", "requests", "urllib3")


@dataclass(frozen=True)
class HubPush:
    """A pushed version.

    Attributes:
        repository: OWNER/NAME.
        tag: its tag.
        commit: of the tag.
        address: page of the tag.
        pushed: whether this call has pushed it; else the repository had it.
    """

    repository: str
    tag: str
    commit: str
    address: str
    pushed: bool

    def words(self) -> str:
        """Returns it as a line."""
        return self.address if self.pushed else f"{self.address}: has this model already; nothing was pushed"


def read_token(hub: HubConfig | None) -> str:
    """Returns the token of the environment, and imports the library, so that a run does not find out at its end.

    Args:
        hub: the repository; without one nothing is looked for, and the token is empty.

    Raises:
        UsageError: there is none, or the library is not installed.
    """
    if hub is None:
        return ""
    # What it tells the hub about this machine, and a request by which it finds out whether an agent calls it.
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    import huggingface_hub  # noqa: F401

    logging.getLogger("huggingface_hub").setLevel(logging.ERROR)

    token = os.environ.get(hub.token_env, "").strip()
    if not token:
        raise UsageError(
            f"{_KEY}: the environment variable {hub.token_env} has no token. Set it to one that may write to "
            f"{hub.repository}."
        )
    return token


def push_blessed(
    config: Config, hub: HubConfig, pushed: str, report: Callable[[str], None], *, trusted: bool = False
) -> HubPush:
    """Pushes the blessed model of a push folder.

    Args:
        config: of the model.
        hub: where to.
        pushed: folder or URL that models are pushed to.
        report: called with a line before the files are sent.
        trusted: see `check_saved_model`.

    Raises:
        UsageError: see `hub_files` and `read_token`; or the hub does not take the token, the repository or the card.
        CheckFailed: somebody else has pushed meanwhile.
        StorageError: the hub does not answer, or has an error of its own.
    """
    token = read_token(hub)
    with hub_files(config, hub, pushed, trusted=trusted) as files, _hub_errors(hub, token):
        return _push(hub, files, token, report)


def _push(hub: HubConfig, files: HubFiles, token: str, report: Callable[[str], None]) -> HubPush:
    from huggingface_hub import CommitOperationAdd, CommitOperationDelete, HfApi

    api = HfApi(token=token, library_name="shardwright", library_version=__version__)
    place = api.create_repo(hub.repository, private=hub.private, exist_ok=True)
    info = api.model_info(hub.repository)
    if hub.private and info.private is False:
        fix = f"Set {_KEY}.private: false if everybody may have the model, or name another repository."
        raise UsageError(f"{_KEY}.private: true, and the repository {hub.repository} is public. {fix}")
    tag = files.tag
    address = f"{place}/tree/{tag}"
    for known in api.list_repo_refs(hub.repository).tags:
        if known.name == tag:
            return HubPush(hub.repository, tag, known.target_commit, address, pushed=False)
    sizes = files.sizes()
    report(f"{hub.repository}: pushing {counted(len(sizes), 'file')}, {sum(sizes.values()) / 1e6:.1f} MB")
    there = [sibling.rfilename for sibling in info.siblings or ()]
    gone = [name for name in there if name.startswith(f"{MODEL}/") and name not in files.files]
    operations: list[Any] = [CommitOperationAdd(name, content) for name, content in files.files.items()]
    operations += [CommitOperationDelete(name, is_folder=False) for name in gone]
    made = api.create_commit(hub.repository, operations, commit_message=files.summary, parent_commit=info.sha)
    api.create_tag(hub.repository, tag=tag, revision=made.oid, tag_message=files.summary, exist_ok=True)
    return HubPush(hub.repository, tag, str(made.oid), address, pushed=True)


@contextmanager
def _hub_errors(hub: HubConfig, token: str) -> Iterator[None]:
    """Turns the errors of the library and of its HTTP client into one message each, without the token."""
    try:
        yield
    except (ShardwrightError, ModuleNotFoundError):
        raise
    except Exception as error:
        causes = list(_causes(error))
        status = next((code for cause in causes if (code := _status(cause))), 0)
        said = next((text for one in causes if (text := getattr(one, "server_message", ""))), "")
        words = str(error) if isinstance(error, ValueError) else said or str(causes[-1])
        words = escape(" ".join(words.replace(token, HIDDEN).split())[:_LONGEST])
        known = _problem(hub, status, words)
        if known is not None:
            raise known from None
        if isinstance(error, ValueError):  # The hub, or the library, does not take a file or the card.
            raise UsageError(f"{_KEY}: {hub.repository} does not take the model ({words}).") from None
        if not any(
            isinstance(cause, OSError) or type(cause).__module__.split(".")[0] in _HTTP_CLIENTS for cause in causes
        ):
            raise
        raise StorageError(
            f"{_KEY}: the hub of {hub.repository} does not answer ({words}). Try again; $HF_ENDPOINT is its address."
        ) from None


def _problem(hub: HubConfig, status: int, words: str) -> ShardwrightError | None:
    """Returns the error of an answer with a status; `None` without one."""
    where = f"{_KEY}: {hub.repository}"
    if not status:
        return None
    if status == HTTPStatus.UNAUTHORIZED:
        fix = f"Put a valid one into {hub.token_env}."
        return UsageError(f"{where}: the hub does not take the token of {hub.token_env} (401). {fix}")
    if status == HTTPStatus.FORBIDDEN:
        fix = "Give it write access, and accept the terms of a gated repository."
        return UsageError(f"{where}: the token of {hub.token_env} may not write there (403: {words}). {fix}")
    if status == HTTPStatus.NOT_FOUND:
        fix = f"Check {_KEY}.repository, and that the token may see it."
        return UsageError(f"{where}: the hub has no such owner or repository (404). {fix}")
    if status in (HTTPStatus.CONFLICT, HTTPStatus.PRECONDITION_FAILED):
        return CheckFailed(f"{where}: somebody else has pushed there meanwhile ({status}). Push again.")
    if status == HTTPStatus.TOO_MANY_REQUESTS or status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return StorageError(f"{where}: the hub cannot answer now ({status}). Push again later.")
    return UsageError(f"{where}: the hub does not take the model ({status}: {words}).")


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """Yields an error and what it was raised for: the library wraps errors of uploads."""
    while error is not None:
        yield error
        error = error.__cause__


def _status(error: BaseException) -> int:
    return int(getattr(getattr(error, "response", None), "status_code", 0) or 0)
