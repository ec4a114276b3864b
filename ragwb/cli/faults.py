"""Files of faults, with the golden sets that they name."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ragwb.errors import UsageError

if TYPE_CHECKING:
    from ragwb.golden.dataset import Dataset
    from ragwb.service.faults import Plan


def load_plan(path: Path | None, names: Sequence[str]) -> Plan:
    """The faults of these names in a file, all of it without any; none without a file.

    Raises:
        UsageError: names without a file, a name that is not in it, or a file that cannot be read.
        DataError: the file or one of its golden sets is wrong.
    """
    from ragwb.service.fault_kinds import ALL
    from ragwb.service.faults import NO_FAULTS, choose, read_faults

    if path is None:
        if names:
            raise UsageError("--fault names one of a file: give --faults FILE")
        return NO_FAULTS
    file = read_faults(path)
    is_for_cases = any(ALL not in fault.cases for fault in file.faults)
    questions = questions_of(load_golden_sets(file.golden)) if is_for_cases else {}
    return choose(file, names, questions)


def load_golden_sets(paths: Sequence[Path]) -> Dataset:
    """The cases of several golden sets as one.

    Raises:
        GoldenError: one is wrong.
        UsageError: there is none, or two have a case of the same id.
    """
    from ragwb.golden.dataset import Dataset, hash_cases, load_dataset

    if not paths:
        raise UsageError("no golden set: name one in the file of faults (golden = [...])")
    sets = [load_dataset(path) for path in paths]
    cases = tuple(case for one in sets for case in one.cases)
    twice = len(cases) - len({case.id for case in cases})
    if twice:
        raise UsageError(f"{twice} case ids stand in more than one of the golden sets")
    return Dataset(" + ".join(one.version for one in sets), cases, hash_cases(cases))


def questions_of(dataset: Dataset) -> dict[str, str]:
    """The question of each case, by its id."""
    return {case.id: case.question for case in dataset.cases}
