"""One answer to one golden case, as it is measured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ragwb.golden.passages import ResolvedCase
from ragwb.records import Chunk, Citation, Explanation


@dataclass(frozen=True, slots=True)
class AnsweredCase:
    """What was answered to a golden case in one repeat; what was not observed is None.

    Attributes:
        case: the golden case, its groups resolved.
        repeat: from 1.
        mode: answer, refuse or clarify; any other text, or None, is none of the three and wrong.
        text: the answer.
        refusal_reason: the service's code.
        citations: in their order, with what each is cited for.
        context: ids put before the model.
        results: ids that were retrieved.
        chunks: what is known of the chunks, by id.
        explanations: what `/explain` said of them, by id.
        actions: names of what the service did besides answering.
        error: why the call failed for good; the rest is unknown then.
        context_tokens, prompt_tokens, completion_tokens: as the service counts them.
        latency_ms: of the attempt that succeeded.
    """

    case: ResolvedCase
    repeat: int = 1
    mode: str | None = None
    text: str | None = None
    refusal_reason: str | None = None
    citations: tuple[Citation, ...] | None = None
    context: tuple[str, ...] | None = None
    results: tuple[str, ...] = ()
    chunks: Mapping[str, Chunk] = field(default_factory=dict)
    explanations: Mapping[str, Explanation] = field(default_factory=dict)
    actions: tuple[str, ...] | None = None
    error: str | None = None
    context_tokens: int | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    latency_ms: float | None = None

    @property
    def case_id(self) -> str:
        """The golden case's id."""
        return self.case.case.id

    @property
    def pair(self) -> tuple[str, int]:
        """(case id, repeat)."""
        return self.case_id, self.repeat

    @property
    def cited(self) -> tuple[str, ...] | None:
        """Distinct cited ids in their order, None when citations were not observed."""
        if self.citations is None:
            return None
        return tuple(dict.fromkeys(citation.chunk_id for citation in self.citations))


@dataclass(frozen=True, slots=True)
class JudgedAnswer:
    """What a judge or a person said of one answer; None where they said nothing that counts.

    Attributes:
        citation_support: claims whose cited chunk supports them over claims with a citation, 0..1.
        unsupported_rate: claims that no chunk of the context supports over all claims, 0..1.
        accepted: whether the judge accepts the answer; hard rules are not its matter.
        stated: indexes of the required claims that it finds stated.
    """

    citation_support: float | None = None
    unsupported_rate: float | None = None
    accepted: bool | None = None
    stated: frozenset[int] = frozenset()
