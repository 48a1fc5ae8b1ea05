"""Keeps secrets and folders of a machine out of what is published, printed and logged.

`redact` removes credentials from URLs; the streams of every command and the messages of all errors pass through it.
`published` prepares values for a file that goes along with a dataset. `is_secret` recognizes a value that belongs in a
store of secrets, so that the configuration refuses it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any

HIDDEN = "…"
# `user:password@` or `token@` of a URL.
_USER = re.compile(r"(?<=://)[^\s/@'\"<>]+@")
# The query of a URL that is signed, or contains a key. `?` alone is a wildcard of a path.
_QUERY = re.compile(
    r"(://[^\s?'\"<>]*\?)(?=[^\s'\"<>]*(?:x-(?:amz|goog)-[\w-]+|sig|signature|\w*token|\w*key\w*|\w*secret\w*|passw\w*|"
    r"\w*credentials?|auth\w*|expires|googleaccessid|policy|code)=)[^\s'\"<>]*",
    re.IGNORECASE,
)
# The folders of an absolute path in a text.
_FOLDERS = re.compile(r"(?<![\w.:/~*…-])/(?:[^\s/'\",;:()\[\]<>]+/)+(?=[^\s/])")
_WILDCARD = re.compile(r"[*?\[{]")
_SECRET_NAME = re.compile(
    r"token|secret|passw|pwd|api_?key|access_?key|account_?key|private_?key|credential|authorization", re.IGNORECASE
)
# GitHub, GitLab, AWS, OpenAI, Slack, Google, Hugging Face, JSON Web Tokens, keys in PEM.
_SECRET_VALUE = re.compile(
    r"gh[opsur]_\w{20}|github_pat_\w{20}|glpat-[\w-]{15}|A[KS]IA[A-Z0-9]{12}|sk-[\w-]{16}|xox[abeprs]-|AIza[\w-]{20}|"
    r"hf_\w{20}|eyJ[\w-]{8,}\.[\w-]+\.|-----BEGIN"
)
_RANDOM = re.compile(r"(?=(?:\D*\d){4})(?=.*[A-Za-z])[A-Za-z0-9+=_]{24,}")
# Switches and numbers, and names of files, are no secrets whatever the variable is called.
_PLAIN = re.compile(r"[\d.]*|[A-Za-z]{1,7}|/.*")


def redact(text: str) -> str:
    """Returns a text without user names, passwords and queries of the URLs in it."""
    if "://" not in text:
        return text
    return _QUERY.sub(rf"\1{HIDDEN}", _USER.sub(f"{HIDDEN}@", text))


def has_credentials(text: str) -> bool:
    """Returns whether a text contains a URL with a user name, a password or a query."""
    return redact(text) != text


def is_secret(name: str, value: str) -> bool:
    """Returns whether the value of an environment variable looks like a secret, by its name or by itself."""
    if _PLAIN.fullmatch(value):
        return False
    return bool(
        _SECRET_NAME.search(name) or _SECRET_VALUE.search(value) or _RANDOM.fullmatch(value) or has_credentials(value)
    )


def published(value: Any, base: str = "") -> Any:
    """Returns plain values without credentials and without folders of this machine.

    Args:
        value: mappings, lists, texts and others; paths in it may be patterns.
        base: folder that absolute paths are made relative to; what is outside of it keeps its last name only.
    """
    if isinstance(value, Mapping):
        return {name: published(inner, base) for name, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [published(inner, base) for inner in value]
    if not isinstance(value, str):
        return value
    text = redact(value)
    if os.path.isabs(text) and "\n" not in text:
        return _relative(text, base)
    if " " not in text:
        return text  # Not a sentence; a pattern may begin with a slash anywhere.
    home = os.path.expanduser("~")
    for folder in (base, os.getcwd(), home):
        if folder and folder != os.sep:
            text = text.replace(f"{folder.rstrip(os.sep)}{os.sep}", "" if folder != home else "~/")
    return _FOLDERS.sub(f"{HIDDEN}/", text)


def _relative(path: str, base: str) -> str:
    """Returns a path from a folder on; its last name, with the wildcards below it, if it is elsewhere."""
    inside = f"{base.rstrip(os.sep)}{os.sep}"
    if base and path.startswith(inside):
        return path[len(inside) :]
    names = [name for name in path.split(os.sep) if name]
    fixed = next((place for place, name in enumerate(names) if _WILDCARD.search(name)), len(names))
    return "/".join(names[max(0, fixed - 1) :])
