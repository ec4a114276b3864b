"""The names that ragwb exports are those that its README and docstrings promise."""

import importlib
import pkgutil
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import ragwb

README = Path(__file__).parents[1] / "README.md"
PACKAGES = [ragwb.__name__] + [
    f"ragwb.{module.name}" for module in pkgutil.iter_modules(ragwb.__path__) if module.ispkg
]


def test_every_export_can_be_loaded():
    for name in ragwb.__all__:
        assert getattr(ragwb, name) is not None


def test_exports_are_sorted_few_and_in_the_readme():
    assert ragwb.__all__ == sorted(ragwb.__all__)
    assert len(ragwb.__all__) <= 30
    promised = set(re.findall(r"\brw\.(\w+)", README.read_text(encoding="utf-8")))
    assert promised == set(ragwb.__all__)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'recal'"):
        ragwb.recal  # noqa: B018 - the look-up itself is what fails


@pytest.mark.parametrize("name", PACKAGES)
def test_what_a_package_lists_is_there(name):
    package = importlib.import_module(name)
    assert package.__doc__
    for export in package.__all__:
        assert hasattr(package, export) or find_spec(f"{name}.{export}")


def test_importing_ragwb_loads_nothing_heavy():
    heavy = ["pandas", "numpy", "pyarrow", "duckdb", "httpx", "altair", "pydantic", "IPython"]
    code = f"import sys, ragwb, ragwb.cli; print([m for m in {heavy} if m in sys.modules])"
    printed = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout
    assert printed.strip() == "[]"
