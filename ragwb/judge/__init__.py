"""Who says so? A model as judge, by a rubric, and held against people.

`load_rubric` reads what is decided, `judge_items` asks a model, `calibrate` holds its verdicts
against human labels and `compare_judges` two judges against each other; `judge_standing` tells
whether one may block, and `accept` joins it with the hard rules. `support_figures` are the rates of
claims, `draw_sample` makes a sheet for blind review. Names are loaded when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragwb.lazy import load_lazily

if TYPE_CHECKING:
    from ragwb.judge.calibration import Calibration, calibrate
    from ragwb.judge.client import judge_items
    from ragwb.judge.comparison import JudgeComparison, compare_judges, contradictions
    from ragwb.judge.items import Item, load_items
    from ragwb.judge.labels import Labels, load_labels
    from ragwb.judge.rubric import Rubric, default_rubric, load_rubric
    from ragwb.judge.sampling import draw_sample, write_sheet
    from ragwb.judge.standing import JudgePolicy, accept, judge_standing, record_calibration
    from ragwb.judge.support import roll_up, support_figures, support_items
    from ragwb.judge.verdicts import Verdict, Verdicts, load_verdicts, save_verdicts

_HOME = {
    "Calibration": "calibration",
    "Item": "items",
    "JudgeComparison": "comparison",
    "JudgePolicy": "standing",
    "Labels": "labels",
    "Rubric": "rubric",
    "Verdict": "verdicts",
    "Verdicts": "verdicts",
    "accept": "standing",
    "calibrate": "calibration",
    "compare_judges": "comparison",
    "contradictions": "comparison",
    "default_rubric": "rubric",
    "draw_sample": "sampling",
    "judge_items": "client",
    "judge_standing": "standing",
    "load_items": "items",
    "load_labels": "labels",
    "load_rubric": "rubric",
    "load_verdicts": "verdicts",
    "record_calibration": "standing",
    "roll_up": "support",
    "save_verdicts": "verdicts",
    "support_figures": "support",
    "support_items": "support",
    "write_sheet": "sampling",
}
__all__ = [
    "Calibration",
    "Item",
    "JudgeComparison",
    "JudgePolicy",
    "Labels",
    "Rubric",
    "Verdict",
    "Verdicts",
    "accept",
    "calibrate",
    "compare_judges",
    "contradictions",
    "default_rubric",
    "draw_sample",
    "judge_items",
    "judge_standing",
    "load_items",
    "load_labels",
    "load_rubric",
    "load_verdicts",
    "record_calibration",
    "roll_up",
    "save_verdicts",
    "support_figures",
    "support_items",
    "write_sheet",
]

__getattr__ = load_lazily(__name__, _HOME)
