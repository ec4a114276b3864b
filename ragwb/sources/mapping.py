"""How another service's endpoint is read: `[tool.ragwb.source]`.

```toml
[tool.ragwb.source]
path = "/search"                                    # below the base URL
method = "POST"                                     # or GET
body = { query = "{question}", size = "{topK}" }    # for GET: params
results = "data.items[].{chunkId: id, score: score}"
traceId = "meta.trace"
channels = { vector = "debug.ann[].{chunkId: id}" }
# for answer-eval; an expression in quotes of its own is a text: every reply of it is an answer
answer = { mode = "'answer'", text = "reply", citations = "sources[].{chunkId: id}" }
```
Each field of the protocol takes a JMESPath expression, or a table of expressions for a field that
is an object. What is not mapped, and what an expression does not find, is not observed. Identity
and time come from the token and the server's clock here too: a template that names them is refused.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, unquote_plus

import jmespath
import pydantic_core
from jmespath.exceptions import JMESPathError
from pydantic.alias_generators import to_camel

from ragwb.chat.reply import WRONG_SHAPE
from ragwb.errors import ReplyError, UsageError
from ragwb.html import plain
from ragwb.records import Answered, names_identity
from ragwb.settings import EVAL_PATH

WHERE = "[tool.ragwb.source]"
METHODS = ("POST", "GET")
_PLACES = ("path", "method", "body", "params")
# `base_path` belongs to a service that speaks the protocol below another path.
PROTOCOL_KEYS = frozenset({"base_path"})
_ID_FIELDS = frozenset({"chunkId", "documentId", "documentVersion", "traceId"})

Expression = Any  # a compiled JMESPath expression; the library has no public name for it


@dataclass(frozen=True, slots=True)
class SourceMapping:
    """A checked mapping of one endpoint.

    Attributes:
        path: below the base URL, may contain `{question}` and `{topK}`.
        method: POST or GET.
        body: template of the JSON body, None for none.
        params: template of the query string.
        expressions: by field of the protocol (camelCase), a compiled expression or a table of them.
    """

    path: str
    method: str
    body: Any = None
    params: Mapping[str, Any] = field(default_factory=dict)
    expressions: Mapping[str, Any] = field(default_factory=dict)

    def cut_hint(self, top_k: int) -> str:
        """What to write in the mapping when an endpoint gives pages larger than asked for."""
        results = self.expressions["results"]
        source = "…" if isinstance(results, Mapping) else results.expression
        cut = json.dumps(f"{source} | [:{top_k}]", ensure_ascii=False)
        return (
            "let the endpoint cut its list (by {topK} in body, params or path), "
            f"or cut it in {WHERE}: results = {cut}"
        )

    def request(self, question: str, top_k: int) -> tuple[str, Any, dict[str, str]]:
        """Path, JSON body and query parameters that ask one question."""
        values = {"{question}": question, "{topK}": top_k}
        path = self.path.replace("{topK}", str(top_k)).replace(
            "{question}", quote(question, safe="")
        )
        params = {key: str(_filled(value, values)) for key, value in self.params.items()}
        return path, _filled(self.body, values), params

    def read(self, body: bytes) -> dict[str, Any]:
        """A reply's fields under the protocol's names; a field that was not found is left out.

        Raises:
            ReplyError: not JSON, an expression fails on it, or no results are where they should be.
        """
        try:
            data = pydantic_core.from_json(body)
        except ValueError as error:
            raise ReplyError(f"not JSON: {error}") from error
        found = {
            name: _search(expression, data, name) for name, expression in self.expressions.items()
        }
        if found.get("results") is None:
            raise ReplyError(f"{WRONG_SHAPE}: no results where {WHERE} results expects them")
        return {
            name: _ids_as_text(value, "chunkId" if name == "context" else name)
            for name, value in found.items()
            if value is not None
        }


def load_mapping(source: Mapping[str, Any]) -> SourceMapping | None:
    """The mapping that a source table describes, or None when the service speaks the protocol.

    Raises:
        UsageError: an unknown key, an expression that does not parse, no results, or identity in a
            template.
    """
    if not set(source) - PROTOCOL_KEYS:
        return None
    fields = {to_camel(name) for name in Answered.model_fields}
    expressions: dict[str, Any] = {}
    for key, value in source.items():
        if key in _PLACES:
            continue
        name = to_camel(key)
        if name not in fields:
            known = ", ".join([*_PLACES, *sorted(fields)])
            raise UsageError(f"{WHERE} {key}: unknown key; known: {known}")
        expressions[name] = _compiled(value, key)
    if "results" not in expressions:
        raise UsageError(
            f"{WHERE} results: missing; it must say where the results stand in a reply"
        )
    path = _path(source.get("path", "/"), "path")
    params = _params(source.get("params", {}))
    if "?" in path and params:
        raise UsageError(f"{WHERE} path: has a query string beside params: put all into params")
    for where, template in (
        ("path", _query(path)),
        ("params", params),
        ("body", source.get("body")),
    ):
        _refuse_identity(template, where)
    return SourceMapping(
        path=path,
        method=_method(source.get("method", "POST")),
        body=source.get("body"),
        params=params,
        expressions=expressions,
    )


def load_base_path(source: Mapping[str, Any]) -> str:
    """The path below which a service speaks the protocol, without a slash at its end.

    Raises:
        UsageError: it is no path, or one with a query string, of which the protocol has none.
    """
    path = _path(source.get("base_path", EVAL_PATH), "base_path")
    if re.search("[?;#]", path):
        raise UsageError(f"{WHERE} base_path: give a path without a query string or fragment")
    return path.rstrip("/")


def _path(value: object, key: str) -> str:
    if not isinstance(value, str) or not value.startswith("/"):
        raise UsageError(f"{WHERE} {key}: give a path that begins with /")
    return value


def _query(path: str) -> dict[str, None]:
    """The names in a path's query string or in its parameters (`;name=value`)."""
    fields = re.split("[?;&#]", path)[1:]
    return {unquote_plus(field.partition("=")[0]): None for field in fields}


def _method(value: object) -> str:
    name = str(value).upper()
    if name not in METHODS:
        raise UsageError(f"{WHERE} method: {value!r} is not one of {', '.join(METHODS)}")
    return name


def _params(value: object) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise UsageError(f"{WHERE} params: give a table of names and values")
    return value


def _compiled(value: object, key: str) -> Any:
    if isinstance(value, Mapping):
        return {name: _compiled(inner, f"{key}.{name}") for name, inner in value.items()}
    if not isinstance(value, str):
        raise UsageError(f"{WHERE} {key}: give a JMESPath expression in quotes")
    try:
        return jmespath.compile(value)
    except JMESPathError as error:
        reason = str(error).splitlines()[0]
        raise UsageError(f"{WHERE} {key}: {value!r} is no JMESPath expression: {reason}") from error


def _refuse_identity(template: object, where: str) -> None:
    for place, name in _named(template, where):
        if names_identity(name):
            raise UsageError(
                f"{WHERE} {place}: a request carries no identity and no time; "
                "they come from the token and the server's clock"
            )


def _named(template: object, where: str) -> Iterator[tuple[str, str]]:
    """(place, name) of every name in a template, at any depth."""
    if isinstance(template, Mapping):
        for key, value in template.items():
            yield f"{where}.{key}", str(key)
            yield from _named(value, f"{where}.{key}")
    elif isinstance(template, list):
        for value in template:
            yield from _named(value, where)


def _filled(template: Any, values: Mapping[str, Any]) -> Any:
    if isinstance(template, Mapping):
        return {key: _filled(value, values) for key, value in template.items()}
    if isinstance(template, list):
        return [_filled(value, values) for value in template]
    if not isinstance(template, str):
        return template
    if template in values:
        return values[template]
    # The question goes in last, so that a `{topK}` that stands in it stays as it was typed.
    return template.replace("{topK}", str(values["{topK}"])).replace(
        "{question}", values["{question}"]
    )


def _search(expression: Expression, data: Any, name: str) -> Any:
    if isinstance(expression, Mapping):
        found = {key: _search(inner, data, f"{name}.{key}") for key, inner in expression.items()}
        observed = {key: value for key, value in found.items() if value is not None}
        return observed or None
    try:
        return expression.search(data)
    except JMESPathError as error:
        raise ReplyError(
            f"{WHERE} {name} fails on this reply: {plain(error, width=160)}"
        ) from error


def _ids_as_text(value: Any, name: str = "") -> Any:
    """Ids that other services write as numbers, as text; everything else unchanged."""
    if isinstance(value, dict):
        return {key: _ids_as_text(inner, key) for key, inner in value.items()}
    if isinstance(value, list):
        return [_ids_as_text(inner, name) for inner in value]
    if name in _ID_FIELDS and isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    return value
