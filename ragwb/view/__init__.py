"""What do people see?

`charts` turns results into Altair charts, `theme` gives them one look without a network, `Panel`
shows the same words as text and as escaped HTML, and `case_card` opens one case.
"""

from ragwb.view.panel import Panel

__all__ = ["Panel"]
