"""Several Examples as one dataset: those of a Resolver that selects spans, or outputs that are joined with `union`.

Of the same input only the newest version of each span is read, and of its several runs the last. The datasets are
joined split by split, from old to new. An image counts once: with the same bytes under the same key it was delivered
again, and the newest delivery decides about its split and its annotations. Other bytes under the same key are another
image, under a key with the span. A copy of an image in another split of an older span is left out, so that no image is
in two splits. The ledger has a row for each.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from tfx.types import Artifact, artifact_utils, standard_artifacts

from shardwright.components.runtime.open_examples import open_examples
from shardwright.dataset.joinable import check_same, largest_limit
from shardwright.dataset.ledger import DUPLICATE
from shardwright.dataset.reader import ImageDataset, LocatedShard, contents_of
from shardwright.dataset.train_statistics import STATISTICS_FILE, derived_statistics
from shardwright.running.progress import counted, print_note
from shardwright.staging.commit import DatasetPlan, commit
from shardwright.staging.shard_writer import planned_shards
from shardwright.staging.staging import RecordResult, Staging
from shardwright.storage.fingerprint import fingerprint
from shardwright.storage.whole_files import write_text
from shardwright.tfrecords.encode import byte_strings, encode_example
from shardwright.tfrecords.records import decode_example

# TFX reads the span in the custom properties, and copies the others.
SPAN, VERSION = "span", "version"
# Tells the runs of one input from those of others.
SOURCE = "source"
_KEY = "image/key"
_AGAIN, _COPY = "delivered_again", "exact_duplicate"


def open_all(examples: Sequence[Artifact], temporary: Callable[[], str]) -> ImageDataset:
    """Opens Examples as one dataset; several are joined in a folder, see the module.

    Args:
        examples: artifacts of one kind: all ingested, or all transformed with the same options.
        temporary: returns a folder; it may be on a bucket.

    Raises:
        DatasetError: see `open_examples`.
        UsageError: the datasets differ in classes, features or options that readers use for all records.
    """
    chosen = newest_examples(examples)
    datasets = [open_examples(one, temporary) for one in chosen]
    if len(datasets) == 1:
        return datasets[0]
    check_same(datasets)
    each = [_Delivery(dataset, *span_of(one)) for dataset, one in zip(datasets, chosen, strict=True)]
    _decide(each)
    return _join(each, temporary())


def newest_examples(examples: Sequence[Artifact]) -> list[Artifact]:
    """Returns the artifacts that count, by span and version: of one input, only the last of each span."""
    last: dict[object, Artifact] = {}
    for one in sorted(examples, key=lambda one: (*span_of(one), one.id)):
        source = one.get_string_custom_property(SOURCE)
        last[source or one.uri, span_of(one)[0]] = one
    if len(last) < len(examples):
        left = counted(len(examples) - len(last), "older version or run", "older versions or runs")
        print_note(f"examples: {left} of the same spans left out")
    return sorted(last.values(), key=lambda one: (*span_of(one), one.get_string_custom_property("dataset_digest")))


def span_of(examples: Artifact) -> tuple[int, int]:
    """Returns span and version; 0 where the input names none."""
    span, version = (
        int(examples.get_string_custom_property(name) or examples.get_int_custom_property(name))
        for name in (SPAN, VERSION)
    )
    return span or examples.span, version or examples.version


def set_span(examples: Artifact, span: int, version: int) -> None:
    """Sets span and version as TFX's ExampleGens do."""
    examples.span, examples.version = span, version
    examples.set_int_custom_property(SPAN, span)
    examples.set_int_custom_property(VERSION, version)


def as_artifact(dataset: ImageDataset) -> Artifact:
    """Returns a dataset as TFX's code takes examples."""
    made = standard_artifacts.Examples()
    made.uri = dataset.root
    made.split_names = artifact_utils.encode_split_names(list(dataset.splits))
    return made


@dataclass
class _Delivery:
    """A dataset that is joined.

    Attributes:
        dataset: it.
        span: its span.
        version: its version.
        left_out: position of an image -> the code and reason why it is left out.
        renamed: position of an image -> its new key.
    """

    dataset: ImageDataset
    span: int
    version: int
    left_out: dict[int, tuple[str, str]] = field(default_factory=dict)
    renamed: dict[int, str] = field(default_factory=dict)

    def shards(self) -> Iterator[tuple[int, LocatedShard]]:
        """Yields the shards, each with the position of its first image."""
        start = 0
        for split in self.dataset.splits:
            for shard in self.dataset.shards(split):
                yield start, shard
                start += shard.records

    def results(self, start: int, shard: LocatedShard, key_feature: str) -> Iterator[RecordResult]:
        """Yields what becomes of the records of a shard."""
        for position, (key, _, payload) in enumerate(self.dataset.placed_records(shard, proven=True), start):
            if position in self.left_out:
                yield RecordResult(self.renamed.get(position, key), None, DUPLICATE, *self.left_out[position])
            elif position in self.renamed:
                new, values = self.renamed[position], decode_example(payload)
                if key_feature in values:
                    # An empty list says nothing about its kind.
                    typed = {name: byte_strings(v) if isinstance(v, list) else v for name, v in values.items()}
                    payload = encode_example({**typed, key_feature: new.encode("utf-8")})
                yield RecordResult(new, payload)
            else:
                yield RecordResult(key, payload)


def _decide(deliveries: Sequence[_Delivery]) -> None:
    """Decides about images that several deliveries have: the newest first. No record is read."""
    keys: dict[str, tuple[int, str]] = {}
    splits: dict[int, str] = {}
    for delivery in reversed(deliveries):
        contents = contents_of(delivery.dataset).tolist()
        mine: dict[str, tuple[int, str]] = {}
        for start, shard in delivery.shards():
            for position, (key, _) in enumerate(delivery.dataset.entries(shard), start):
                content = contents[position]
                known = splits.get(content, shard.split) if content else shard.split
                name = key
                if key in keys:
                    # A key that no other image has.
                    name, number = f"span-{delivery.span}/{key}", 2
                    while name in keys or name in mine:
                        name, number = f"span-{delivery.span}-{number}/{key}", number + 1
                    delivery.renamed[position] = name
                    if content and keys[key][0] == content:
                        delivery.left_out[position] = (_AGAIN, f"a newer span has the same bytes as {key}")
                if position not in delivery.left_out and known != shard.split:
                    reason = f"a newer span has the same bytes in {known}; it was in {shard.split}"
                    delivery.left_out[position] = (_COPY, reason)
                mine[name] = (content, shard.split)
        keys |= mine
        for content, split in mine.values():
            splits.setdefault(content, split)


def _join(deliveries: Sequence[_Delivery], temporary: str) -> ImageDataset:
    datasets = [delivery.dataset for delivery in deliveries]
    newest = datasets[-1].manifest
    digests = [dataset.manifest.digest for dataset in datasets]
    sources = [(delivery, start, shard) for delivery in deliveries for start, shard in delivery.shards()]
    plan = DatasetPlan(
        kind=newest.kind,
        task=newest.task,
        classes=newest.classes,
        recipe={**newest.recipe, **largest_limit(datasets[::-1]), "joined": [[d.span, d.version] for d in deliveries]},
        parent=fingerprint(digests),
        features=newest.features,
        names=newest.names,
        inputs=sum(shard.records for _, _, shard in sources),
        shards=planned_shards([shard.split for _, _, shard in sources]),
        labels=newest.labels,
        further_parents={f"source-{number}": digest for number, digest in enumerate(digests)},
    )
    staging = Staging.open(os.path.join(temporary, "staging"), plan.fingerprint)
    out = os.path.join(temporary, "joined", plan.fingerprint)
    with staging.locked():
        for place, (delivery, start, shard) in zip(plan.shards, sources, strict=True):
            facts = plan.facts(place)
            staging.write_shard(place, delivery.results(start, shard, newest.stored(_KEY)), facts=facts)
        if plan.kind == "transform":
            text = derived_statistics([dataset.root for dataset in datasets], whole=False)
            if text is not None:
                write_text(staging.path(STATISTICS_FILE), text)
                plan = replace(plan, kept=(STATISTICS_FILE,))
        commit(staging, plan, out, {})
    spans = ", ".join(str(delivery.span) for delivery in deliveries)
    again = Counter(code for delivery in deliveries for code, _ in delivery.left_out.values())
    renamed = sum(len(delivery.renamed.keys() - delivery.left_out.keys()) for delivery in deliveries)
    print_note(
        f"examples: {len(deliveries)} datasets joined (spans {spans}): {again[_AGAIN]} images delivered again, "
        f"{again[_COPY]} left out because another split has them, {renamed} with the span in their key"
    )
    return ImageDataset.open(out)
