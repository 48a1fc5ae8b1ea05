"""The files of a folder, listed once, and what the names of files and folders say about their use."""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from shardwright.config.split import split_word
from shardwright.dataset.outputs import is_below, output_folders
from shardwright.images.header import has_image_ending
from shardwright.pipelines.init.read_trial import absolute
from shardwright.storage import Listing, is_folder, list_inputs, list_names
from shardwright.storage.listing import has_wildcard
from shardwright.storage.spans import SpanPath

# Folders of pictures about a data set: made from it, or for its description.
_ASIDE = re.compile(
    r"previews?|overlays?|vis|viz|visuali[sz]ations?|results?|pred(?:iction)?s?|outputs?|assets?|docs?|documentation|"
    r"fig(?:ure)?s?|plots?|charts?|screen(?:shot)?s?|samples?|examples?|demos?|thumb(?:nail)?s?|logos?|icons?|banners?|"
    r"readme|overview|teaser|media|static|back(?:up)?s?|copy|copies|old|te?mp|cache|logs?|runs?|debug|inference|"
    r"heatmaps?|gradcam|checkpoints?|reports?|slides?",
    re.I,
)
# Folders of files of one kind, not of one class.
_PLACES = re.compile(
    r"(?:jpeg|png)?(?:im(?:age)?s?|imgs?|pictures?|photos?|masks?|labels?|annot(?:ation)?s?|data|gt(?:fine|coarse)?|"
    r"leftimg|ground|truth|input|pred(?:ict(?:ion)?s?)?)",
    re.I,
)
# Folders that hold another kind of masks of the same images, or those of another person, not another class.
_KINDS = re.compile(
    r"(?:masks?|labels?|colou?rs?(?:maps?|masks?)?|instances?(?:ids?)?|panoptic|semantic|(?:train|label)?ids?|rgb|"
    r"gr[ae]y|polygons|(?:1st|2nd|first|second)|(?:observer|annotator|rater|expert|reader|grader|ho)s?|[0-9]|[_ -])+",
    re.I,
)
_SEEN = re.compile(r"(?:[Ww]ith(?:out)?|[Nn]on?|[Nn]ot)(?=[_ -]|[A-Z])")
# Annotations of something else than classes, or made of others.
DERIVED = re.compile(
    r"instances?$|panoptic|colou?r|rgb|caption|keypoint|stuff|edge|boundar|depth|distance|pred|few.?shot", re.I
)
LOSSLESS = (".png", ".gif", ".bmp", ".tif", ".tiff")
_MARK = re.compile(r"[_. -]+")
# So many files are a handful: at most five and a fifth of the others, or one in a hundred.
_FEW, _OF_FEW, _OF_MANY = 5, 5, 100
# `seg_overlay`, `SegmentationClassVisualization`.
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")


@dataclass(frozen=True)
class Inventory:
    """The files of a folder; those of datasets and runs of ours are left out.

    Attributes:
        folder: the folder as the user wrote it.
        root: absolute path of the folder that was listed; of spans, the newest.
        keys: paths of the files below it, sorted.
        spans: whether the folder's path names spans.
    """

    folder: str
    root: str
    keys: Sequence[str]
    spans: bool

    @staticmethod
    def of(folder: str) -> Inventory | None:
        """Lists a folder; returns `None` for a glob, one file, and spans that are not there yet."""
        if has_wildcard(folder):
            return None
        # The newest span shows how all of them look.
        spans = SpanPath.parse("input.images", absolute(folder)) if "{" in folder else None
        newest = [span.path for span in spans.find(list_names)[-1:] if is_folder(span.path)] if spans else []
        if "{" in folder and not newest:
            return None
        root = newest[0] if newest else absolute(folder)
        listing = list_inputs(root, one_file=True)
        if len(listing.keys) == 1 and listing.path(0) == root:
            return None
        outputs = output_folders(listing.keys)
        keys = [key for key in listing.keys if not is_below(key, outputs)] if outputs else list(listing.keys)
        return Inventory(folder, listing.root, keys, bool(newest))

    @cached_property
    def images(self) -> list[str]:
        """Returns the files that are called like images."""
        return [key for key in self.keys if has_image_ending(key)]

    def below(self, path: str) -> str:
        """Returns the path of a file or folder below this one; an absolute path where it is elsewhere."""
        root = self.root.rstrip("/")
        if path.startswith(root + "/") and "/." not in path and "//" not in path:
            return unicodedata.normalize("NFC", path[len(root) + 1 :].rstrip("/"))  # As listings have them.
        whole = absolute(path).rstrip("/")
        whole = whole if not self.spans else whole.replace(absolute(self.folder).rstrip("/"), root, 1)
        return "" if whole == root else whole.removeprefix(root + "/")

    def files_of(self, listing: Listing | None) -> set[str]:
        """Returns the files of a listing as paths below this folder."""
        return set() if listing is None else {self.below(listing.path(i)) for i in range(len(listing.keys))}

    def named(self, key: str) -> str:
        """Returns the path of a file or folder as the configuration has it."""
        return os.path.join(self.folder, key) if key else self.folder


def is_aside(folder: str) -> bool:
    """Returns whether a folder is called after pictures about a data set, as `results` or `seg_overlay` is."""
    return any(_ASIDE.fullmatch(word) for word in _WORD.findall(folder.rpartition("/")[2]))


def is_kind_of_masks(folder: str) -> bool:
    """Returns whether a folder is called after a kind of masks, as `colormaps` or `instances` is, not after a class."""
    return _KINDS.fullmatch(folder.rpartition("/")[2]) is not None


def is_derived(stem: str, stems: Collection[str]) -> bool:
    """Returns whether a name is another one with something before or behind it, as `a_preview` is of `a`."""
    marks = list(_MARK.finditer(stem))
    return any(stem[: mark.start()] in stems or stem[mark.end() :] in stems for mark in marks)


def is_place(folder: str) -> bool:
    """Returns whether a folder is called after what a data set consists of, as `train_images` or `gtFine` is.

    `with_mask` is not: it says what is to be seen.
    """
    return not _SEEN.match(folder) and any(
        _PLACES.fullmatch(word) or split_word(word) for word in _WORD.findall(folder)
    )


def is_handful(files: int, others: int) -> bool:
    """Returns whether files are so few next to others that they may be left out with a note alone."""
    return files <= min(_FEW, others // _OF_FEW) or files * _OF_MANY <= others


def common_folder(keys: Iterable[str]) -> str:
    """Returns the deepest folder that all of the files are in."""
    folders = {os.path.dirname(key) or "." for key in keys}
    return "" if not folders else os.path.commonpath(list(folders)).removeprefix(".")


def folders_above(keys: Iterable[str]) -> set[str]:
    """Returns all folders above some files, the outermost as an empty text."""
    found, todo = {""}, {os.path.dirname(key) for key in keys}
    while todo:
        folder = todo.pop()
        if folder not in found:
            found.add(folder)
            todo.add(os.path.dirname(folder))
    return found


def is_in(key: str, folders: Collection[str]) -> bool:
    """Returns whether a file is in one of some folders; the empty text is the outermost."""
    return "" in folders or is_below(key, folders)
