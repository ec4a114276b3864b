"""The YAML at the head of a document, read so that no file can cost more than its size."""

from __future__ import annotations

import re
from typing import Any

import yaml

from ragwb.errors import Fault

MAX_FRONT_MATTER_CHARS = 65_536

_MAX_QUOTED_CHARS = 60
_SURROGATE = re.compile("[\ud800-\udfff]")


class _Loader(yaml.SafeLoader):
    """A loader without anchors and aliases: a few lines of them can stand for gigabytes."""

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        event = self.peek_event()  # type: ignore[no-untyped-call]  # its stubs leave it out
        problem = None
        if isinstance(event, yaml.NodeEvent) and event.anchor is not None:
            problem = "anchors (&) and aliases (*) are not read: write the value out, or quote it"
        elif isinstance(event, yaml.ScalarEvent) and _SURROGATE.search(event.value):
            problem = "half of a surrogate pair (\\ud800 to \\udfff) is not a character"
        if problem:
            raise yaml.composer.ComposerError(None, None, problem, event.start_mark)
        return super().compose_node(parent, index)


def read_front_matter(source: str, where: str) -> tuple[dict[Any, Any] | None, list[Fault]]:
    """The mapping that a front matter holds, and the keys that stand in it twice.

    Args:
        source: the text between the fences, whose first line is line 2 of the file.
        where: the file, for messages.

    Returns:
        The mapping, or None beside the fault that keeps it from being read.
    """
    if len(source) > MAX_FRONT_MATTER_CHARS:
        message = f"front matter of more than {MAX_FRONT_MATTER_CHARS} characters: shorten it"
        return None, [Fault(f"{where}:1", "", message)]
    try:
        node, front = _load(source)
    except yaml.MarkedYAMLError as error:
        # The fence is line 1, and YAML counts from 0.
        line = error.problem_mark.line + 2 if error.problem_mark else 1
        reason = quote(str(error.problem), limit=200)
        return None, [Fault(f"{where}:{line}", "", f"front matter is not YAML: {reason}")]
    # What an explicit tag cannot convert raises whatever its constructor meets first.
    except (yaml.YAMLError, ArithmeticError, AttributeError, LookupError, RecursionError) as error:
        return None, [_unreadable(error, where)]
    except (TypeError, ValueError) as error:
        return None, [_unreadable(error, where)]
    if not isinstance(front, dict) or not isinstance(node, yaml.MappingNode):
        return None, [Fault(f"{where}:1", "", "front matter must be `key: value` lines")]
    return front, _find_repeats(node, where)


def quote(value: object, *, limit: int = _MAX_QUOTED_CHARS) -> str:
    """A value as text for a message, cut after `limit` characters; never fails.

    Example: quote("'2025.3'") == "'2025.3'"
    """
    try:
        text = str(value)
    except ValueError:  # Python refuses to write a number of more than some thousand digits
        return "a number of too many digits"
    return text if len(text) <= limit else f"{text[:limit]}…"


def _load(source: str) -> tuple[yaml.Node | None, Any]:
    loader = _Loader(source)
    try:
        node = loader.get_single_node()
        return node, None if node is None else loader.construct_document(node)
    finally:
        loader.dispose()


def _unreadable(error: Exception, where: str) -> Fault:
    reason = quote(str(error).split("\n", 1)[0], limit=200)
    return Fault(f"{where}:1", "", f"front matter is not YAML: {reason}")


def _find_repeats(node: yaml.MappingNode, where: str) -> list[Fault]:
    seen: set[str] = set()
    faults: list[Fault] = []
    for key, _ in node.value:
        name = str(key.value)
        if name in seen:
            line = key.start_mark.line + 2
            faults.append(Fault(f"{where}:{line}", quote(name), "given twice: keep one"))
        seen.add(name)
    return faults
