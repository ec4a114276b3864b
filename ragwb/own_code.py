"""Functions of the user's own, named `module:function`: nothing that they do ends ragwb unheard."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from typing import Any

from ragwb.errors import UsageError
from ragwb.html import plain


def load_function(name: str, what: str) -> Callable[..., Any]:
    """The function that `module:function` names.

    Args:
        name: in that form.
        what: what it is to ragwb, such as chunker, for the message.

    Raises:
        UsageError: it has another form, cannot be imported, or is not callable.
    """
    shown = f"{what} {plain(name, width=80)!r}"
    module_name, _, attribute = name.partition(":")
    try:
        # Stdout belongs to the results, whatever a module prints.
        with contained(), redirect_stdout(sys.stderr):
            function = getattr(importlib.import_module(module_name), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise UsageError(f"{shown}: give module:function that can be imported") from error
    except Exception as error:
        why = plain(f"{type(error).__name__}: {error}", width=160)
        raise UsageError(f"{shown}: its module cannot be imported: {why}") from error
    if not callable(function):
        raise UsageError(f"{shown} is not a function")
    found: Callable[..., Any] = function
    return found


@contextmanager
def contained() -> Iterator[None]:
    """Run code of the user's own; that it leaves the process becomes an error.

    Raises:
        RuntimeError: it raised what is no `Exception`, such as `SystemExit`; but Ctrl-C passes.
    """
    try:
        yield
    except (Exception, KeyboardInterrupt):
        raise
    except BaseException as error:
        raise RuntimeError(f"it raised {type(error).__name__}: {error}") from error
