"""Run a parameterised notebook headless and keep it as one HTML file that reaches for no network.

papermill alone runs on with no parameters cell, lets a second one win, and only warns of an unknown
name; a report that ignored what it was told would be worse than none, so all three are refused.
"""

from __future__ import annotations

import ast
import contextlib
import copy
import json
import os
import re
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragwb.errors import RagwbError, UsageError
from ragwb.files import write_whole
from ragwb.html import plain
from ragwb.settings import shared_file

if TYPE_CHECKING:
    from nbformat import NotebookNode

SUMMARY_MIME = "application/vnd.ragwb.summary+json"
# The parameter by which a notebook shows widgets; a report is read without a kernel.
INTERACTIVE = "interactive"
_TYPES: Mapping[str, tuple[type, ...]] = {
    "str": (str,),
    "int": (int,),
    "float": (float, int),
    "bool": (bool,),
    "list": (list,),
    "dict": (dict,),
    "None": (type(None),),
}
# Between the types of a union, not within the brackets of one.
_UNION = re.compile(r" ?\| ?(?![^\[]*\])")


class ReportError(RagwbError):
    """A notebook failed while it ran; the text names the cell and the kept notebook."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """One line of a notebook's parameters cell: `name: type = literal  # help`."""

    name: str
    type_name: str
    default: object


def find_notebook(name: str) -> Path:
    """A notebook by path, or by the name of one that comes with ragwb, such as `10_retrieval_run`.

    Raises:
        UsageError: there is none; the known names are listed.
    """
    path = Path(name)
    if path.suffix == ".ipynb" and path.is_file():
        return path
    folder = shared_file("notebooks")
    known = sorted(file.stem for file in folder.glob("*.ipynb"))
    bare = name.removesuffix(".ipynb")
    if bare in known:
        return folder / f"{bare}.ipynb"
    raise UsageError(f"no notebook {plain(name, width=60)!r}; known: {', '.join(known)}")


def read_parameters(notebook: NotebookNode) -> list[Parameter]:
    """What a notebook's single parameters cell declares.

    Raises:
        UsageError: there is not exactly one such cell, or a line does not assign a literal.
    """
    cells = [cell for cell in notebook.cells if "parameters" in cell.metadata.get("tags", [])]
    if len(cells) != 1:
        raise UsageError(
            f"the notebook has {len(cells)} cells tagged 'parameters', needs exactly one"
        )
    return [_parameter(node) for node in ast.parse(cells[0].source).body]


def _parameter(node: ast.stmt) -> Parameter:
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value:
        with contextlib.suppress(ValueError):
            default = ast.literal_eval(node.value)
            return Parameter(node.target.id, ast.unparse(node.annotation), default)
    raise UsageError(f"parameters cell, line {node.lineno}: write `name: type = literal`")


def check_parameters(parameters: list[Parameter], given: Mapping[str, object]) -> None:
    """Refuse a name that the notebook does not declare and a value of another type.

    Raises:
        UsageError: names the parameter, what was given and what is known.
    """
    known = {parameter.name: parameter for parameter in parameters}
    for name, value in given.items():
        if name not in known:
            raise UsageError(
                f"unknown parameter {plain(name, width=60)!r}; known: {', '.join(known)}"
            )
        expected = known[name].type_name
        if not any(_fits(value, one) for one in _UNION.split(expected)):
            shown = plain(json.dumps(value, ensure_ascii=False), width=60)
            raise UsageError(f"parameter {name}: needs {expected}, got {shown}")


def _fits(value: object, type_name: str) -> bool:
    """Whether a JSON value is of a declared type, such as `int`, `list[str]`, `dict[str, float]`.

    A type of which nothing is known here takes every value but null.
    """
    name, _, rest = type_name.partition("[")
    types = _TYPES.get(name)
    if types is None:
        return value is not None
    if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
        return False
    item_type = rest.removesuffix("]").rpartition(", ")[2]
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return not item_type or all(_fits(item, item_type) for item in items)


def run_notebook(
    path: Path, parameters: Mapping[str, object], html_path: Path, *, cwd: Path
) -> dict[str, Any] | None:
    """Run a notebook and replace `html_path` by its report, at once and only if every cell ran.

    Args:
        path: the notebook; it is not changed.
        parameters: JSON values by name; `interactive`, where there is one, is False if not given.
        html_path: the report; parents are made.
        cwd: the folder in which the cells run.
    Returns:
        What the notebook recorded with `ragwb.record`, None if it recorded nothing.
    Raises:
        UsageError: a parameter is unknown or of the wrong type.
        ReportError: a cell failed; the notebook is kept beside the report as `*.failed.ipynb`.
    """
    notebook = _read_notebook(path)
    declared = read_parameters(notebook)
    check_parameters(declared, parameters)
    parameters = {**_without_widgets(declared), **parameters}
    html_path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="ragwb-") as scratch:
        executed = _execute(path, parameters, html_path, Path(scratch), cwd)
    write_atomically(html_path, export_html(executed, title=_title(notebook)))
    html_path.with_suffix(".failed.ipynb").unlink(missing_ok=True)
    return recorded_summary(executed)


def _without_widgets(declared: list[Parameter]) -> dict[str, object]:
    """What tells a notebook that nobody is there to click."""
    return {INTERACTIVE: False} if any(p.name == INTERACTIVE for p in declared) else {}


def _read_notebook(path: Path) -> NotebookNode:
    import nbformat

    try:
        notebook = nbformat.read(path, as_version=4)
        nbformat.validate(notebook)
    except (ValueError, AttributeError, KeyError, TypeError, nbformat.ValidationError) as error:
        raise UsageError(f"{path}: not a notebook: {plain(error, width=120)}") from error
    return notebook


def _execute(
    path: Path, parameters: Mapping[str, object], html_path: Path, scratch: Path, cwd: Path
) -> NotebookNode:
    import nbformat
    import papermill
    from nbclient.exceptions import DeadKernelError
    from papermill.exceptions import PapermillExecutionError
    from traitlets.config import Config

    output = scratch / "run.ipynb"
    try:
        with _quiet_kernels(scratch):
            papermill.execute_notebook(
                str(path),
                str(output),
                parameters=dict(parameters),
                cwd=str(cwd),
                kernel_name="python3",
                language="python",
                progress_bar=False,
                log_output=False,
                # A cell that failed is said in a line here; the kernel's own log would be more.
                extra_arguments=["--IPKernelApp.log_level=50"],
                # The sockets stand beside this file; without it in the working folder, where two
                # reports at once would talk to each other's kernels.
                config=Config(
                    ConnectionFileMixin={"connection_file": str(scratch / "kernel.json")}
                ),
            )
    except (PapermillExecutionError, DeadKernelError) as error:
        kept = html_path.with_suffix(".failed.ipynb")
        if output.exists():
            kept.write_bytes(output.read_bytes())
        raise ReportError(f"{path.name} failed: {_cause(error)}; see {kept}") from error
    return nbformat.read(output, as_version=4)


def _cause(error: Exception) -> str:
    cell = getattr(error, "exec_count", None)
    name, value = getattr(error, "ename", type(error).__name__), getattr(error, "evalue", "")
    return plain(f"cell {cell}: {name}: {value}" if cell else f"{name}: {value}", width=300)


@contextlib.contextmanager
def _quiet_kernels(folder: Path) -> Iterator[None]:
    """Kernels that talk over sockets in `folder`: no open port, and no warning of one."""
    from jupyter_client.manager import AsyncKernelManager

    trait = AsyncKernelManager.transport
    before, runtime = trait.default_value, os.environ.get("JUPYTER_RUNTIME_DIR")
    if os.name == "posix":
        trait.default_value = "ipc"
        os.environ["JUPYTER_RUNTIME_DIR"] = str(folder)
    try:
        yield
    finally:
        trait.default_value = before
        os.environ.pop("JUPYTER_RUNTIME_DIR", None)
        if runtime is not None:
            os.environ["JUPYTER_RUNTIME_DIR"] = runtime


def export_html(notebook: NotebookNode, *, title: str) -> str:
    """An executed notebook as one HTML page without inputs, scripts or outside references."""
    from nbconvert import HTMLExporter

    exporter = HTMLExporter(
        template_name="ragwb",
        extra_template_basedirs=[str(Path(__file__).parent / "templates")],
        exclude_input=True,
        exclude_input_prompt=True,
        exclude_output_prompt=True,
        exclude_anchor_links=True,
    )
    shown = copy.deepcopy(notebook)
    for cell in shown.cells:
        cell.outputs = [o for o in cell.get("outputs", []) if SUMMARY_MIME not in o.get("data", {})]
    html, _ = exporter.from_notebook_node(shown, resources={"metadata": {"name": title}})
    return str(html)


def record(summary: Mapping[str, object]) -> None:
    """Leave a result in the notebook for whoever ran it headless; the last cell calls it.

    Args:
        summary: JSON values by name. It is not shown.
    """
    from IPython.display import publish_display_data

    data = {SUMMARY_MIME: json.loads(json.dumps(summary, allow_nan=False))}
    publish_display_data(data)  # type: ignore[no-untyped-call]  # IPython leaves it unannotated


def recorded_summary(notebook: NotebookNode) -> dict[str, Any] | None:
    """What the last `ragwb.record` of an executed notebook put into it."""
    for cell in reversed(notebook.cells):
        for output in cell.get("outputs", []):
            if SUMMARY_MIME in output.get("data", {}):
                summary: dict[str, Any] = output["data"][SUMMARY_MIME]
                return summary
    return None


def _title(notebook: NotebookNode) -> str:
    first = notebook.cells[0].source.splitlines()[0] if notebook.cells else ""
    return first.lstrip("# ").strip() or "ragwb"


def write_atomically(path: Path, text: str) -> None:
    """Write a text file whole or not at all, and the folders it stands in.

    Raises:
        UsageError: the folder cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, text.encode("utf-8"))
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}") from error
