"""What is asked of the annotations of an input, for every format."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from shardwright.config.input import LabelsConfig
from shardwright.errors import ConfigError, UsageError
from shardwright.formats.base import FormatInput, Images
from shardwright.formats.export_record import ExportRecord
from shardwright.formats.image_names import NameIndex
from shardwright.formats.tables import ONE_FILE, Spans
from shardwright.label_formats import AUTO, LabelFormat

SEGMENTATION, CLASSIFICATION = "segmentation", "classification"


@dataclass(frozen=True)
class Request:
    """The arguments of `open_source`, without the path.

    Attributes:
        task: `segmentation` or `classification`.
        options: `input.labels`.
        classes: `input.classes`.
        images: what is listed.
        spans: the tables of several spans.
        record: of the export of ours that the annotations are.
    """

    task: str
    options: LabelsConfig
    classes: Mapping[str, int | None] | None
    images: Images
    spans: Spans = ONE_FILE
    record: ExportRecord | None = None

    def note(self, label_format: str, reason: str) -> tuple[str, ...]:
        """Returns a note of a format, where it was detected."""
        return (f"labels: {label_format}, since {reason}",) if self.options.format == AUTO else ()

    def given(self, notes: tuple[str, ...] = ()) -> FormatInput:
        """Returns the arguments that every format has."""
        return FormatInput(self.images, self.classes, notes)

    def names(self, *, exact: bool = False) -> NameIndex:
        """Returns how annotations name the images."""
        images = self.images
        return NameIndex(
            images.keys, images.skip, self.options.key_regex, exact=exact, root=images.root, first=images.first
        )

    def check_options(self, row: LabelFormat, reason: str, without: tuple[str, ...] = ()) -> None:
        """Checks that the format uses all options that are given.

        Args:
            row: the format.
            reason: why it is that one.
            without: options that it uses only in files of another kind.

        Raises:
            ConfigError: it does not.
        """
        for option in self.options.given:
            if not row.takes(option) or option in without:
                why = f" ({reason})" if reason else ""
                raise ConfigError(
                    f"input.labels.{option}", f"not used by {row.name}{why}", f"Remove input.labels.{option}."
                )

    def check_one_file(self, path: str, row: LabelFormat) -> None:
        """Checks that the annotations are not those of several spans, of which only tables are joined.

        Raises:
            UsageError: they are.
        """
        if self.spans.parts:
            raise UsageError(
                f"input.labels.path: {path} is read as {row.name}, and of several spans, or with on_conflict: "
                "with_span, only CSV tables are joined. Read one span, or write one file for all."
            )
