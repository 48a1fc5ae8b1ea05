"""All rules, in the order in which they are checked and shown; `docs/how-to/preflight.md` has the same table."""

from __future__ import annotations

from shardwright.pipelines.preflight import dataset_rules, device_rules, feeding_rules, tensor_rules
from shardwright.pipelines.preflight.rule_report import DATASET, ERROR, NEEDED, SPEED, TRIED, WARNING, Rule

RULES: tuple[Rule, ...] = (
    Rule("slice-hosts", ERROR, "the slice exists with this number of hosts", device_rules.hosts_fit_slice),
    Rule("node-pools", ERROR, "Kubernetes joins `kubeflow.trainer.slices` such slices", device_rules.node_pools),
    Rule("trainer-hosts", ERROR, "`trainer.hosts` is that number, too", device_rules.trainer_hosts),
    Rule("accelerator", ERROR, "`trainer.accelerator` uses the TPU", device_rules.accelerator),
    Rule("batch-devices", ERROR, "the batch is a multiple of the chips", device_rules.batch_shared_by_chips),
    Rule("batch-hosts", ERROR, "the batch is a multiple of the hosts", device_rules.batch_shared_by_hosts),
    Rule("batch-lanes", WARNING, "each chip gets a multiple of 8 images", device_rules.lanes_filled),
    Rule("precision", WARNING, "the model computes in bfloat16", device_rules.precision),
    Rule("steps-per-epoch", ERROR, "every host has a whole step per epoch", device_rules.steps_in_an_epoch, (DATASET,)),
    Rule("batch-share", WARNING, "an epoch has at least ten steps", device_rules.batch_is_a_small_part, (DATASET,)),
    Rule("loads", ERROR, "the loader gives batches with these options", tensor_rules.loads, (DATASET,)),
    Rule("fixed-shapes", ERROR, "all batches have one shape", tensor_rules.fixed_shapes, (TRIED,)),
    Rule("no-strings", ERROR, "the loader gives no text", tensor_rules.no_strings, (TRIED,)),
    Rule("device-types", WARNING, "the loader gives types a TPU computes in", tensor_rules.device_types, (TRIED,)),
    Rule("one-size", ERROR, "all images have one size", tensor_rules.one_size),
    Rule("size", ERROR, "the dataset has the size of `transform.size`", tensor_rules.size_as_configured, (DATASET,)),
    Rule("stride", WARNING, "sides are multiples of the model's stride", tensor_rules.sides_fit_stride),
    Rule("stride-least", ERROR, "no side is below the model's stride", tensor_rules.larger_than_stride),
    Rule("square-turns", ERROR, "only square images are turned by 90 degrees", tensor_rules.turns_are_square),
    Rule("task", ERROR, "the dataset was made for the task", dataset_rules.task_as_configured, (DATASET,)),
    Rule("splits-present", ERROR, "every split has examples", dataset_rules.splits_present, (DATASET,)),
    Rule("classes", ERROR, "the dataset has the configured classes", dataset_rules.classes_as_configured, (DATASET,)),
    Rule("labels", ERROR, "every example has a label", dataset_rules.labels_present),
    Rule(
        "ignored-pixels",
        WARNING,
        "a custom model knows of pixels to ignore",
        dataset_rules.ignored_pixels,
        (DATASET,),
    ),
    Rule("statistics", ERROR, "`normalize: dataset` finds mean and std", dataset_rules.statistics_present, (DATASET,)),
    Rule("features", ERROR, "features have our names and forms", dataset_rules.features_readable),
    Rule("shards-hosts", WARNING, "hosts read whole shards (`order: fast`)", dataset_rules.whole_shards),
    Rule("shards-enough", WARNING, "ten shards per host if there is enough data", dataset_rules.shards_enough),
    Rule("shard-size", WARNING, "shards are neither tiny nor huge", dataset_rules.shard_sizes, (DATASET,)),
    Rule("record-size", WARNING, "a shard has many records", dataset_rules.record_size, (DATASET,)),
    Rule("equal-steps", WARNING, "hosts read the same number of records", dataset_rules.equal_steps, (DATASET,)),
    Rule(
        "eval-padding",
        WARNING,
        "at most a quarter of the evaluation is padding",
        dataset_rules.evaluation_padding,
        (DATASET,),
    ),
    Rule("host-memory", ERROR, "the loader fits into a host's memory", feeding_rules.fits_memory),
    Rule(
        "images-per-second", ERROR, "the hosts decode as fast as is needed", feeding_rules.fast_enough, (NEEDED, SPEED)
    ),
    Rule("resume", WARNING, "`order: exact`, so that a stopped training resumes", feeding_rules.resumable),
    Rule("shuffle", WARNING, "the shuffle buffer holds more than one batch", feeding_rules.buffer_mixes),
)
