"""What do people see?

`charts` turns results into Altair charts, `theme` gives them one look without a network, `Panel`
shows the same words as text and as escaped HTML. `case_view` gathers one case, `case_card` opens it
(its parts in `case_parts` and `findings`, its picture in `journey`), `answer_card` does so with its
answer, `browser` walks many.
"""

from ragwb.view.panel import Panel

__all__ = ["Panel"]
