"""All rules, in the order in which they are asked and told; `docs/preflight.md` has the same table."""

from __future__ import annotations

from shardwright.preflight import data, devices, feeding, tensors
from shardwright.preflight.report import DATASET, ERROR, HOST_MEMORY, NEEDED, SPEED, TRIED, WARNING, Rule

RULES: tuple[Rule, ...] = (
    Rule("slice-hosts", ERROR, "the slice can be had with so many machines", devices.hosts_fit_slice),
    Rule("trainer-hosts", ERROR, "`trainer.hosts` says as many hosts", devices.trainer_hosts),
    Rule("accelerator", ERROR, "`trainer.accelerator` uses the TPU", devices.accelerator),
    Rule("batch-devices", ERROR, "the batch is a multiple of the chips", devices.batch_shared_by_chips),
    Rule("batch-hosts", ERROR, "the batch is a multiple of the hosts", devices.batch_shared_by_hosts),
    Rule("batch-lanes", WARNING, "each chip gets a multiple of 8 images", devices.lanes_filled),
    Rule("precision", WARNING, "the model computes in bfloat16", devices.precision),
    Rule("steps-per-epoch", ERROR, "every host has a whole step an epoch", devices.steps_in_an_epoch, (DATASET,)),
    Rule("batch-share", WARNING, "an epoch has at least ten steps", devices.batch_is_a_small_part, (DATASET,)),
    Rule("loads", ERROR, "the loader gives batches with these options", tensors.loads, (DATASET,)),
    Rule("fixed-shapes", ERROR, "what the loader gives has one shape", tensors.fixed_shapes, (TRIED,)),
    Rule("no-strings", ERROR, "the loader gives no text", tensors.no_strings, (TRIED,)),
    Rule("device-types", WARNING, "the loader gives types a TPU computes in", tensors.device_types, (TRIED,)),
    Rule("one-size", ERROR, "all images have one size", tensors.one_size),
    Rule("size", ERROR, "the dataset has the size of `transform.size`", tensors.size_as_configured, (DATASET,)),
    Rule("stride", WARNING, "sides are multiples of the model's stride", tensors.sides_fit_stride),
    Rule("stride-least", ERROR, "no side is below the model's stride", tensors.larger_than_stride),
    Rule("square-turns", ERROR, "only square images are turned by 90 degrees", tensors.turns_are_square),
    Rule("task", ERROR, "the dataset was made for the task", data.task_as_configured, (DATASET,)),
    Rule("splits-present", ERROR, "every split holds examples", data.splits_present, (DATASET,)),
    Rule("classes", ERROR, "the dataset has the classes of `input.classes`", data.classes_as_configured, (DATASET,)),
    Rule("labels", ERROR, "every example has a label", data.labels_present),
    Rule("ignored-pixels", WARNING, "a model of your own knows of pixels to ignore", data.ignored_pixels, (DATASET,)),
    Rule("statistics", ERROR, "`normalize: dataset` finds mean and std", data.statistics_present, (DATASET,)),
    Rule("features", ERROR, "features have our names and forms", data.features_readable),
    Rule("shards-hosts", WARNING, "hosts read whole shards (`order: fast`)", data.whole_shards),
    Rule("shards-enough", WARNING, "ten shards a host where there is enough data", data.shards_enough),
    Rule("shard-size", WARNING, "shards are neither tiny nor huge", data.shard_sizes, (DATASET,)),
    Rule("record-size", WARNING, "a shard holds many records", data.record_size, (DATASET,)),
    Rule("equal-steps", WARNING, "hosts read equally many records", data.equal_steps, (DATASET,)),
    Rule(
        "eval-padding", WARNING, "at most a quarter of the evaluation is padding", data.evaluation_padding, (DATASET,)
    ),
    Rule("host-memory", ERROR, "the loader fits into a host's memory", feeding.fits_memory, (HOST_MEMORY,)),
    Rule("images-per-second", ERROR, "the hosts decode as fast as is needed", feeding.fast_enough, (NEEDED, SPEED)),
    Rule("resume", WARNING, "`order: exact`, so that a stopped training goes on", feeding.resumable),
    Rule("shuffle", WARNING, "more than a batch is shuffled at a time", feeding.buffer_mixes),
)
