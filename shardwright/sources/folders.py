"""Class folders: the first folder of an image's key is its class."""

from __future__ import annotations

from shardwright.sources.key_source import KeySource


class ClassFolders(KeySource):
    """See `KeySource`."""

    def _label(self, key: str) -> str:
        return class_folder(key)

    def _place(self, key: str, label: str) -> str:
        return f"{key}, folder {label}"

    def _unlabelled(self) -> tuple[str, str]:
        return "no_class_folder", "the image lies in no class folder; move it into one"


def class_folder(key: str) -> str:
    """The first folder of a key, or an empty text."""
    folder, slash, _ = key.partition("/")
    return folder if slash else ""
