"""The executors of ImageTrainer: TFX's own, and for a user's function the lineage of the model after it."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

from tfx.components.trainer import executor as trainer_executor
from tfx.types import artifact_utils
from tfx.types.standard_component_specs import EVAL_ARGS_KEY, EXAMPLES_KEY, MODEL_KEY, MODULE_PATH_KEY, TRAIN_ARGS_KEY
from tfx.utils import json_utils, path_utils

from shardwright.components.runtime.artifacts import Artifacts, flushed_outputs
from shardwright.components.runtime.joined_examples import as_artifact, newest_examples, open_all
from shardwright.components.runtime.user_code import check_code, forget_modules
from shardwright.dataset.reader import ImageDataset
from shardwright.errors import DatasetError, UsageError
from shardwright.lineage.record import LINEAGE_FILE, write_lineage
from shardwright.storage.fingerprint import fingerprint

# Key of `custom_config` with the code of a user's `run_fn`: an edit trains again.
CODE_KEY = "code"


class Executor(trainer_executor.GenericExecutor):
    """TFX's executor of a Trainer; it joins several examples, and names a split of the training that they lack."""

    # Our own function reads one dataset.
    _joins = True

    @flushed_outputs
    def Do(self, input_dict: Artifacts, output_dict: Artifacts, exec_properties: dict[str, Any]) -> None:
        """Trains.

        Raises:
            UsageError: the examples have no such split.
        """
        examples = newest_examples(input_dict[EXAMPLES_KEY])
        if self._joins and len(examples) > 1:
            examples = [as_artifact(open_all(examples, self._get_tmp_dir))]
        input_dict = {**input_dict, EXAMPLES_KEY: examples}
        known = {split for one in examples for split in artifact_utils.decode_split_names(one.split_names)}
        for key, fix in ((TRAIN_ARGS_KEY, ""), (EVAL_ARGS_KEY, " Or write split=Split(train=1).")):
            for split in json.loads(exec_properties[key]).get("splits", ()):
                if split not in known:
                    problem = f"the split {split!r} is missing; the splits are {', '.join(sorted(known))}"
                    raise UsageError(f"ImageTrainer: examples: {problem}. Make it with ImageExampleGen(split=…).{fix}")
        super().Do(input_dict, output_dict, exec_properties)


class OwnExecutor(Executor):
    """Calls the user's `run_fn`, and writes `lineage.json` where the function wrote none."""

    # TFX gives the function the files of all.
    _joins = False

    @flushed_outputs
    def Do(self, input_dict: Artifacts, output_dict: Artifacts, exec_properties: dict[str, Any]) -> None:
        recipe = json_utils.loads(exec_properties["custom_config"])
        # What TFX has packed is what the pipeline was constructed with.
        code = {} if exec_properties.get(MODULE_PATH_KEY) else recipe.get(CODE_KEY, {})
        check_code(code, option="ImageTrainer: run_fn")
        forget_modules(code)
        super().Do(input_dict, output_dict, exec_properties)
        model = Path(artifact_utils.get_single_uri(output_dict[MODEL_KEY]))
        serving = Path(path_utils.serving_model_dir(str(model)))
        parents = {}
        # Examples of other components have no manifest.
        with suppress(DatasetError):
            chosen = newest_examples(input_dict[EXAMPLES_KEY])
            digests = [ImageDataset.open(one.uri).manifest.digest for one in chosen]
            parents = {"dataset": digests[0] if len(digests) == 1 else fingerprint(digests)}
        for folder in (serving, model):
            if not Path(folder, LINEAGE_FILE).exists():
                write_lineage(
                    folder,
                    kind="model",
                    fingerprint=fingerprint([recipe, parents]),
                    parents=parents,
                    recipe=recipe,
                    files=folder == serving,
                )
