"""What changed between two runs besides their figures, and whether one change can be credited."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ragwb.html import plain
from ragwb.measure.listed import joined
from ragwb.records import ServiceManifest
from ragwb.runs.manifest import Change, RunManifest, diff_manifests

_WIDTH = 60  # characters of a value in a sentence
_DIGITS = 12  # of a hash: enough to tell two apart

NAMES: Mapping[str, str] = {
    "dataset_version": "dataset version",
    "dataset_hash": "golden set",
    "knowledge_snapshot": "knowledge",
    "index_version": "index",
    "embedding_model": "embedding model",
    "embedding_dimensions": "embedding dimensions",
    "distance": "distance",
    "chunking": "chunking",
    "chunking.strategy": "chunking strategy",
    "chunking.version": "chunking version",
    "chunking.size": "chunk size",
    "chunking.overlap": "chunk overlap",
    "candidate_k": "candidate K",
    "top_k": "top K",
    "threshold": "score threshold",
    "keyword": "keyword search",
    "rewrite": "query rewriting",
    "fusion": "fusion",
    "fusion.method": "fusion method",
    "fusion.k": "fusion constant",
    "fusion.deduplicate": "removal of duplicates",
    "fusion.rerank.method": "reranker's scale",
    "fusion.rerank.weight": "reranker's weight",
    "rerank": "reranker",
    "context_budget_tokens": "context budget",
    "identity": "identity",
    "answer_model": "answer model",
    "prompt_version": "prompt",
    "temperature": "temperature",
    "judge_model": "judge",
    "rubric_hash": "rubric",
    "code_version": "code of the service",
    "packages": "packages of the workbench",
    "service": "service",
    "repeats": "repeats",
    "concurrency": "concurrency",
}
"""Conditions in plain words, by their place in the manifest."""

# One condition whatever its parts: who asked, and what the workbench computes with.
_WHOLE = frozenset({"identity", "packages"})
_HASHES = frozenset({"knowledge_snapshot", "rubric_hash", "dataset_hash", "index_version"})
# Where a service has none of it, it says nothing: null is a setting there, not a gap.
_MAY_BE_NONE = frozenset({"threshold", "rewrite", "rerank", "fusion", "answer_model"})
_SERVICE_FIELDS = tuple(
    name for name in ServiceManifest.model_fields if name not in ("protocol", "identity")
)


@dataclass(frozen=True, slots=True)
class Factor:
    """One thing that changed of its own accord.

    Attributes:
        name: its place in the manifest, such as `chunking.size`.
        baseline, candidate: its values; None where a side does not say it, or has none.
    """

    name: str
    baseline: Any
    candidate: Any

    @property
    def words(self) -> str:
        """Its name in plain words, such as `chunk size`."""
        return _name_words(self.name)

    @property
    def values(self) -> str:
        """Its two values, such as `200 → 400`; one line."""
        before, after = self.baseline, self.candidate
        if isinstance(before, Mapping) and isinstance(after, Mapping):
            before, after = _differing(before, after)
        return (
            f"{_value_words(self.name, before, 'baseline')} → "
            f"{_value_words(self.name, after, 'candidate')}"
        )

    @property
    def unsaid_by(self) -> str | None:
        """The side that does not say it, `baseline` or `candidate`; None when both do."""
        if self.name.partition(".")[0] in _MAY_BE_NONE:
            return None
        if self.baseline is None:
            return "baseline"
        return "candidate" if self.candidate is None else None


@dataclass(frozen=True, slots=True)
class SetAside:
    """One thing that differs and is no factor.

    Attributes:
        name, baseline, candidate: as of a factor.
        reason: why, such as `follows chunk size: an index is built from its chunks`.
    """

    name: str
    baseline: Any
    candidate: Any
    reason: str


@dataclass(frozen=True, slots=True)
class Conditions:
    """How two runs were made differently.

    Attributes:
        changes: fields of the manifest that differ, whole, in its order; times, ids, hosts aside.
        factors: what changed of its own accord, leaf by leaf (`chunking.size`).
        follows: what differs and is no factor, each with its reason.
        unsaid: sides, `baseline` and `candidate`, that name no setting of their service; then
            nobody knows what changed in it.
    """

    changes: tuple[Change, ...] = ()
    factors: tuple[Factor, ...] = ()
    follows: tuple[SetAside, ...] = ()
    unsaid: tuple[str, ...] = ()

    @property
    def confounded(self) -> bool:
        """Whether several factors changed, so that no figure can be credited to one of them."""
        return len(self.factors) > 1

    @property
    def sentence(self) -> str:
        """What may be concluded from the comparison; one line of text, not escaped for HTML."""
        if self.unsaid:
            return _unsaid_sentence(self.unsaid, self.factors)
        if not self.factors:
            return "nothing that the manifests name changed"
        if not self.confounded:
            return _one_factor_sentence(self.factors[0])
        named = [f"{factor.words} ({factor.values})" for factor in self.factors]
        both = "both" if len(named) == 2 else "all"
        unsure = any(factor.unsaid_by for factor in self.factors)
        return (
            f"confounded: {joined(named)} {both} {'differ' if unsure else 'changed'}; "
            "no figure here can be credited to one of them"
        )

    def rows(self) -> list[dict[str, Any]]:
        """A row a difference: field, condition, baseline, candidate, note; factors first."""
        factors = [(f.name, f.baseline, f.candidate, "changed") for f in self.factors]
        aside = [(s.name, s.baseline, s.candidate, s.reason) for s in self.follows]
        return [
            {
                "field": name,
                "condition": _name_words(name),
                "baseline": before,
                "candidate": after,
                "note": note,
            }
            for name, before, after, note in [*factors, *aside]
        ]


@dataclass(frozen=True, slots=True)
class Rule:
    """When a difference is no factor of its own.

    Attributes:
        field: the place that it is about; whatever stands below it is meant too.
        after: places of which one changed as well, the most telling first; empty when it is never
            a factor.
        reason: why, in words.
        holds: a further condition on the difference and on the change that it follows.
    """

    field: str
    after: tuple[str, ...]
    reason: str
    holds: Callable[[Factor, Factor], bool] = lambda _own, _cause: True


def _comes_or_goes(own: Factor, _cause: Factor) -> bool:
    return (own.baseline is None) != (own.candidate is None)


def _come_or_go_together(own: Factor, cause: Factor) -> bool:
    return (
        (own.baseline is None) == (cause.baseline is None)
        and (own.candidate is None) == (cause.candidate is None)
        and _comes_or_goes(own, cause)
    )


def _only_names_it(own: Factor, cause: Factor) -> bool:
    texts = (own.baseline, own.candidate, cause.baseline, cause.candidate)
    if not all(isinstance(text, str) and text for text in texts):
        return False
    return bool(own.baseline.replace(cause.baseline, cause.candidate) == own.candidate)


RULES: tuple[Rule, ...] = (
    Rule("dataset_version", (), "only the cases common to both golden sets are compared"),
    Rule("dataset_hash", (), "only the cases common to both golden sets are compared"),
    Rule(
        "index_version",
        (
            *("knowledge_snapshot", "chunking.strategy", "chunking.size", "chunking.overlap"),
            *("chunking", "embedding_model", "embedding_dimensions", "distance", "keyword"),
        ),
        "an index is built from it",
    ),
    Rule("embedding_dimensions", ("embedding_model",), "a model has its own"),
    Rule("distance", ("embedding_model",), "a model is made for one"),
    Rule(
        "chunking.version",
        ("chunking.strategy", "chunking.size", "chunking.overlap"),
        "it names how documents are cut",
    ),
    Rule(
        "chunking",
        ("chunking.strategy",),
        "only one of the strategies has it",
        _comes_or_goes,
    ),
    Rule(
        "fusion",
        ("keyword",),
        "there is something to fuse only where several channels are asked",
        _comes_or_goes,
    ),
    Rule("fusion.rerank", ("rerank",), "it is said only of a reranker", _comes_or_goes),
    Rule("rerank", ("embedding_model",), "its name holds that of the model", _only_names_it),
    Rule("prompt_version", ("answer_model",), "only a model has one", _come_or_go_together),
    Rule("temperature", ("answer_model",), "only a model has one", _come_or_go_together),
    Rule("code_version", ("service",), "another service or version is other code"),
)
"""Differences that are no factors of their own; the first rule that holds gives the reason."""


def conditions(baseline: RunManifest | None, candidate: RunManifest | None) -> Conditions:
    """How two runs were made differently, and what may be concluded from it.

    Args:
        baseline: the manifest of the one side; None for figures that were imported without one.
        candidate: that of the other.

    Returns:
        No changes when a side has no manifest: what differs is then unknown, and said.
    """
    sides = [("baseline", baseline), ("candidate", candidate)]
    unsaid = tuple(side for side, manifest in sides if _says_nothing(manifest))
    if baseline is None or candidate is None:
        return Conditions(unsaid=unsaid)
    changes = tuple(diff_manifests(baseline, candidate))
    found = [leaf for change in changes for leaf in _leaves(change)]
    if unsaid:
        # Where a side is silent, a setting that the other one names has not been seen to change.
        found = [leaf for leaf in found if leaf.name.partition(".")[0] not in _SERVICE_FIELDS]
    follows = tuple(aside for leaf in found if (aside := _set_aside(leaf, found)) is not None)
    names = {aside.name for aside in follows}
    factors = tuple(leaf for leaf in found if leaf.name not in names)
    return Conditions(changes, factors, follows, unsaid)


def _says_nothing(manifest: RunManifest | None) -> bool:
    return manifest is None or all(getattr(manifest, name) is None for name in _SERVICE_FIELDS)


def _leaves(change: Change) -> Iterator[Factor]:
    if change.field in _WHOLE:
        yield Factor(change.field, change.baseline, change.candidate)
    else:
        yield from _below(change.field, change.baseline, change.candidate)


def _below(name: str, baseline: Any, candidate: Any) -> Iterator[Factor]:
    if not (isinstance(baseline, Mapping) and isinstance(candidate, Mapping)):
        if baseline != candidate:
            yield Factor(name, baseline, candidate)
        return
    for key in dict.fromkeys([*baseline, *candidate]):
        yield from _below(f"{name}.{key}", baseline.get(key), candidate.get(key))


def _set_aside(leaf: Factor, found: list[Factor]) -> SetAside | None:
    for rule in RULES:
        if not is_within(leaf.name, rule.field):
            continue
        if not rule.after:
            return SetAside(leaf.name, leaf.baseline, leaf.candidate, rule.reason)
        cause = _cause(leaf, rule, found)
        if cause is not None:
            reason = f"follows {cause.words}: {rule.reason}"
            return SetAside(leaf.name, leaf.baseline, leaf.candidate, reason)
    return None


def _cause(leaf: Factor, rule: Rule, found: list[Factor]) -> Factor | None:
    """What a leaf follows from: of several the one that the rule names first."""
    for place in rule.after:
        for cause in found:
            other = cause.name != leaf.name and is_within(cause.name, place)
            if other and rule.holds(leaf, cause):
                return cause
    return None


def is_within(name: str, place: str) -> bool:
    """Whether a name is a place of the manifest, or stands below it."""
    return name == place or name.startswith(f"{place}.")


def _one_factor_sentence(factor: Factor) -> str:
    if factor.unsaid_by is None:
        return f"this comparison isolates {factor.words} ({factor.values})"
    return (
        f"{factor.words} may have changed ({factor.values}); "
        "nothing else that the manifests name did"
    )


def _unsaid_sentence(unsaid: tuple[str, ...], factors: tuple[Factor, ...]) -> str:
    silent = "not said by the " + " nor by the ".join(unsaid)
    text = f"{silent}: how the service was set; no figure here can be credited to a change of it"
    if factors:
        named = joined([f"{factor.words} ({factor.values})" for factor in factors])
        text += f"; besides, {named} changed"
    return text


def _name_words(name: str) -> str:
    if name in NAMES:
        return NAMES[name]
    if name.startswith("fusion.weights."):
        return f"fusion weight of {plain(name.removeprefix('fusion.weights.'), width=_WIDTH)}"
    return plain(name.replace(".", " ").replace("_", " "), width=_WIDTH)


def _value_words(name: str, value: Any, side: str) -> str:
    if value is None:
        named = name.partition(".")[0] in _MAY_BE_NONE
        return "none" if named else f"not said by the {side}"
    if isinstance(value, bool):
        return "on" if value else "off"
    if name in _HASHES:
        return plain(str(value)[:_DIGITS])
    if isinstance(value, Mapping):
        return plain(", ".join(f"{key} {_short(held)}" for key, held in value.items()))
    return plain(_short(value), width=_WIDTH)


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return plain(text, width=_WIDTH)


def _differing(
    before: Mapping[str, Any], after: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The entries of two tables that differ; null where a table lacks one."""
    keys = [k for k in dict.fromkeys([*before, *after]) if before.get(k) != after.get(k)]
    return {k: before.get(k) for k in keys}, {k: after.get(k) for k in keys}
