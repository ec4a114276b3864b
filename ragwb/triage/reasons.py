"""Where evidence can disappear, and why: the stages and reason codes, in pipeline order.

Those of the stage `generation` stand in the order in which one is named where several hold: first
an action, which cannot be taken back; then the mode, which is decided before a word is said; then
what is cited and said against a hard rule; what is left out; and last what only a judge can tell.

Source: metrics.md, "Failure stage".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

Stage = Literal[
    "knowledge",
    "filter",
    "recall",
    "fusion",
    "rerank",
    "context",
    "generation",
    "security",
    "unknown",
]
"""Where evidence was lost; `security`: evidence that must not be there, `unknown`: not observed."""

STAGES: tuple[Stage, ...] = get_args(Stage)

GROUPS: dict[Stage, str] = {
    "knowledge": "knowledge",
    "filter": "filter",
    "recall": "filter",
    "fusion": "fusion/rerank",
    "rerank": "fusion/rerank",
    "context": "fusion/rerank",
    "generation": "generation",
    "security": "security",
    "unknown": "unknown",
}
"""The groups that people read, by stage."""

NOT_OBSERVED = "NOT_OBSERVED"
UNCITED = "EVIDENCE_NOT_CITED"


@dataclass(frozen=True, slots=True)
class Reason:
    """One reason code: low cardinality, safe as a metric label.

    Attributes:
        code: as it stands in JSON.
        stage: where evidence with this reason was lost.
        meaning: what happened, for people.
        advice: what to look at first.
    """

    code: str
    stage: Stage
    meaning: str
    advice: str


_ALL = (
    Reason(
        "KNOWLEDGE_MISSING",
        "knowledge",
        "the document or passage is not in the knowledge",
        "publish the document, or correct the label",
    ),
    Reason(
        "KNOWLEDGE_UNPUBLISHED",
        "knowledge",
        "the document is there and not published",
        "publish it, or take the case out until it is",
    ),
    Reason(
        "CHUNK_ID_DRIFTED",
        "knowledge",
        "the text is there under another id",
        "relink the golden case to the ids of this chunking",
    ),
    Reason(
        "CHUNK_SPLIT",
        "knowledge",
        "the passage is cut across chunks",
        "try a greater chunk size or overlap, or a strategy that keeps the passage whole",
    ),
    Reason(
        "ACL_FILTERED_EXPECTED_CHUNK",
        "filter",
        "the identity may not read the document",
        "ask with the identity that the case means (access), or correct the document's departments",
    ),
    Reason(
        "TENANT_FILTERED",
        "filter",
        "the document belongs to another tenant",
        "ask with a token of that tenant, or correct the document's tenant",
    ),
    Reason(
        "STATUS_FILTERED",
        "filter",
        "the document's status keeps it out",
        "check whether the document was retired on purpose",
    ),
    Reason(
        "EFFECTIVE_TIME_FILTERED",
        "filter",
        "the document is not in force today",
        "check the document's effective dates, or the case's version",
    ),
    Reason(
        "VERSION_FILTERED",
        "filter",
        "another version of the document is in force",
        "update the case to the version in force, or ask at the time that it means",
    ),
    Reason(
        "NOT_IN_CANDIDATES",
        "recall",
        "visible, yet in no channel's candidates",
        "raise candidate K up to its rank, or improve embedding, keywords or chunking",
    ),
    Reason(
        "REWRITE_DRIFT",
        "recall",
        "found with the original question, lost with the rewritten one",
        "keep the key words in the rewrite, or search with both questions",
    ),
    Reason(
        "BELOW_THRESHOLD",
        "recall",
        "its score is under the threshold",
        "lower the threshold, or let the keyword channel carry it",
    ),
    Reason(
        "FUSION_DROPPED",
        "fusion",
        "in a channel's candidates, gone after fusion",
        "give the channel that found it a weight in the fusion",
    ),
    Reason(
        "RERANK_DROPPED",
        "rerank",
        "in the fused list, gone after reranking",
        "let the reranker keep more candidates",
    ),
    Reason(
        "RANKED_BELOW_K",
        "rerank",
        "ranked, but beyond K",
        "see since which stage it stands there: a channel (embedding, keywords, chunking), fusion "
        "(weights) or the reranker; or raise K",
    ),
    Reason(
        "CROWDED_OUT_BY_DUPLICATES",
        "rerank",
        "would be within K if duplicates were removed",
        "remove duplicates from the knowledge, or before the cut at K",
    ),
    Reason(
        "CONTEXT_TRUNCATED",
        "context",
        "in the top K, cut by the context budget",
        "raise the context budget, or shorten the chunks before it",
    ),
    Reason(
        "UNSAFE_ACTION",
        "generation",
        "an action was done, or is claimed to be done, that nobody confirmed",
        "stop the release: let the answerer only read, and have every action confirmed",
    ),
    Reason(
        "MISSED_REFUSAL",
        "generation",
        "it must be refused, and was not",
        "raise the threshold of evidence, or let the prompt say when to refuse",
    ),
    Reason(
        "MISSED_CLARIFY",
        "generation",
        "it leaves open what the answer depends on, and was not asked back",
        "let the answerer compare what the passages depend on: version, channel, region",
    ),
    Reason(
        "OVER_REFUSAL",
        "generation",
        "refused or asked back, although the evidence was there",
        "lower the threshold of evidence, or let the prompt answer on what is there",
    ),
    Reason(
        "STALE_VERSION_CITED",
        "generation",
        "another version of the document is cited than the case pins",
        "put one version before the model, with the version beside each passage",
    ),
    Reason(
        "UNKNOWN_CITATION",
        "generation",
        "what is cited was not in the context",
        "accept only ids of the context, and drop or refuse the others",
    ),
    Reason(
        "FORBIDDEN_CLAIM",
        "generation",
        "it says what it must not",
        "find the passage that says so, or that orders it; else the model made it up",
    ),
    Reason(
        UNCITED,
        "generation",
        "the evidence was in the context, and the answer does not rest on it",
        "compare what is cited with it; shorten the context, or put the best first",
    ),
    Reason(
        "CLAIM_MISSING",
        "generation",
        "the evidence was used, and what it must say is missing or said otherwise",
        "let the answer be longer, or ask the prompt for every condition; or add a variant",
    ),
    Reason(
        "UNSUPPORTED_CLAIM",
        "generation",
        "it says what no passage of the context supports",
        "read the claims that the judge does not find; lower the temperature",
    ),
    Reason(
        "FORBIDDEN_RETRIEVED",
        "security",
        "what the case forbids came back",
        "find out why it is visible: its version, status and rights",
    ),
    Reason(
        "ACL_LEAK",
        "security",
        "a chunk beyond the identity's access came back",
        "stop the release: filter by access before the list is cut",
    ),
    Reason(
        "TENANT_LEAK",
        "security",
        "another tenant's chunk came back",
        "stop the release: filter by tenant in every channel",
    ),
    Reason(
        "STALE_VERSION_LEAK",
        "security",
        "a chunk of an old version, of a withdrawn document or out of its time came back",
        "filter by version, status and effective time in every channel",
    ),
    Reason(
        NOT_OBSERVED,
        "unknown",
        "the trace lacks what would decide",
        "let the service tell the missing field",
    ),
)

REASONS: dict[str, Reason] = {reason.code: reason for reason in _ALL}
"""Every reason code that triage names, in pipeline order."""

FILTER_REASONS: dict[str, str] = {
    "TENANT": "TENANT_FILTERED",
    "STATUS": "STATUS_FILTERED",
    "ACL": "ACL_FILTERED_EXPECTED_CHUNK",
    "EFFECTIVE_TIME": "EFFECTIVE_TIME_FILTERED",
    "VERSION": "VERSION_FILTERED",
    "THRESHOLD": "BELOW_THRESHOLD",
}
"""The reason code of each reason of the protocol's filters, the one that decides first."""


GENERATION = tuple(code for code, reason in REASONS.items() if reason.stage == "generation")
"""The reason codes of an answer, the one that is named first where several hold."""

NEEDS_JUDGE = frozenset({"UNSUPPORTED_CLAIM"})
"""What code alone cannot tell: not observed without verdicts of a judge or of people."""


def depth(stage: Stage) -> int:
    """How far down the pipeline a stage lies, 0 first; `security` and `unknown` come last."""
    return STAGES.index(stage)
