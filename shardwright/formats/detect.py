"""Opens annotations: the format that is stated or detected (`input.labels.format: auto`), with the reason.

A file or a folder that only one format can be is recognized by its head (`registry`). Another folder holds mask images;
another file is COCO JSON or a table, whose columns decide: run lengths, classes, captions or numbers. A table is a CSV,
a Parquet file, or JSON lines of captions or numbers. Without either, the keys of the images state the classes: by
folders, or by file names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from shardwright.config.input import FLOAT, LabelsConfig
from shardwright.dataset.manifest import NONE
from shardwright.errors import ConfigError, Reading, UsageError
from shardwright.formats.base import CLASSIFICATION, SEGMENTATION, AnnotationFormat, Images, Request, Unlabeled
from shardwright.formats.class_folders import (
    CLASS_FOLDERS,
    FILE_NAME,
    ClassFolders,
    FileNames,
    class_level,
    detect_key_format,
)
from shardwright.formats.columns import FurtherColumns
from shardwright.formats.export_record import FoundExport
from shardwright.formats.exported import Exported, export_options
from shardwright.formats.head import Head
from shardwright.formats.image_names import NameIndex, detect_key_pattern, quoted
from shardwright.formats.registry import Decision, decide, reader, recognize
from shardwright.formats.rows import TableFormat, TableInput
from shardwright.formats.signs import YAML_ENDINGS
from shardwright.formats.table_values import (
    are_fractions,
    class_readings,
    detect_one_hot,
    find_image_column,
    find_numbers,
    headless_roles,
    mask_readings,
    open_headless,
    run_columns,
)
from shardwright.formats.tables import (
    CAPTION,
    IMAGE,
    IMAGE_LABEL,
    LABEL,
    MASK,
    JoinedTable,
    LinesTable,
    Table,
    caption_columns,
    choose_columns,
    columns_note,
    missing_columns,
    read_kept,
    reduce_header,
    shown_header,
)
from shardwright.images.header import has_image_ending
from shardwright.label_formats import AUTO, BY_NAME, FILES, MASKS, TABLE, LabelFormat

_KEY_FORMATS = {CLASS_FOLDERS: "class folders", FILE_NAME: "file_name"}
CAPTIONS, NUMBERS = "captions", "numbers"
_RLE_COLUMNS = (
    "Image_Label,EncodedPixels (file_Class) or ImageId,ClassId,EncodedPixels or ImageId_ClassId,EncodedPixels or, for "
    "one class, ImageId,EncodedPixels"
)
_NUMBER_COLUMNS = "one column for the image and one or more of numbers"
_FORMAT_IS_SET = "input.labels.format is set"
# How a field begins that holds objects.
_JSON, _SHOWN = ("[{", "{"), 40


def open_source(request: Request, *, export: FoundExport | None = None, head: Head | None = None) -> AnnotationFormat:
    """Opens the annotations of an input.

    Args:
        request: what is asked.
        export: the export of ours that they are.
        head: of the path, where it was read already.

    Raises:
        UsageError: the annotations are missing, lack columns, do not fit the task, or can be read in two ways.
    """
    if export is None:
        return _open(request, head)
    options, classes = export_options(export.record, request.options, request.classes)
    request = replace(request, options=options, classes=classes, record=export.record)
    return Exported(request, _open(request, head), export)


def detect_task(labels: str | None, options: LabelsConfig, root: str = "", keys: Sequence[str] = ()) -> tuple[str, str]:
    """Detects the task that annotations are for.

    Args:
        labels: absolute path of the table or the folder, or `None`.
        options: `input.labels`.
        root: see `Head`.
        keys: likewise.

    Returns:
        The task, and why.

    Raises:
        UsageError: the file cannot be read, or fits both tasks.
    """
    if labels is None:
        return CLASSIFICATION, "there are no masks"
    head = Head.read(labels, root, keys)
    row, reason, called, _ = decide(options.format, head)
    if row is not None and (called or row.reads != TABLE):
        if row.name in ("box_csv", "captions"):
            return CLASSIFICATION, f"{head.name} holds {called or 'boxes'}"
        why = f"{reason}, of masks" if row.reads == MASKS else f"{head.name} is of an annotation tool"
        return SEGMENTATION, reason if row.name == "coco_json" else why
    if options.format in (AUTO, "captions", "numbers") and (lines := head.why_lines(several=options.format == AUTO)):
        return CLASSIFICATION, f"{lines}: there are no masks"
    table = open_headless(Table.open(labels), has_image_ending)
    if table.headless and run_columns(table, ()):
        return SEGMENTATION, f"{table.name} has run lengths"
    found = choose_columns(table, options.columns)
    if MASK not in found or not (IMAGE_LABEL in found or IMAGE in found):
        return CLASSIFICATION, f"{table.name} has no column of masks"
    header = table.header[found[MASK]]
    if MASK in options.columns or not _is_counts(table, found):
        return SEGMENTATION, f"{table.name} has the column {header!r}"
    problem = f"{labels}: the column {header!r} may be masks as COCO counts, or a number. Set task."
    raise UsageError(problem).with_readings(
        Reading("it has masks", {"task": SEGMENTATION}), Reading("it has numbers", {"task": CLASSIFICATION})
    )


def _open(request: Request, head: Head | None) -> AnnotationFormat:
    options, images = request.options, request.images
    if request.record is not None and request.record.labels == NONE and options.format == AUTO:
        return Unlabeled(request)
    if not request.path:
        try:
            return _open_keys(request)
        except UsageError:
            _check_next_to_images(request)
            raise
    head = head or Head.read(request.path, images.root, images.keys)
    decision = decide(options.format, head)
    row, request = decision.row, replace(request, content=head.content)
    if row is None or row.reads == TABLE:
        return _open_table(request, head, decision)
    request.check_one_file(row)
    if row.reads == MASKS and request.task == CLASSIFICATION:
        if not decision.called and options.format == AUTO:
            reader(row.reader)(request)  # Reports what else is in the folder.
        raise UsageError(
            f"{head.path}: holds masks ({decision.reason}), and task is classification. Use task: segmentation, or "
            "give a file of labels. Class folders are read from input.images."
        )
    if row.reads == FILES and not head.folder and head.ending not in YAML_ENDINGS:
        held = decision.called or row.name
        raise UsageError(f"input.labels.path: {head.path}: holds {held}. Give the folder of these files.")
    request.check_options(row, decision.reason)
    return reader(row.reader)(replace(request, notes=request.note(row.name, decision.reason)))


def _check_next_to_images(request: Request) -> None:
    """Checks that no files of an annotation tool are next to images whose names and folders state no class.

    Raises:
        UsageError: there are some; with the lines that read them.
    """
    root = request.images.root
    found = recognize(Head.read(root, root, request.images.keys)) if root and request.options.format == AUTO else None
    if found is not None and found.row is not None and found.row.reads == FILES:
        raise UsageError(
            f"input.labels.path: missing, and {root} holds {found.called} next to the images. To read them, write "
            f"input.labels: {{path: {quoted(root)}, format: {found.row.name}}}."
        )


def _open_keys(request: Request) -> AnnotationFormat:
    options, images, classes, record = request.options, request.images, request.classes, request.record
    if options.format == "none":
        return Unlabeled(request)
    if record is not None and options.format in ("auto", CLASS_FOLDERS):
        return ClassFolders(request, folders=record.folders)
    if request.task == SEGMENTATION:
        formats = "Segmentation needs a CSV with run lengths, COCO JSON, or a folder of masks. For images alone, set "
        formats += "task: classification and input.labels.format: none."
        raise ConfigError("input.labels.path", "missing", formats)
    notes: tuple[str, ...] = ()
    chosen = options.format
    found = class_level(images.keys, images.skip, classes, asked=chosen == CLASS_FOLDERS)
    if chosen == AUTO:
        if options.regex is None:
            chosen, reason = detect_key_format(images.keys, images.skip, classes, found)
        else:
            chosen, reason = FILE_NAME, "input.labels.regex is given"
        notes = request.note(_KEY_FORMATS[chosen], reason)
    request.check_options(BY_NAME[chosen], "input.labels.path is not given")
    if chosen == FILE_NAME:
        return FileNames(replace(request, notes=notes))
    if found.error:
        raise found.error
    notes += (found.note,) if found.note else ()
    return ClassFolders(replace(request, notes=notes), found.level)


def _open_table(request: Request, head: Head, decision: Decision) -> AnnotationFormat:
    """Opens a table.

    Args:
        request: what is asked.
        head: of the file.
        decision: the format where the configuration states it, or COCO captions.

    Raises:
        UsageError: columns are missing, do not fit the task, or can be read in two ways.
    """
    chosen = request.options.format
    if decision.called:
        row, holds = BY_NAME[CAPTIONS], f"holds {decision.called}"
        _check_no_classes(request, row, f"{holds}, no masks", f"{holds} and no classes")
        request.check_options(row, f"{head.name} {holds}", without=("columns.image", "columns.caption", "features"))
        return reader("captions:CaptionCoco")(replace(request, notes=request.note(CAPTIONS, decision.reason)))
    if chosen in (AUTO, CAPTIONS, NUMBERS) and (reason := head.why_lines(several=chosen == AUTO)):
        return _open_lines(request, reason)
    table = JoinedTable.join(request.spans) if request.spans.parts else Table.open(request.path, request.content)
    options = request.options
    if request.record is None:
        table = open_headless(table, has_image_ending)
    if IMAGE not in options.columns and options.key_regex is None and request.record is None:
        column = find_image_column(table, choose_columns(table, options.columns), request.names())
        if column is not None:
            roles = {**(headless_roles(table, column) if table.headless else {}), **options.columns}
            named = replace(options, columns={**roles, IMAGE: table.header[column]})
            request = replace(request, options=named)
    return _open_rows(request, table, _detect_table(request, table))


def _open_lines(request: Request, reason: str) -> AnnotationFormat:
    """Opens JSON lines, of numbers where that is set, or where they have numbers and no captions."""
    options, row = request.options, BY_NAME[CAPTIONS]
    holds = "captions or numbers"
    problem = f"JSON lines ({reason}) hold {holds}, no masks"
    _check_no_classes(request, row, problem, f"holds {holds} and no classes ({reason})")
    content = read_kept(request.path) if request.content is None else request.content
    chosen = options.format == NUMBERS
    if chosen or (options.format != CAPTIONS and not set(options.columns) - {IMAGE}):
        try:
            table = LinesTable.of(request.path, content)
        except UsageError:
            if chosen:
                raise
        else:
            found = choose_columns(table, options.columns)
            detected = None
            if chosen or (IMAGE in found and CAPTION not in found):
                detected = _find_number_columns(request, table, found)
            if detected is not None:
                return _open_rows(request, table, detected)
    request.check_options(row, reason, without=("features",))
    return reader("captions:CaptionJsonl")(replace(request, content=content, notes=request.note(CAPTIONS, reason)))


def _check_no_classes(request: Request, row: LabelFormat, no_masks: str, no_classes: str) -> None:
    """Checks that neither masks nor classes are asked of captions and numbers."""
    request.check_one_file(row)
    if request.task == SEGMENTATION:
        raise UsageError(f"{request.path}: {no_masks}. Use task: classification.")
    if request.classes is not None:
        raise ConfigError("input.classes", f"{request.path} {no_classes}", "Remove input.classes.")


def _detect_table(request: Request, table: Table) -> TableFormat:
    """Returns the format of a table.

    Raises:
        UsageError: columns are missing, do not fit the task, or can be read in two ways.
    """
    task, options = request.task, request.options
    found = choose_columns(table, options.columns)
    if task == "classification" and MASK not in options.columns and _is_counts(table, found):
        del found[MASK]
    wanted, reason = options.format, _FORMAT_IS_SET
    if wanted == "auto" and MASK in found:
        wanted, reason = "rle_csv", f"{table.name} has a column {table.header[found[MASK]]!r}"
    asked_captions = (found[CAPTION],) if CAPTION in options.columns else ()
    if wanted == "rle_csv":
        if task == "classification":
            raise UsageError(
                f"{table.path}: holds masks ({reason}), and task is classification. Use task: segmentation, or "
                "input.labels.format: label_csv for its columns of image and class."
            )
        if MASK not in found or not (IMAGE_LABEL in found or IMAGE in found):
            raise missing_columns(table, _RLE_COLUMNS)
        # With one column for both, a separate image or label column that only looks like one must not count.
        roles = (IMAGE_LABEL, MASK) if IMAGE_LABEL in found else (IMAGE, LABEL, MASK)
        return TableFormat("rle_csv", reason, {role: found[role] for role in roles if role in found}, asked_captions)
    if task == "segmentation":
        taken = {found[IMAGE]} if IMAGE in found else set()
        raise missing_columns(table, _RLE_COLUMNS).with_readings(*mask_readings(table, taken))
    return _detect_without_masks(request, table, found, asked_captions)


def _detect_without_masks(
    request: Request, table: Table, found: Mapping[str, int], asked_captions: tuple[int, ...]
) -> TableFormat:
    """Returns the format of a table of classes, captions or numbers, by the roles that were found."""
    options, wanted = request.options, request.options.format
    auto, unlabeled = wanted == AUTO, IMAGE in found and LABEL not in found
    if wanted == NUMBERS:
        numbers = _find_number_columns(request, table, found)
        assert numbers is not None, "the format is set"
        return numbers
    taken = {found[IMAGE]} if IMAGE in found else set()
    if unlabeled and wanted != CAPTIONS:
        asked = [table.header.index(name) for name in options.features if name in table.header]
        taken = {*asked, *(found[role] for role in (IMAGE, CAPTION) if role in found)}
        one_hot = detect_one_hot(table, taken, request.classes, options.multi_label)
        if one_hot is not None:
            reason = one_hot.reason if auto else _FORMAT_IS_SET
            return TableFormat("label_csv", reason, {IMAGE: found[IMAGE]}, asked_captions, one_hot)
    captions = caption_columns(table, found, list(found.values()))
    if wanted == CAPTIONS or (auto and unlabeled and captions):
        if IMAGE not in found or not captions:
            raise missing_columns(table, "one column for the image and one or more for its captions")
        if request.classes is not None:
            raise UsageError(
                f"{table.path}: contains captions and no classes, but input.classes names some. Remove input.classes, "
                "or name the column of classes in input.labels.columns.label."
            )
        shown = shown_header([table.header[i] for i in captions])
        reason = f"{table.name} has no classes, but captions in {shown}" if auto else _FORMAT_IS_SET
        return TableFormat(CAPTIONS, reason, {IMAGE: found[IMAGE]}, captions)
    if auto and unlabeled and (numbers := _find_number_columns(request, table, found)) is not None:
        return numbers
    if not {IMAGE, LABEL} <= found.keys():
        expected = "one column for the image and one for its class, e.g. image,label, or a column of 0 and 1 a class"
        possible = class_readings(table, taken) if auto and IMAGE in found else []
        raise missing_columns(table, expected).with_readings(*mask_readings(table, taken), *possible)
    _check_label_values(request, table, found[LABEL])
    reason = f"{table.name} has no column of masks" if auto else _FORMAT_IS_SET
    return TableFormat("label_csv", reason, {role: found[role] for role in (IMAGE, LABEL)}, asked_captions)


def _is_counts(table: Table, found: Mapping[str, int]) -> bool:
    """Returns whether the column of masks is one in segmentation only: many tables have counts of something else."""
    return MASK in found and reduce_header(table.header[found[MASK]]) == "counts"


def _find_number_columns(request: Request, table: Table, found: Mapping[str, int]) -> TableFormat | None:
    """Returns the columns of numbers of a table; `None` where the format is not set and there are none.

    Raises:
        UsageError: the format is set, and there are none; or it is not set, and other columns are not numbers.
    """
    options, chosen = request.options, request.options.format == NUMBERS
    if IMAGE not in found:
        raise missing_columns(table, _NUMBER_COLUMNS)
    columns = find_numbers(table, {found[IMAGE]})
    wanted = columns.wanted(options.features)
    shown = shown_header(columns.numbers)
    if chosen and not wanted:
        raise missing_columns(table, _NUMBER_COLUMNS)
    if not chosen and (columns.flags or not columns.numbers or request.classes is not None):
        return None
    if not chosen and columns.others and not options.features:
        if table.headless:
            raise UsageError(
                f"{table.path}: has no header, and its columns of numbers ({len(columns.numbers)}) and of texts "
                f"({1 + len(columns.others)}) may mean several things. Write the header above its first line."
            )
        line = "{" + ", ".join(f"{quoted(name)}: float" for name in columns.numbers) + "}"
        raise UsageError(
            f"{table.path}: no column of classes was found. The columns {shown} hold numbers, and "
            f"{shown_header(columns.others)} do not. To read the numbers, set input.labels.format: numbers and "
            f"input.labels.features: {line}."
        ).with_readings(
            *mask_readings(table, {found[IMAGE]}),
            *class_readings(table, {found[IMAGE]}),
            Reading(
                f"the columns {shown} are numbers to predict, and {shown_header(columns.others)} are left out",
                {"input.labels.format": NUMBERS, "input.labels.features": dict.fromkeys(columns.numbers, FLOAT)},
            ),
        )
    reason = f"{table.name} has no classes, but numbers in {shown}" if not chosen else _FORMAT_IS_SET
    return TableFormat(NUMBERS, reason, {IMAGE: found[IMAGE]}, numbers=wanted)


def _check_label_values(request: Request, table: Table, column: int) -> None:
    """Checks that the column of classes is neither of JSON nor, where nothing states that it is, of fractions.

    Raises:
        UsageError: it is; of fractions with both readings.
    """
    options, header = request.options, table.header[column]
    cell = next((row.fields[column] for row in table.first_rows if row.fields[column].lstrip().startswith(_JSON)), "")
    if cell and request.record is None:
        raise UsageError(
            f"{table.path}: the column {header!r} holds JSON, such as {cell[:_SHOWN]!r}, and no names of classes. "
            "Export the annotations as JSON from the tool that wrote it, or write the classes alone."
        )
    stated = request.classes is not None or request.record is not None or LABEL in options.columns
    stated = stated or options.format != AUTO or options.multi_label is not None or bool(options.separator)
    if stated or not are_fractions(table, column):
        return
    raise UsageError(
        f"{table.path}: the column {header!r} holds numbers with fractions. Set input.labels.format: numbers to read "
        "them as numbers, or label_csv if each of them is a class."
    ).with_readings(
        Reading(f"{header!r} is a number to predict", {"input.labels.format": NUMBERS}),
        Reading(f"each value of {header!r} is a class", {"input.labels.format": "label_csv"}),
    )


def _open_rows(request: Request, table: Table, detected: TableFormat) -> AnnotationFormat:
    options, images, record = request.options, request.images, request.record
    one_hot = ("separator",) if detected.one_hot is not None else ()
    request.check_options(BY_NAME[detected.format], detected.reason, without=one_hot)
    headless = (f"{table.name}: its first line is a row, since it names an image",) if table.headless else ()
    notes = (
        *request.note(detected.format, detected.reason),
        *headless,
        columns_note(table, detected.roles, detected.captions),
    )
    if isinstance(table, JoinedTable):
        table = table.with_images(detected.roles[IMAGE_LABEL if IMAGE_LABEL in detected.roles else IMAGE])
    taken = {*detected.roles.values(), *detected.captions, *(detected.one_hot.columns if detected.one_hot else ())}
    left = [header for i, header in enumerate(table.header) if i not in taken and header not in ("", *detected.numbers)]
    if left and not options.features:
        notes = (*notes, f"left out: {shown_header(left)} (input.labels.features takes further columns)")
    names = request.names(exact=record is not None)
    hint = ""
    if options.key_regex is None and IMAGE in detected.roles and record is None:
        names, note, hint = _by_parts(table, detected.roles[IMAGE], images, names)
        notes = (*notes, *note)
    further = FurtherColumns(
        table, detected.numbers or options.features, taken, len(images.keys), required=bool(detected.numbers)
    )
    given = TableInput(
        **{**vars(request), "notes": notes},
        table=table,
        found=detected,
        by_name=names,
        further=further,
        hint=hint,
    )
    return reader("label_csv:OneHotCsv" if detected.one_hot else BY_NAME[detected.format].reader)(given)


def _by_parts(table: Table, column: int, images: Images, names: NameIndex) -> tuple[NameIndex, tuple[str, ...], str]:
    """Returns how rows name images where none of the first names is a path or a file name, see `detect_key_pattern`.

    Returns:
        How they do, a note if that is by parts of their paths, and a hint if no row should match.
    """
    first = dict.fromkeys(filter(None, (row.fields[column].strip() for row in table.first_rows)))
    if any(names.find(name) is not None for name in first):
        return names, (), ""
    guess = detect_key_pattern(list(first), images.keys, images.skip)
    if guess is None:
        return names, (), ""
    line = f"input.labels.key_regex: {quoted(guess.pattern)}"
    # A number that a path contains too may be the row's number; a name of several pieces does not match by chance.
    if guess.found < len(first) or guess.pieces < 2:
        return names, (), f"{guess.found} of its first {len(first)} names are images by {line}"
    note = f"{line}, since no name is a path, and by their parts each of the first {len(first)} is one image"
    return NameIndex(images.keys, images.skip, guess.pattern), (note,), ""
