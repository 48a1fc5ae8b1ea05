"""Reads YAML as plain values, with no key twice and no more of anything than a configuration needs; writes YAML.

A few lines of YAML can stand for billions of values (an alias of aliases of aliases), so the values behind aliases are
counted before any of them is made.
"""

from __future__ import annotations

from typing import Any

import yaml
from yaml.constructor import ConstructorError

from shardwright.text.escaping import escape

MOST_BYTES = 4 << 20
# The 21,000 classes of ImageNet with their ids are 43,000.
_MOST_NODES = 100_000
_DEEPEST = 100
_LONGEST_NUMBER = 100
_NO_RESOLVERS: dict[str, Any] = {}
_NUMBERS = ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float")


def parse_yaml(text: str, *, as_written: bool = False) -> Any:
    """Parses one YAML document with the types of JSON, and dates.

    Args:
        text: the document.
        as_written: whether values and keys without quotes are texts, too: `no` is `"no"`, and not false.

    Raises:
        yaml.YAMLError: it is not YAML, has a key twice, or is larger, deeper or, with its aliases written out, longer
            than a configuration may be.
        ValueError, RecursionError: a value is not of its type.
    """
    return yaml.load(text, Loader=_TextLoader if as_written else _Loader)  # noqa: S506 (both are SafeLoaders)


def dump_yaml(value: Any, **options: Any) -> str:
    """Returns YAML of plain values that is read back as the same values, also after it was printed.

    Characters that a terminal must not get, or that YAML takes for line breaks, are escaped as YAML has it.

    Args:
        value: the value.
        **options: those of `yaml.dump`; by default keys stay in their order.
    """
    text: str = yaml.dump(value, Dumper=_Dumper, allow_unicode=True, **{"sort_keys": False, **options})
    return escape(text, lines=True, escaped=_as_yaml)


def _as_yaml(character: str) -> str:
    number = ord(character)
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


class _Dumper(yaml.SafeDumper):
    """A safe dumper that writes texts with such characters in double quotes: only these have escapes."""

    def represent_str(self, data: str) -> yaml.ScalarNode:
        """Returns the node of a text."""
        return self.represent_scalar("tag:yaml.org,2002:str", data, style=None if escape(data) == data else '"')


_Dumper.add_representer(str, _Dumper.represent_str)


class _Loader(yaml.SafeLoader):
    """A safe loader with limits."""

    def __init__(self, stream: str) -> None:
        super().__init__(stream)
        self._nodes = 0
        self._depth = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        """Counts nodes as they come; those of a document that is too long are not even read."""
        self._nodes += 1
        self._depth += 1
        if self._nodes > _MOST_NODES or self._depth > _DEEPEST:
            parser: Any = self  # Its stubs are without types.
            few = self._nodes <= _MOST_NODES
            problem = f"values more than {_DEEPEST} deep" if few else f"more than {_MOST_NODES:,} values"
            raise ConstructorError(None, None, problem, parser.peek_event().start_mark)
        node: yaml.Node | None = super().compose_node(parent, index)
        self._depth -= 1
        if isinstance(node, yaml.ScalarNode) and node.tag in _NUMBERS and len(node.value) > _LONGEST_NUMBER:
            raise ConstructorError(None, None, f"a number of {len(node.value):,} characters", node.start_mark)
        return node

    def get_single_node(self) -> yaml.Node | None:
        """Composes the document and refuses it where its aliases stand for too much."""
        node: yaml.Node | None = super().get_single_node()
        if node is not None:
            _written_out(node, {}, set())
        return node

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """Refuses a mapping that names a key twice, where YAML would silently let the last one win."""
        seen = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if isinstance(key, (list, dict)):
                raise ConstructorError(None, None, "a list or mapping as a key", key_node.start_mark)
            if key in seen:
                raise ConstructorError(None, None, f"the key {key!r} twice", key_node.start_mark)
            seen.add(key)
        return super().construct_mapping(node, deep)


class _TextLoader(_Loader):
    """A loader that finds no types in values without quotes."""

    yaml_implicit_resolvers = _NO_RESOLVERS


def _written_out(node: yaml.Node, known: dict[int, int], open_: set[int]) -> int:
    """Returns how many values a node has with its aliases written out.

    Args:
        node: the node; at most `_DEEPEST` deep, unless it contains itself.
        known: of nodes that were counted already.
        open_: nodes that contain this one.
    """
    if id(node) in known:
        return known[id(node)]
    if id(node) in open_:
        raise ConstructorError(None, None, "a value that contains itself", node.start_mark)
    if not isinstance(node, yaml.CollectionNode):
        return 1
    open_.add(id(node))
    parts = [part for pair in node.value for part in pair] if isinstance(node, yaml.MappingNode) else node.value
    count = 1 + sum(_written_out(part, known, open_) for part in parts)
    open_.discard(id(node))
    if count > _MOST_NODES:
        problem = f"aliases that stand for more than {_MOST_NODES:,} values"
        raise ConstructorError(None, None, problem, node.start_mark)
    known[id(node)] = count
    return count
