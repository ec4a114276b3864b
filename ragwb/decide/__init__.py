"""Better or worse, ship or not?

`check_thresholds` holds the figures of one run against limits; `decide_verdict` turns what was
found into pass, fail or undecided. `compare.compare` holds two runs against each other case by
case, `compare_outcomes` two sides that were read or imported (`outcomes_of`, `outcomes_from`).
`gate/` decides by a policy, and `weekly/` looks at all runs of some weeks. Names are loaded when
they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragwb.decide.thresholds import Threshold, Verdict, check_thresholds, decide_verdict
from ragwb.lazy import load_lazily

if TYPE_CHECKING:
    from ragwb.decide.compare import compare_outcomes
    from ragwb.decide.comparison import Comparison
    from ragwb.decide.outcomes import Outcomes, outcomes_from, outcomes_of

_HOME = {
    "Comparison": "comparison",
    "Outcomes": "outcomes",
    "compare_outcomes": "compare",
    "outcomes_from": "outcomes",
    "outcomes_of": "outcomes",
}

__all__ = [
    "Comparison",
    "Outcomes",
    "Threshold",
    "Verdict",
    "check_thresholds",
    "compare_outcomes",
    "decide_verdict",
    "outcomes_from",
    "outcomes_of",
]

__getattr__ = load_lazily(__name__, _HOME)
