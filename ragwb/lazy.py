"""Names of a package that are loaded when they are first used: importing it costs little."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module


def load_lazily(package: str, homes: Mapping[str, str]) -> Callable[[str], object]:
    """The `__getattr__` of a package.

    Args:
        package: its name.
        homes: by name that it offers the module below it that holds it.
    """

    def load(name: str) -> object:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(f"{package}.{homes[name]}"), name)

    return load
