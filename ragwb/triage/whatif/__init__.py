"""What would bring it back? Other settings of a run, tried on its saved candidates alone.

`changes` says what is tried, `effects` what a change does to a run, `cases` the least change for
one case. Below them: `saved` (the lists as arrays), `declared` (what the service says of itself),
`orders`, `lists`, `duplicates` (other ways to order and cut), `context` (tokens), `added`,
`bounds`, `explained`, `guess` (chunks that would join and have no score), `forecast` (all of it in
one), `labels` (does it fail then?), `latency` (runs at that very setting).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragwb.lazy import load_lazily

if TYPE_CHECKING:
    from ragwb.triage.whatif.cases import CaseRemedy, case_remedies
    from ragwb.triage.whatif.changes import Change
    from ragwb.triage.whatif.effects import (
        Predicted,
        RunRemedy,
        changes_for,
        effect,
        fails,
        predict,
        remedies,
        why_not,
    )

_HOMES = {
    "CaseRemedy": "cases",
    "Change": "changes",
    "Predicted": "effects",
    "RunRemedy": "effects",
    "case_remedies": "cases",
    "changes_for": "effects",
    "effect": "effects",
    "fails": "effects",
    "predict": "effects",
    "remedies": "effects",
    "why_not": "effects",
}

__all__ = [
    "CaseRemedy",
    "Change",
    "Predicted",
    "RunRemedy",
    "case_remedies",
    "changes_for",
    "effect",
    "fails",
    "predict",
    "remedies",
    "why_not",
]

__getattr__ = load_lazily(__name__, _HOMES)
