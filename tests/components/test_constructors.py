"""The public constructors: the field's words, the defaults of the configuration, and what they refuse."""

import contextlib
import dataclasses
import inspect
import json
import re
from pathlib import Path

import build
import numpy as np
import pytest
from PIL import Image
from tfx.dsl.placeholder.placeholder import input as input_of
from tfx.orchestration.data_types import RuntimeParameter
from tfx.types import Channel, standard_artifacts
from tfx.types.experimental import simple_artifacts

import shardwright.components as public
from shardwright.components import (
    AT_RUN,
    BaselineResolver,
    ClassFolders,
    DataGate,
    Drift,
    Evaluator,
    FileNames,
    Gate,
    ImageEvaluator,
    ImageExampleGen,
    ImageTrainer,
    ImageTransform,
    Input,
    InputResolver,
    LabelCsv,
    Predictor,
    Pusher,
    Report,
    RleCsv,
    Shards,
    Skew,
    StatisticsGen,
    Text,
    Trainer,
    Transform,
)
from shardwright.components.image_trainer.component import _submission
from shardwright.components.image_trainer.spec import TrainRecipe
from shardwright.config import Config, load_config, parse_config
from shardwright.config.constructors import SECTIONS
from shardwright.config.parse_values import keys_of, section_of
from shardwright.config.split import SplitConfig
from shardwright.errors import CheckFailed, ConfigError, UsageError
from shardwright.ingest.identify import IngestSource

COMPONENTS = [
    BaselineResolver, DataGate, ImageEvaluator, ImageExampleGen, ImageTrainer, ImageTransform, InputResolver, Predictor,
    Pusher, Report, StatisticsGen,
]  # fmt: skip


def channel(name):
    return Channel(type=getattr(standard_artifacts, name, None) or getattr(simple_artifacts, name))


def config_of(**sections):
    return build.config(**sections)


def plain(node):
    """The parameters of a component, those that are JSON read."""
    values = {}
    for name, value in node.exec_properties.items():
        try:
            values[name] = json.loads(value)
        except (TypeError, ValueError):
            values[name] = value
    return values


@pytest.mark.parametrize("component", COMPONENTS, ids=lambda component: component.__name__)
def test_a_docstring_has_every_parameter_and_an_example(component):
    text = inspect.getdoc(component)
    described = re.search(r"^Args:\n((?: .*\n|\n)*)", text + "\n", re.MULTILINE)[1]
    names = re.findall(r"^    \**(\w+): ", described, re.MULTILINE)
    assert names == list(inspect.signature(component.__init__).parameters)[1:]
    assert "Example:\n    ```python\n" in text
    # A user can import all that the example calls.
    example = text.partition("```python\n")[2].partition("```")[0]
    compile(inspect.cleandoc(example), component.__name__, "exec")
    assert component.__name__ in example
    for name in re.findall(r"(?<![.\w])([A-Z]\w+)\(", example):
        assert hasattr(public, name), name
    # The options in the text can be written as they are shown.
    for call in re.findall(r"`([A-Z]\w+\([^`]*\))`", text):
        assert "..." in call or eval(call, {name: getattr(public, name) for name in public.__all__}), call


# What a component takes besides channels and the configuration.
OWN = {
    "BaselineResolver": {"push_directory", "baseline_digest"},
    "ImageEvaluator": {"eval_config"},
    "ImageExampleGen": {"base"},
    "ImageTrainer": {"base", "run_fn", "module_file", "custom_config", "custom_job"},
    "InputResolver": {"data_root", "span"},
    "Predictor": {"base", "dialect", "batch_size"},
    "Pusher": {"push_directory"},
    "Report": {"base"},
    "StatisticsGen": {"feature_names", "allow_absent"},
}


@pytest.mark.parametrize("component", COMPONENTS, ids=lambda component: component.__name__)
def test_a_component_takes_channels_and_what_the_configuration_has(component):
    given = inspect.signature(component).parameters
    channels = {name for name, one in given.items() if "BaseChannel" in one.annotation}
    assert channels <= set(component.SPEC_CLASS.INPUTS)
    sections = set(given) - channels - OWN.get(component.__name__, set())
    assert sections <= set(keys_of(Config))
    for name in sections:
        section = section_of(keys_of(Config)[name])
        assert given[name].annotation == (f"Options[{section.__name__}]" if section else given[name].annotation)
    assert not any(one.kind in (one.VAR_KEYWORD, one.VAR_POSITIONAL) for one in given.values())
    taken = inspect.signature(component.from_config).parameters
    assert list(taken) == ["config", *given]


def test_all_names_are_there_and_no_others():
    assert set(SECTIONS) <= set(public.__all__)
    assert {component.__name__ for component in COMPONENTS} <= set(public.__all__)
    assert public.__all__ == sorted(public.__all__)
    for name in public.__all__:
        assert getattr(public, name).__doc__, name
    with pytest.raises(AttributeError, match=r"has no attribute 'ImageTrainr'\. It offers AT_RUN, BaselineResolver"):
        getattr(public, "ImageTrainr")  # noqa: B009 -- the name is not one that a type checker knows


def test_transform_takes_its_section():
    examples, schema = channel("Examples"), channel("Schema")
    assert plain(ImageTransform(examples)) == plain(ImageTransform.from_config(config_of(), examples))
    given = ImageTransform(
        examples,
        schema,
        transform=Transform(size=(64, 96), encoding="png", optimize=True, text={"note": Text(vocabulary=9)}),
        rejects={"max_fraction": 0.2},
    )
    section = {"size": [64, 96], "encoding": "png", "optimize": True, "text": {"note": {"vocabulary": 9}}}
    config = config_of(transform=section, rejects={"max_fraction": 0.2})
    assert plain(given) == plain(ImageTransform.from_config(config, examples, schema))
    # What is given counts, and not the configuration.
    other = ImageTransform.from_config(config, examples, transform=Transform(resize="keep"))
    assert (plain(other)["recipe"]["size"], plain(other)["recipe"]["max_rejects"]) == (None, 0.2)
    assert given.inputs["schema"] is schema
    assert "schema" not in ImageTransform(examples).inputs
    with pytest.raises(ConfigError, match=r"transform\.quality: 101 is out of range"):
        ImageTransform(examples, transform={"quality": 101})


def test_the_trainer_takes_its_sections():
    examples, graph = channel("Examples"), channel("TransformGraph")
    assert plain(ImageTrainer(examples, graph)) == plain(ImageTrainer.from_config(config_of(), examples, graph))
    given = ImageTrainer(
        examples,
        graph,
        task="classification",
        transform=Transform(text={"note": {}}),
        trainer=Trainer(epochs=3, text="note", accelerator="cpu"),
        loader={"augment": ["flip_left_right"]},
        evaluator=Evaluator(flips=["left_right"]),
    )
    sections = {
        "task": "classification",
        "transform": {"text": {"note": {}}},
        "trainer": {"epochs": 3, "text": ["note"], "accelerator": "cpu"},
        "loader": {"augment": ["flip_left_right"]},
        "evaluator": {"flips": ["left_right"]},
    }
    assert plain(given) == plain(ImageTrainer.from_config(config_of(**sections), examples, graph))
    assert plain(given)["custom_config"]["running"] == {"accelerator": "cpu"}
    alone = ImageTrainer(examples, graph, split={"train": 1}, evaluator={"threshold": 0.5})
    assert plain(alone)["eval_args"]["splits"] == ["train"]
    with pytest.raises(ConfigError, match=r"trainer\.epoch: unknown key\. Did you mean trainer\.epochs\?"):
        ImageTrainer(examples, graph, trainer={"epoch": 3})
    with pytest.raises(ConfigError, match=r"trainer\.text: 'note' is not among transform\.text"):
        ImageTrainer(examples, graph, trainer={"text": "note"})


def test_a_function_of_the_user_trains_in_our_executor(tmp_path, monkeypatch):
    examples, graph = channel("Examples"), channel("TransformGraph")
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "trains_mine.py").write_text("def run_fn(fn_args): ...\n")
    ours = ImageTrainer(examples, graph)
    assert ours.executor_spec.class_path == "shardwright.components.image_trainer.executor.Executor"
    theirs = ImageTrainer(
        examples, graph, run_fn="trains_mine:run_fn", trainer={"epochs": 4}, custom_config={"levels": 3}
    )
    assert theirs.executor_spec.class_path == "shardwright.components.image_trainer.executor.OwnExecutor"
    assert theirs.exec_properties["run_fn"] == "trains_mine.run_fn"
    custom = plain(theirs)["custom_config"]
    assert (custom["levels"], TrainRecipe.from_dict(custom["recipe"]).trainer.epochs) == (3, 4)
    # An edit is another cache key.
    (tmp_path / "trains_mine.py").write_text("def run_fn(fn_args): pass\n")
    again = ImageTrainer(examples, graph, run_fn="trains_mine.run_fn")
    assert plain(again)["custom_config"]["code"] != custom["code"]
    (tmp_path / "no_functions.py").write_text("run_fn = 3\n")
    for options, message in [
        ({"run_fn": "nope_:run_fn"}, "ImageTrainer: run_fn: the source of module 'nope_' was not found"),
        ({"run_fn": "nope_.run_fn"}, "ImageTrainer: run_fn: the source of module 'nope_' was not found"),
        ({"run_fn": "x"}, "ImageTrainer: run_fn: 'x' is not an import path"),
        ({"run_fn": "trains_mine:other"}, "ImageTrainer: run_fn: .*trains_mine.py has no function 'other'"),
        ({"run_fn": "no_functions:run_fn"}, "ImageTrainer: run_fn: .* has no function 'run_fn'"),
        ({"module_file": str(tmp_path / "nope.py")}, "ImageTrainer: module_file: .*nope.py is not a file"),
        ({"module_file": str(tmp_path / "no_functions.py")}, "ImageTrainer: module_file: .* has no function"),
    ]:
        with pytest.raises(UsageError, match=message):
            ImageTrainer(examples, graph, **options)
    assert ImageTrainer(examples, graph, module_file=str(tmp_path / "trains_mine.py")).exec_properties["module_file"]
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(UsageError, match="TFX installs the file with pip, which this environment does not have"):
        ImageTrainer(examples, graph, module_file=str(tmp_path / "trains_mine.py"))
    monkeypatch.undo()
    without = standard_artifacts.Examples()
    without.split_names = '["train"]'
    given = {name: ours.exec_properties[name] for name in ("train_args", "eval_args")}
    message = (
        r"'eval' is missing; the splits are train\. Make it with ImageExampleGen\(split=…\)\. Or write split=Split"
    )
    with pytest.raises(UsageError, match=message):
        ours.executor_spec.executor_class().Do({"examples": [without]}, {}, given)
    with pytest.raises(UsageError, match="run_fn and module_file are both given"):
        ImageTrainer(examples, graph, run_fn="mine.run_fn", module_file="mine.py")


def test_the_evaluator_has_the_conditions_of_the_section():
    examples, model = channel("Examples"), channel("Model")
    given = plain(ImageEvaluator(examples, model, evaluator=Evaluator(min_dice=0.7, split="eval")))
    assert given["limits"] == {
        "min_dice": 0.7, "min_accuracy": None, "min_f1": 0.5, "min_improvement": 0.0, "min_images": "auto",
        "min_per_class": 5, "allow_missing_classes": False, "beat_trivial": True,
    }  # fmt: skip
    assert given["eval_config"] is None
    assert given["example_splits"] == ["eval"]
    section = {"min_dice": 0.7, "split": "eval"}
    assert given == plain(ImageEvaluator.from_config(config_of(evaluator=section), examples, model))
    with pytest.raises(ConfigError, match=r"evaluator\.min_dice: 7\.0 is out of range"):
        ImageEvaluator(examples, model, evaluator={"min_dice": 7})
    with pytest.raises(ConfigError, match=r"evaluator\.min_images: 'few' is not a number\. Write a number, or auto"):
        ImageEvaluator(examples, model, evaluator={"min_images": "few"})


def test_the_report_opens_the_reference_when_it_is_constructed(small_dataset, tmp_path):
    channels = channel("Examples"), channel("ExampleAnomalies"), channel("Schema")
    dataset = small_dataset(tmp_path)
    assert Report(*channels).exec_properties["drift"] == ""
    given = plain(Report(*channels, gate=Gate(drift=Drift(dataset, images=50), skew=Skew(alpha="1%"))))["drift"]
    assert (given["drift"]["location"], given["drift"]["images"], given["skew"]["alpha"]) == (str(dataset), 50, 0.01)
    assert len(given["drift"]["digest"]) == 64
    same = Report(*channels, gate={"drift": {"reference": dataset, "images": 50}, "skew": {"alpha": 0.01}})
    assert plain(same)["drift"] == given
    with pytest.raises(UsageError, match=r"gate\.drift\.reference: .*nowhere"):
        Report(*channels, gate=Gate(drift=Drift("nowhere")), base=str(tmp_path))
    with pytest.raises(ConfigError, match=r"gate\.drift\.imagse"):
        Report(*channels, gate={"drift": {"reference": str(dataset), "imagse": 3}})


def test_the_baseline_is_looked_up_when_it_is_constructed(tmp_path):
    assert BaselineResolver(str(tmp_path)).exec_properties["baseline_digest"] == ""
    assert BaselineResolver("pushed", AT_RUN).exec_properties["baseline_digest"] == "at run"
    for digest in ("AT_RUN", "d" * 63, "D" * 64):
        with pytest.raises(ConfigError, match=r"baseline_digest: .* is not a digest\. .* AT_RUN of shardwright"):
            BaselineResolver("pushed", digest)


def test_statistics_are_of_all_features_by_default():
    assert StatisticsGen(channel("Examples")).exec_properties["features"] == ""


def test_the_pusher_takes_the_blessing_of_the_infrastructure():
    channels = [channel(name) for name in ("Model", "ModelBlessing", "ModelEvaluation", "InfraBlessing")]
    pusher = Pusher(*channels, push_directory="pushed")
    assert pusher.inputs["infra_blessing"] is channels[3]
    assert "infra_blessing" not in Pusher(*channels[:3], push_directory="pushed").inputs
    assert plain(pusher)["push_destination"] == {"filesystem": {"base_directory": "pushed"}}


def test_wrong_types_are_refused_with_what_to_write(photographs, tmp_path):
    examples, anomalies, schema = channel("Examples"), channel("ExampleAnomalies"), channel("Schema")
    report = Report(examples, anomalies, schema)
    labels = LabelCsv(str(photographs / "labels.csv"))

    def ingest(**options):
        return ImageExampleGen(**{"input": Input(photographs / "images", labels), "task": "classification", **options})

    def deliveries(**options):
        return InputResolver(Input("images", classes=["a"], **options), data_root=str(photographs))

    wrong = [
        (lambda: ingest(duplicates="first"), "duplicates: 'first' is not a section. Write Duplicates(...) or a"),
        (lambda: ingest(images=3), "images: 3 is not a section. Write Images(...) or a mapping of the keys of images."),
        (lambda: Input("x", labels="a.csv"), "input.labels: 'a.csv' is not a mapping. Write labels: {path: a.csv}."),
        (lambda: ingest(split={"methd": "hash", "train": 1}), "split.methd: unknown key. Did you mean split.method?"),
        (lambda: ingest(split={"keep_from": "blessed"}), "split.keep_from: 'blessed' needs a push folder."),
        (lambda: ingest(reuse_from="blessed"), "reuse_from: 'blessed' needs a push folder."),
        (lambda: ImageExampleGen("a"), "input: 'a' is not a section. Write Input(...) or a mapping of the keys of"),
        (lambda: ImageExampleGen(task="classification"), 'ImageExampleGen: input is missing. Write Input("images").'),
        (lambda: Input(["a"]), "input.images: ['a'] is not a text."),
        (lambda: ingest(shrads=Shards(count=2)), "ImageExampleGen: shrads: is not an option. Did you mean shards?"),
        (lambda: ImageTransform(schema), "ImageTransform: examples: this channel has artifacts of the type Schema, not "
                                         "Examples. Write for example examples=component.outputs['examples']."),
        (lambda: DataGate(anomalies, examples), "DataGate: schema is missing. Give the option schema."),
        (lambda: ImageTransform(), "ImageTransform: examples is missing."),
        (lambda: RleCsv(), "RleCsv: path is missing. Give the option path."),
        (lambda: ClassFolders(regex="x"), "ClassFolders: regex: is not an option. It has none."),
        (lambda: FileNames(regx="x"), "FileNames: regx: is not an option. Did you mean regex?"),
        (lambda: Shards(*range(9)), "Shards: too many positional arguments. Give options by their names."),
        (lambda: Transform(size=96), "transform.size: 96 is not a list. Write it in square brackets."),
        (lambda: Transform(text="note"), "transform.text: 'note' is not a mapping."),
        (lambda: Gate(drift="runs/1"), "gate.drift: 'runs/1' is not a mapping."),
        (lambda: Report(examples, anomalies, schema, gate=Gate(drift=Drift("blessed"))),
         "gate.drift.reference: 'blessed' needs a push folder. Use `shardwright run`"),
        (lambda: Predictor(channel("Model"), Input(photographs / "images"), dialect="kaggle"),
         "Predictor: dialect: 'kaggle' is not known. Use one of: clouds, severstal,"),
        (lambda: DataGate(anomalies, examples, schema, report=report),
         "DataGate: report: this is the component Report, not its output. Add .outputs['report'] to the component."),
        (lambda: Gate(allow_anomalies=7), "gate.allow_anomalies: 7 is not a list"),
        (lambda: Trainer(text=7), "trainer.text: 7 is not a list"),
        (lambda: Evaluator(min_dice="much"), "evaluator.min_dice: 'much' is not a number"),
        (lambda: deliveries(span=0.5), "input.span: 0.5 is not a text."),
        (lambda: deliveries(span="latest"), "input.span: 'latest' is not a known value. Write newest, all, a number,"),
        (lambda: Input("x/{SPAN}", span=[2, 1]), "input.span: 2-1 ends before it begins"),
        (lambda: deliveries(span=3), "input.span: '3', but input.images and input.labels.path name no spans."),
        (lambda: ImageExampleGen.at_run("resolver"), "at_run: resolver: 'resolver' is not an InputResolver."),
        (lambda: Predictor(channel("Model"), Input(photographs / "images"), batch_size=0),
         "Predictor: batch_size: 0 is too small. Use at least 1."),
        (lambda: Predictor(channel("Model")), 'Predictor: input is missing. Write Input("images").'),
        (lambda: Pusher(*map(channel, ("Model", "ModelBlessing", "ModelEvaluation"))),
         'Pusher: push_directory is missing. Write push_directory="pushed".'),
        (lambda: StatisticsGen.from_config({"input": {}}, examples),
         "config: a value of the type dict is not a configuration. Give the path of a YAML file, or"),
        (lambda: InputResolver(Input("images"), data_root=str(photographs), spilt={}),
         "InputResolver: spilt: is not an option. Did you mean split?"),
    ]  # fmt: skip
    for make, message in wrong:
        with pytest.raises(UsageError, match=re.escape(message)):
            make()
    for given, text in ((3, "3"), ("3", "3"), ((1, 3), "1-3"), (["2026-01-01", "2026-01-02"], "20454-20455")):
        made = InputResolver(Input("images/{SPAN}", classes=["a"], span=given), data_root=".")
        assert made.exec_properties["span"] == text
    of_mapping = ingest(input={"images": str(photographs / "images"), "labels": labels})
    assert plain(of_mapping) == plain(ingest())
    # An ingest without a split `train` is meant so.
    assert '"foo"' in ingest(split={"foo": 1}).exec_properties["recipe"]


def test_runtime_parameters_are_for_the_options_that_name_them(photographs):
    examples, model = channel("Examples"), channel("Model")
    text, number = RuntimeParameter("p", str, "x"), RuntimeParameter("p", int, 3)
    needed = {"input": Input("images", LabelCsv("labels.csv")), "task": "classification"}
    wrong = [
        (lambda: ImageExampleGen(text), "ImageExampleGen: input: is not a runtime parameter."),
        (lambda: Pusher(model, channel("ModelBlessing"), channel("ModelEvaluation"), push_directory=text),
         "Pusher: push_directory: is not a runtime parameter."),
        (lambda: Predictor(model, Input("x"), batch_size=number), "Predictor: batch_size: is not a runtime parameter."),
        (lambda: Transform(size=number), "transform.size: a RuntimeParameter is known only"),
        (lambda: ImageEvaluator(examples, model, evaluator=text), "ImageEvaluator: evaluator: is not a runtime param"),
        (lambda: ImageEvaluator(examples, text), "ImageEvaluator: model: "),
        (lambda: ImageTrainer(examples, trainer={"epochs": number}), "trainer.epochs: a RuntimeParameter is known"),
        (lambda: BaselineResolver(input_of("x")), "BaselineResolver: push_directory: is not a placeholder."),
        (lambda: InputResolver(data_root=RuntimeParameter("p", str), **needed),
         "InputResolver: data_root: the RuntimeParameter 'p' has no default. Write RuntimeParameter('p', str, "),
        (lambda: InputResolver(data_root=number, **needed), "data_root: the RuntimeParameter 'p' has the type int."),
        (lambda: InputResolver(data_root=str(photographs), span=number, **needed),
         "span: the RuntimeParameter 'p' has the type int."),
    ]  # fmt: skip
    for make, message in wrong:
        with pytest.raises(UsageError, match=re.escape(message)):
            make()
    span = RuntimeParameter("span", str, "newest")
    made = InputResolver(data_root=RuntimeParameter("root", str, str(photographs)), span=span, **needed)
    assert made.exec_properties["span"] is span


# A value of each type that a user may write, fitting or not.
ANY = (
    None, "", "x", "\0", b"x", 7, -1, 0.5, float("nan"), True, 1j, [], ["x"], [7], [[1]], ("a", "b"), {}, {"x": 1},
    {1: 2}, {None: {}}, {"x"}, range(3), print, object(), Path("x"), np.float32(0.5), np.zeros((2, 2)), "gs://",
)  # fmt: skip


def calls(name, photographs):
    """A constructor, arguments that it needs, and the names of all its options."""
    make = getattr(public, name)
    kinds = {"schema": "Schema", "anomalies": "ExampleAnomalies", "model": "Model", "evaluation": "ModelEvaluation",
             "model_blessing": "ModelBlessing", "examples": "Examples"}  # fmt: skip
    labels, folder = LabelCsv(str(photographs / "labels.csv")), str(photographs / "images")
    given = {"images": folder, "data_root": str(photographs), "path": "x.csv"}
    needed = {
        "ImageExampleGen": {"input": Input(folder, labels), "task": "classification"},
        "InputResolver": {"input": Input("images", labels), "task": "classification"},
        "Predictor": {"input": Input(folder)},
        "BaselineResolver": {"push_directory": "x"},
        "Pusher": {"push_directory": "x"},
    }.get(name, {})
    options = []
    for one in inspect.signature(make).parameters.values():
        if one.kind is one.VAR_KEYWORD:
            options += SplitConfig.__annotations__
            continue
        options.append(one.name)
        if one.default is one.empty:
            needed[one.name] = channel(kinds[one.name]) if one.name in kinds else given.get(one.name, "x")
    return make, needed, options


NOT_CALLED = ("AT_RUN", "IngestSource", "correct_document")


@pytest.mark.parametrize("name", [name for name in public.__all__ if name not in NOT_CALLED])
def test_no_wrong_argument_ends_in_a_traceback(name, photographs):
    make, needed, options = calls(name, photographs)
    others = [channel(kind) for kind in ("Examples", "Schema", "Model")]
    for option in [*options, "an_option"]:
        for value in [*ANY, *others]:
            with contextlib.suppress(UsageError, CheckFailed):
                make(**{**needed, option: value})
    for option in needed:
        rest = {other: value for other, value in needed.items() if other != option}
        with contextlib.suppress(UsageError):
            make(**rest)
    with pytest.raises(UsageError):
        make(*[channel("Examples")] * 30)


@pytest.fixture
def photographs(tmp_path):
    for number in range(4):
        file = tmp_path / "data" / "images" / f"{number}.png"
        file.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.full((16, 24, 3), number, np.uint8)).save(file)
    rows = "\n".join(f"{number}.png,{('a', 'b')[number % 2]}" for number in range(4))
    (tmp_path / "data" / "labels.csv").write_text(f"image,label\n{rows}\n")
    return tmp_path / "data"


def test_a_resolver_asks_for_the_input_that_the_component_would_list(photographs):
    options = {"task": "classification", "split": {"ratios": {"train": 0.5, "eval": 0.5}}}
    resolver = InputResolver(Input("images", LabelCsv("labels.csv")), data_root=str(photographs), **options)
    asked = plain(resolver)
    assert (asked["data_root"], asked["span"]) == (str(photographs), "newest")
    assert (asked["places"]["images"], asked["places"]["labels"]) == ("images", "labels.csv")
    now = ImageExampleGen(Input("images", LabelCsv("labels.csv")), base=str(photographs), **options)
    assert asked["recipe"] == plain(now)["recipe"]
    # All of an input may be deeper than the root.
    below = Input("data/images/*.png", LabelCsv("data/labels.csv"), classes=["a", "b"])
    deeper = plain(InputResolver(below, data_root=str(photographs.parent), task="classification"))
    assert (deeper["places"]["images"], deeper["places"]["labels"]) == ("data/images/*.png", "data/labels.csv")
    at_run = ImageExampleGen.at_run(resolver)
    assert at_run.exec_properties["recipe"] == resolver.exec_properties["recipe"]
    above = Input("../images", LabelCsv("../labels.csv"), classes=["a", "b"])
    with pytest.raises(UsageError, match="is not below data_root"):
        InputResolver(above, data_root=str(photographs / "sub"), task="classification")
    with pytest.raises(UsageError, match="InputResolver: input is missing"):
        InputResolver(data_root=str(photographs))


def test_predictions_are_keyed_by_the_content_of_the_images(photographs):
    first = Predictor(channel("Model"), Input(photographs / "images"))
    assert plain(first)["options"] == {"batch_size": 16, "images": str(photographs / "images")}
    Image.fromarray(np.full((16, 24, 3), 9, np.uint8)).save(photographs / "images" / "0.png")
    again = Predictor(channel("Model"), Input(photographs / "images"), dialect="coco")
    assert plain(again)["input_fingerprint"] != plain(first)["input_fingerprint"]
    assert plain(again)["options"]["dialect"] == "coco"


def test_a_configuration_gives_the_same_example_gen(photographs):
    config = parse_config({"task": "classification", "input": {"images": "images"}}, base=str(photographs))
    config = dataclasses.replace(config, input=dataclasses.replace(config.input, labels=LabelCsv("labels.csv")))
    made = plain(ImageExampleGen.from_config(config))
    assert made == plain(ImageExampleGen.of_source(IngestSource.of(config)))
    assert made == plain(ImageExampleGen(config.input, task="classification", base=str(photographs)))


def test_every_component_takes_a_configuration(photographs, small_dataset, tmp_path):
    """Each `from_config` gives what the constructor gives with the values of the configuration."""
    text = f"""
task: classification
name: month
input: {{images: {photographs}/images, labels: {{path: {photographs}/labels.csv}}}}
run: {{root: {tmp_path}/runs}}
trainer: {{batch_size: 3}}
gate:
  allow_anomalies: [SCHEMA_NEW_COLUMN]
  drift: {{reference: {small_dataset(tmp_path / "drift", classes=("a", "b"), counts={"train": [2]})}, images: 50}}
  skew: {{alpha: 0.01}}
"""
    file = str(tmp_path / "c.yaml")
    (tmp_path / "c.yaml").write_text(text)
    config = load_config(file)
    examples, anomalies, schema, model = map(channel, ("Examples", "ExampleAnomalies", "Schema", "Model"))
    pushed = [model, channel("ModelBlessing"), channel("ModelEvaluation")]
    folder = str(tmp_path / "runs/pushed")
    same = [
        (DataGate.from_config(file, anomalies, examples, schema),
         DataGate(anomalies, examples, schema, gate=Gate(["SCHEMA_NEW_COLUMN"]))),
        (Report.from_config(file, examples, anomalies, schema),
         Report(examples, anomalies, schema, gate={"drift": config.gate.drift, "skew": Skew(alpha="1%")})),
        (Pusher.from_config(file, *pushed), Pusher(*pushed, push_directory=folder)),
        (BaselineResolver.from_config(file), BaselineResolver(folder)),
        (StatisticsGen.from_config(file, examples), StatisticsGen(examples)),
        (Predictor.from_config(file, model), Predictor(model, Input(photographs / "images"), batch_size=3)),
        (InputResolver.from_config(file, data_root=str(photographs)),
         InputResolver(Input("images", LabelCsv("labels.csv")), data_root=str(photographs), task="classification")),
    ]  # fmt: skip
    for made, given in same:
        assert plain(made).keys() == plain(given).keys()
        if not isinstance(made, InputResolver):
            assert plain(made) == plain(given), type(made).__name__
    resolved, asked = plain(same[-1][0]), plain(same[-1][1])
    assert resolved["places"] == asked["places"]
    others = {ImageExampleGen, ImageTransform, ImageTrainer, ImageEvaluator}
    assert {type(made) for made, _ in same} | others == {*COMPONENTS}
    blessed = dataclasses.replace(config, split=dataclasses.replace(config.split, keep_from="blessed"))
    with pytest.raises(ConfigError, match=r"split\.keep_from: 'blessed' needs a push folder"):
        InputResolver.from_config(blessed, data_root=str(photographs))


def test_options_are_written_as_in_yaml(photographs):
    given = ImageExampleGen(
        Input(photographs / "images", LabelCsv(photographs / "labels.csv")),
        task="classification",
        images=public.Images("full"),
        split=public.Split(train="75%", eval=0.25),
        shards=public.Shards(target_size="2MB"),
        rejects=public.Rejects("5%"),
    )
    same = ImageExampleGen(
        {"images": photographs / "images", "labels": {"format": "label_csv", "path": photographs / "labels.csv"}},
        task="classification",
        images={"verify": "full"},
        split={"ratios": {"train": 0.75, "eval": 0.25}},
        shards={"target_size": 2_000_000},
        rejects={"max_fraction": 0.05},
    )
    assert plain(given) == plain(same)
    assert '"full"' in given.exec_properties["recipe"]
    with pytest.raises(ConfigError, match=r"images\.verfy: unknown key\. Did you mean images\.verify\?"):
        public.Images(verfy="full")
    assert next(iter(inspect.signature(public.Images).parameters)) == "verify"


@pytest.mark.parametrize(
    ("rle", "layout"),
    [
        ({}, "severstal"),
        # As `init` writes it.
        ({"encoding": "absolute", "order": "column", "start": 1}, "severstal"),
        ({"order": "row"}, ""),
        ({"start": 0}, ""),
    ],
)
def test_the_layout_of_predictions_is_that_of_the_table_with_its_form_spelled_out(tmp_path, rle, layout):
    (tmp_path / "train.csv").write_text("ImageId,ClassId,EncodedPixels\n")
    raw = {"input": {"images": "x", "labels": {"path": "train.csv", "rle": rle}}}
    assert _submission(parse_config(raw, base=str(tmp_path))) == layout
