"""Shared by the tests of lineage, clean and forget: a run's folder as three months leave it, without any training.

month 1: dataset 1, its transform, model 1, pushed
month 2: dataset 2, stopped by the gate
month 3: dataset 3 (splits kept from 1), its transform, model 3 (begun with 1), evaluated against 1, pushed
"""

from pathlib import Path

from shardwright.blessing import Blessing, model_digest, write_blessing
from shardwright.dataset import Dataset
from shardwright.fingerprint import fingerprint, sha256_file
from shardwright.lineage import write_lineage


class Months:
    """Where everything lies."""

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
        return Dataset.open(self.datasets[month]).manifest.digest

    def weights(self, month):
        return sha256_file(self.models_folder(month) / "assets.extra/model.keras")

    def models_folder(self, month):
        return self.root / "pushed" / str(month)

    def _dataset(self, small_dataset, month):
        """Of as many records as the month's number and two."""
        made = small_dataset(self.root / f"made-{month}", task="classification", counts={"train": [month + 2]})
        place = self.root / "artifacts/ImageExampleGen/examples" / str(month)
        place.parent.mkdir(parents=True, exist_ok=True)
        made.rename(place)
        manifest = Dataset.open(place).manifest
        previous = {"previous": self._digest_of(1)} if month == 3 else {}
        parents = {"input": manifest.parent, **previous}
        write_lineage(place, kind="ingest", fingerprint=manifest.fingerprint, parents=parents, recipe={})
        (self.root / f"made-{month}" / "staging").rmdir()
        (self.root / f"made-{month}").rmdir()
        return place

    def _digest_of(self, month):
        return Dataset.open(self.root / "artifacts/ImageExampleGen/examples" / str(month)).manifest.digest

    def _model(self, month, parents):
        transformed = self.root / "artifacts/ImageTransform/transformed_examples" / str(month)
        transformed.mkdir(parents=True)
        name = fingerprint(f"transform {month}")
        write_lineage(transformed, kind="transform", fingerprint=name, parents={"input": self.digest(month)}, recipe={})
        model = self.models_folder(month)
        (model / "assets.extra").mkdir(parents=True)
        (model / "assets.extra/model.keras").write_text(f"weights {month}")
        (model / "saved_model.pb").write_text(f"model {month}")
        parents = {"dataset": name, **parents}
        own = fingerprint(f"model {month}")
        write_lineage(model, kind="model", fingerprint=own, parents=parents, recipe={"epochs": month}, files=True)
        return model
