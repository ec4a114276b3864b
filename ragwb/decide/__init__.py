"""Better or worse, ship or not?

`check_thresholds` holds the figures of one run against limits; `decide_verdict` turns what was
found into pass, fail or undecided.
"""

from ragwb.decide.thresholds import (
    Threshold,
    Verdict,
    check_thresholds,
    decide_verdict,
)

__all__ = ["Threshold", "Verdict", "check_thresholds", "decide_verdict"]
