"""Where did it break? The stage where evidence disappeared, the proof, and what brings it back.

The face: `attribute.triage` (a run to its failed cases, each with stage, reason and proof),
`whatif` (what other settings would do, from the saved candidates alone), `reasons` (the codes).
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ragwb.measure.answer_scores import AnswerScores
    from ragwb.runs.store import Run
    from ragwb.triage.result import Triage

__all__ = ["attribute", "reasons", "verdict", "whatif"]


class _Callable(ModuleType):
    """This package as the function `attribute.triage`.

    `rw.triage(run)` is what people type, and importing anything below this package makes
    `rw.triage` the package: so the package must answer to the call.
    """

    def __call__(
        self, run: Run, *, k: int | None = None, scores: AnswerScores | None = None
    ) -> Triage:
        """Why each failed case of a run failed (see `attribute.triage`)."""
        from ragwb.triage.attribute import triage

        return triage(run, k=k, scores=scores)


sys.modules[__name__].__class__ = _Callable
