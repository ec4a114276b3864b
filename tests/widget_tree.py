"""The widgets of a browser as a person finds them: by what they are and what stands on them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import ipywidgets as widgets


def walk(widget: Any) -> Iterator[Any]:
    """A widget and all below it, in the order of the page."""
    yield widget
    for child in getattr(widget, "children", ()):
        yield from walk(child)


def button(root: Any, words: str) -> Any:
    """The only button whose label holds these words."""
    (found,) = [w for w in walk(root) if isinstance(w, widgets.Button) and words in w.description]
    return found


def marked(root: Any, class_: str) -> Any:
    """The only widget of a CSS class."""
    (found,) = [w for w in walk(root) if class_ in getattr(w, "_dom_classes", ())]
    return found


def kind(root: Any, type_: type, at: int = 0) -> Any:
    """The first widget of a type, or a later one."""
    return [w for w in walk(root) if isinstance(w, type_)][at]


def shown_html(root: Any) -> str:
    """All HTML that the widgets hold, hidden ones too."""
    return "\n".join(w.value for w in walk(root) if isinstance(w, widgets.HTML))
