"""What a gate says: the verdict, every rule with what it was held against, and who decides."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING, Any, Literal

from ragwb import html
from ragwb.decide.gate.policy import Policy
from ragwb.decide.gate.policy_rules import find_figure
from ragwb.decide.thresholds import EXIT_CODES, Verdict
from ragwb.html import plain
from ragwb.measure.listed import count, some
from ragwb.measure.shown import text_rows

if TYPE_CHECKING:
    import pandas as pd

Status = Literal["pass", "fail", "undecided", "advises", "unknown"]
Block = Literal["cases", "safety", "floors", "regression", "budget"]

_GRAVITY: tuple[Status, ...] = ("fail", "undecided", "advises", "unknown", "pass")
_SHOWN = ("block", "rule", "slice", "status", "value", "limit", "n")
_NUMBERS = ("value", "limit", "n")
# A mark, a class and a style for each status; what may not block has no colour.
_LOOKS: dict[str, tuple[str, str | None, str | None]] = {
    "pass": ("✔", "rw-good", None),
    "fail": ("✖", "rw-bad", None),
    "undecided": ("?", "rw-badge", "--rw-stage: #e69f00"),
    "advises": ("·", None, None),
    "unknown": ("·", None, None),
}
_ROWS = {"fail": "rw-row-bad"}
MOST_NAMES = 12
"""So many case ids stand in a line; the JSON holds all."""


@dataclass(frozen=True, slots=True)
class RuleResult:
    """One rule of a policy held against a run.

    Attributes:
        block: of the policy; `cases` for what every policy asks: that there is something to decide.
        rule: its name, such as `min recall@5`, `max_broken` or `acl_leak`.
        status: pass, fail, undecided (it could not be held), advises (it may not block), or unknown
            (it could not be held, and the policy lets it).
        words: what was found, in a sentence with its counts.
        read_as: what the rule asks, in a sentence.
        slice: the cases that it is about; None for all blocking cases.
        value: the figure in its own unit, None where there is none.
        limit: in the same unit; None where there is none, as for safety.
        n: cases behind the value, or results of a percentile.
        counts: such as 9/10, of a rate of up to 100 cases.
        case_ids: the cases behind a value that is not what it could be, the worst first.
        line: of the policy's file.
    """

    block: Block
    rule: str
    status: Status
    words: str
    read_as: str
    slice: str | None = None
    value: float | None = None
    limit: float | None = None
    n: int | None = None
    counts: str | None = None
    case_ids: tuple[str, ...] = ()
    line: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """The fields as JSON values."""
        return {**asdict(self), "case_ids": list(self.case_ids)}


@dataclass(frozen=True, slots=True)
class Aside:
    """Cases of a tier that decides nothing, for whoever promotes them.

    Attributes:
        tier: shadow or diagnostic.
        n: cases of the tier.
        n_known: those of which it is known whether they fail.
        failed: ids of those that fail.
    """

    tier: str
    n: int
    n_known: int
    failed: tuple[str, ...]

    def words(self) -> str:
        """The tier in a sentence."""
        failed = f"{len(self.failed)}/{self.n_known} fail" if self.n_known else "none was scored"
        return f"{self.tier}: {count(self.n, 'case')}, {failed}; they decide nothing"


@dataclass(frozen=True, repr=False, eq=False)
class GateResult:
    """A run held against a policy.

    Attributes:
        policy: as it was read.
        run: the run's id.
        baseline: the run id or the file that it was compared with; None without one.
        rules: every rule, in the order of the policy.
        counts: blocking cases: n_cases, n_scored, n_excluded, n_errors.
        aside: the tiers that decide nothing.
        notes: what a reader must know and no rule says, such as cases that are not compared.
    """

    policy: Policy
    run: str
    baseline: str | None
    rules: tuple[RuleResult, ...]
    counts: dict[str, int]
    aside: tuple[Aside, ...] = ()
    notes: tuple[str, ...] = field(default=())

    @property
    def verdict(self) -> Verdict:
        """Fail for a blocker; else undecided where a rule is; else pass."""
        found = {rule.status for rule in self.rules}
        if "fail" in found:
            return "fail"
        return "undecided" if "undecided" in found else "pass"

    @property
    def exit_code(self) -> int:
        """0 pass, 1 fail, 3 undecided."""
        return EXIT_CODES[self.verdict]

    @property
    def state(self) -> str:
        """What the policy suggests: ship, canary, hold, in its own words."""
        return self.policy.states.of(self.verdict)

    @property
    def blockers(self) -> tuple[RuleResult, ...]:
        """The rules that the run breaks."""
        return self.of("fail")

    @property
    def undecided(self) -> tuple[RuleResult, ...]:
        """The rules that could not be held."""
        return self.of("undecided")

    @property
    def case_ids(self) -> tuple[str, ...]:
        """The cases behind the blockers, each once."""
        return tuple(dict.fromkeys(name for rule in self.blockers for name in rule.case_ids))

    def of(self, status: Status) -> tuple[RuleResult, ...]:
        """The rules of this status."""
        return tuple(rule for rule in self.rules if rule.status == status)

    def frame(self) -> pd.DataFrame:
        """A row a rule, with the fields of `RuleResult`."""
        import pandas as pd

        names = list(RuleResult.__dataclass_fields__)
        return pd.DataFrame([rule.to_dict() for rule in self.rules], columns=names)

    def to_dict(self) -> dict[str, Any]:
        """The JSON of `gate`, with the keys that scripts rely on."""
        return {
            "verdict": self.verdict,
            "state": self.state,
            "policy": self.policy.name,
            "k": self.policy.k,
            "run": self.run,
            "baseline": self.baseline,
            "counts": self.counts,
            "blockers": [rule.to_dict() for rule in self.blockers],
            "undecided": [rule.to_dict() for rule in self.undecided],
            "rules": [rule.to_dict() for rule in self.rules],
            "aside": [{**asdict(one), "failed": list(one.failed)} for one in self.aside],
            "notes": list(self.notes),
        }

    def headline(self) -> str:
        """The verdict, the state that it suggests and why, in a line."""
        held = [rule for rule in self.rules if rule.status not in ("advises", "unknown")]
        if self.verdict == "fail":
            why = f"{len(self.blockers)} of {len(held)} rules broken"
        elif self.verdict == "undecided":
            why = f"{len(self.undecided)} of {len(held)} rules could not be held, none broken"
        else:
            why = f"all {len(held)} rules hold"
        name = plain(self.policy.name, width=80)
        return f"{self.verdict.upper()} → {plain(self.state, width=60)}: {why} ({name})"

    def of_what(self) -> str:
        """Which run was held against which baseline, and its blocking cases, in a line."""
        counts = self.counts
        against = f" against {plain(self.baseline)}" if self.baseline else ", no baseline"
        return (
            f"run {plain(self.run)}{against}, K {self.policy.k}: {counts['n_cases']} blocking "
            f"cases = {counts['n_scored']} scored + {counts['n_excluded']} excluded + "
            f"{counts['n_errors']} errors"
        )

    def reasons(self) -> Iterator[tuple[Status, str, tuple[str, ...]]]:
        """What decided, the gravest first: a status, a sentence, and the cases behind it.

        Safety rules that are unknown for one reason stand in one sentence.
        """
        statuses: tuple[Status, ...] = ("fail", "undecided", "advises")
        for status in statuses:
            for words, rules in groupby(self.of(status), _reason):
                found = list(rules)
                if len(found) > 1 and found[0].block == "safety":
                    yield status, f"{', '.join(one.rule for one in found)} are{words}", ()
                    continue
                for rule in found:
                    yield status, rule.words, rule.case_ids
        if unknown := [rule.rule for rule in self.of("unknown")]:
            yield "unknown", f"{', '.join(unknown)}: not observed, as the policy allows", ()

    def rows(self) -> list[dict[str, object]]:
        """A row a rule as people read it: blockers first, then what is undecided."""
        return [
            {
                "block": rule.block,
                "rule": rule.rule,
                "slice": rule.slice,
                "status": rule.status,
                "value": value_words(rule),
                "limit": number_words(rule.limit),
                "n": None if rule.n is None else f"{rule.n}",
            }
            for rule in self.by_status()
        ]

    def by_status(self) -> list[RuleResult]:
        """The rules, the gravest first, else in the order of the policy."""
        return sorted(self.rules, key=lambda rule: _GRAVITY.index(rule.status))

    def lines(self) -> list[str]:
        """What a person reads before the table of rules, a line each, for a terminal."""
        said = (f"- {s}: {plain(words)}{_named(ids)}" for s, words, ids in self.reasons())
        notes = (f"note: {plain(note)}" for note in self.notes)
        return [self.headline(), *said, self.of_what(), *notes, *(a.words() for a in self.aside)]

    def __repr__(self) -> str:
        rows: list[dict[str, object]] = [
            {key: None if v is None else plain(v) for key, v in row.items()} for row in self.rows()
        ]
        return "\n".join([*self.lines(), *text_rows(rows, _SHOWN)])

    def _repr_html_(self) -> str:
        items = "".join(
            html.tag("li", _status(status) + html.escape(f": {words}" + _named(case_ids)))
            for status, words, case_ids in self.reasons()
        )
        head = html.tag("b", html.escape(self.headline()))
        listed = html.tag("ul", items) if items else ""
        after = (self.of_what(), *self.notes, *(one.words() for one in self.aside))
        return "".join(
            [
                html.tag("div", head + listed, class_=f"rw-verdict rw-{self.verdict}"),
                *(html.tag("p", html.escape(line), class_="rw-figures") for line in after),
                _table(self.rows()),
            ]
        )


def number_words(value: float | None, counts: str | None = None) -> str | None:
    """A value and its counts, with four digits after the point, from 10 on with one."""
    if value is None:
        return None
    # Milliseconds and tokens are read as whole numbers.
    written = f"{value:.{4 if abs(value) < 10 else 1}f}".rstrip("0").rstrip(".")
    written = "0" if written == "-0" else written
    return f"{written} ({counts})" if counts else written


def _reason(rule: RuleResult) -> str:
    """Why a safety rule is unknown, without its name; else its whole sentence."""
    is_unknown = rule.block == "safety" and rule.status == "undecided"
    return rule.words.removeprefix(f"{rule.rule} is") if is_unknown else rule.words


def value_words(rule: RuleResult) -> str | None:
    """The value of a rule; of a limit on getting worse, what got better in its own direction."""
    if rule.value is None or rule.value >= 0:
        return number_words(rule.value, rule.counts)
    # Only a change is negative: less than no drop is a rise, and of a cost a fall.
    metric = rule.rule.partition(" ")[2]
    rose = bool(metric) and find_figure(metric).direction == "higher"
    changed = number_words(-rule.value)
    return f"+{changed} (rose)" if rose else f"-{changed} (fell)"


def _table(rows: list[dict[str, object]]) -> str:
    """The rules as HTML, each status with its mark and colour."""
    head = "".join(html.tag("th", name, scope="col", class_=_class(name)) for name in _SHOWN)
    body = "".join(
        html.tag("tr", _cells(row), class_=_ROWS.get(str(row["status"]))) for row in rows
    )
    parts = html.tag("thead", html.tag("tr", head)) + html.tag("tbody", body)
    return html.tag("table", parts, class_="rw")


def _cells(row: dict[str, object]) -> str:
    shown = _status(str(row["status"]))
    return "".join(
        html.tag("td", shown if name == "status" else html.cell(row[name]), class_=_class(name))
        for name in _SHOWN
    )


def _status(status: str) -> str:
    mark, class_, style = _LOOKS[status]
    return html.tag("span", html.escape(f"{mark} {status}"), class_=class_, style=style)


def _class(name: str) -> str | None:
    return "num" if name in _NUMBERS else None


def _named(case_ids: tuple[str, ...]) -> str:
    return f": {some(case_ids, MOST_NAMES, width=80)}" if case_ids else ""
