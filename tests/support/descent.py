"""Shared by the tests of lineage, clean and forget: a run's folder as three months leave it, without any training.

- month 1: dataset 1, its transform, model 1, pushed
- month 2: dataset 2, stopped by the gate
- month 3: dataset 3 (splits kept from 1), its transform, model 3 (begun with 1), evaluated against 1, pushed
"""

from pathlib import Path

from ml_metadata.metadata_store import metadata_store
from ml_metadata.proto import metadata_store_pb2 as protos

from shardwright.dataset.reader import ImageDataset
from shardwright.lineage.blessing import Blessing, model_digest, write_blessing
from shardwright.lineage.record import write_lineage
from shardwright.storage.checksum import checksum_file
from shardwright.storage.fingerprint import fingerprint


class Months:
    """The paths of everything."""

    def __init__(self, root, small_dataset):
        self.root = Path(root)
        self.datasets = {month: self._dataset(small_dataset, month) for month in (1, 2, 3)}
        self.models = {1: self._model(1, {}), 3: self._model(3, {"warm_start": self.weights(1)})}
        names = {month: fingerprint(f"model {month}") for month in (1, 3)}
        self.evaluation = self.root / "artifacts/Evaluator/evaluation/3"
        self.evaluation.mkdir(parents=True)
        parents = {"model": names[3], "baseline": names[1], "examples": self.digest(3)}
        write_lineage(self.evaluation, kind="evaluation", fingerprint=names[3], parents=parents, recipe={})
        write_blessing(self.root / "pushed", Blessing("3", model_digest(self.models[3])))

    def digest(self, month):
        return ImageDataset.open(self.datasets[month]).manifest.digest

    def weights(self, month):
        return checksum_file(self.models_folder(month) / "assets.extra/model.keras")

    def models_folder(self, month):
        return self.root / "pushed" / str(month)

    def _dataset(self, small_dataset, month):
        """It has as many records as the month's number and two."""
        made = small_dataset(self.root / f"made-{month}", task="classification", counts={"train": [month + 2]})
        place = self.root / "artifacts/ImageExampleGen/examples" / str(month)
        place.parent.mkdir(parents=True, exist_ok=True)
        made.rename(place)
        manifest = ImageDataset.open(place).manifest
        previous = {"previous": self._digest_of(1)} if month == 3 else {}
        parents = {"input": manifest.parent, **previous}
        write_lineage(place, kind="ingest", fingerprint=manifest.fingerprint, parents=parents, recipe={})
        (self.root / f"made-{month}" / "staging").rmdir()
        (self.root / f"made-{month}").rmdir()
        return place

    def _digest_of(self, month):
        return ImageDataset.open(self.root / "artifacts/ImageExampleGen/examples" / str(month)).manifest.digest

    def _model(self, month, parents):
        transformed = self.root / "artifacts/ImageTransform/transformed_examples" / str(month)
        transformed.mkdir(parents=True)
        name = fingerprint(f"transform {month}")
        # A dataset would have a manifest.
        kind, parents_of_it = "transform_graph", {"input": self.digest(month)}
        write_lineage(transformed, kind=kind, fingerprint=name, parents=parents_of_it, recipe={})
        model = self.models_folder(month)
        (model / "assets.extra").mkdir(parents=True)
        (model / "assets.extra/model.keras").write_text(f"weights {month}")
        (model / "saved_model.pb").write_text(f"model {month}")
        parents = {"dataset": name, **parents}
        own = fingerprint(f"model {month}")
        write_lineage(model, kind="model", fingerprint=own, parents=parents, recipe={"epochs": month}, files=True)
        return model


def record_runs(root, runs):
    """Writes the metadata store of a run's folder, as TFX does.

    Args:
        root: the folder.
        runs: for every run its steps: (component, state, places read, places written), relative to the folder.
    """
    config = protos.ConnectionConfig()
    config.sqlite.filename_uri = str(Path(root, "metadata.sqlite"))
    store = metadata_store.MetadataStore(config)
    types = {name: store.put_context_type(protos.ContextType(name=name)) for name in ("pipeline_run", "node")}
    kind = store.put_execution_type(protos.ExecutionType(name="step"))
    thing = store.put_artifact_type(protos.ArtifactType(name="thing"))
    known, nodes = {}, {}
    for number, steps in enumerate(runs):
        run = protos.Context(type_id=types["pipeline_run"], name=f"run-{number}")
        (run_id,) = store.put_contexts([run])
        for component, state, inputs, outputs in steps:
            if component not in nodes:
                (nodes[component],) = store.put_contexts([protos.Context(type_id=types["node"], name=f"p.{component}")])
            execution = protos.Execution(type_id=kind, last_known_state=protos.Execution.State.Value(state))
            (execution_id,) = store.put_executions([execution])
            events = []
            for way, places in ((protos.Event.INPUT, inputs), (protos.Event.OUTPUT, outputs)):
                for place in places:
                    if place not in known:
                        artifact = protos.Artifact(type_id=thing, uri=place)
                        if place.startswith("pushed/"):
                            artifact.uri = f"artifacts/Pusher/pushed_model/{execution_id}"
                            artifact.custom_properties["pushed_destination"].string_value = place
                        (known[place],) = store.put_artifacts([artifact])
                    events.append(protos.Event(artifact_id=known[place], execution_id=execution_id, type=way))
            store.put_events(events)
            links = [protos.Association(execution_id=execution_id, context_id=c) for c in (run_id, nodes[component])]
            store.put_attributions_and_associations([], links)


def record_months(months, ended="COMPLETE"):
    """The three runs of `Months`, and a fourth in which all was cached."""
    examples, transformed = "artifacts/ImageExampleGen/examples", "artifacts/ImageTransform/transformed_examples"

    def trained(month, state="COMPLETE"):
        return [
            ("ImageExampleGen", state, [], [f"{examples}/{month}"]),
            ("StatisticsGen", state, [f"{examples}/{month}"], [f"artifacts/StatisticsGen/statistics/{month}"]),
            ("ImageTransform", state, [f"{examples}/{month}"], [f"{transformed}/{month}"]),
            ("Trainer", state, [f"{transformed}/{month}"], [f"artifacts/Trainer/model/{month}"]),
            ("Pusher", state, [f"artifacts/Trainer/model/{month}"], [f"pushed/{month}"]),
        ]

    stopped = [*trained(2)[:2], ("DataGate", "FAILED", [f"{examples}/2"], [])]
    record_runs(months.root, [trained(1), stopped, trained(3), [*trained(3, "CACHED")[:-1], ("Pusher", ended, [], [])]])
    for month in (1, 2, 3):
        models = [f"artifacts/Trainer/model/{month}"] if month != 2 else []
        for place in (f"artifacts/StatisticsGen/statistics/{month}", *models):
            folder = months.root / place
            folder.mkdir(parents=True)
            (folder / "data").write_text("x" * 100)
