"""What judges said of a run's answers, from their files, and what they may do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragwb.errors import UsageError
from ragwb.html import plain
from ragwb.judge.answers import RunAnswer, items_of, judged_answers, run_answers_of
from ragwb.judge.rubric import Kind, Rubric, default_rubric, load_rubric
from ragwb.judge.scale import Value
from ragwb.judge.standing import Acceptance, JudgePolicy, Standing, accept
from ragwb.judge.verdicts import Verdicts, load_verdicts
from ragwb.measure.answered import JudgedAnswer
from ragwb.report.judging import standing_of

if TYPE_CHECKING:
    from ragwb.runs.store import Run
    from ragwb.settings import Settings

Pair = tuple[str, int]
# What each kind of rubric has a say in.
FIGURES_OF_KIND: Mapping[Kind, tuple[str, ...]] = {
    "answer": ("accepted",),
    "support": ("citation_support", "unsupported_rate"),
}


@dataclass(frozen=True, eq=False)
class RunJudge:
    """One judge's verdicts on the answers of a run.

    Attributes:
        verdicts: of one model by one rubric.
        rubric: what they follow.
        standing: whether they decide or only advise.
        item_ids: what of the run such a judge is asked about.
        unscored: items of these without a score, and why.
    """

    verdicts: Verdicts
    rubric: Rubric
    standing: Standing
    item_ids: tuple[str, ...]
    unscored: Mapping[str, str]

    def words(self) -> str:
        """Who judged, by what, and what it may do, in a line."""
        model = self.verdicts.model or "a judge that does not say its name"
        n = len(self.item_ids)
        return (
            f"{plain(model, width=60)} by {plain(self.rubric.label, width=60)} "
            f"{self.standing.why}; {n - len(self.unscored)}/{n} {self.rubric.kind} items scored"
        )

    def to_dict(self) -> dict[str, Any]:
        """The judge as JSON values."""
        return {
            "model": self.verdicts.model,
            "rubric": self.rubric.label,
            "rubric_hash": self.rubric.hash,
            "kind": self.rubric.kind,
            "may_block": self.standing.may_block,
            "why": self.standing.why,
            "n_items": len(self.item_ids),
            "n_unscored": len(self.unscored),
        }


@dataclass(frozen=True, slots=True)
class Opinion:
    """What the judge of whole answers said of one.

    Attributes:
        acceptance: hard rules AND judge, and why.
        scores: by criterion, None when unscored.
        rationale: the judge's own words, untrusted.
    """

    acceptance: Acceptance
    scores: Mapping[str, Value] | None
    rationale: str


@dataclass(frozen=True, eq=False)
class Judging:
    """All that judges said of a run's answers.

    Attributes:
        judges: one a file of verdicts.
        answers: as the scores of answers take it.
        opinions: of the judge of whole answers.
    """

    judges: tuple[RunJudge, ...] = ()
    answers: Mapping[Pair, JudgedAnswer] = field(default_factory=dict)
    opinions: Mapping[Pair, Opinion] = field(default_factory=dict)

    @property
    def advised(self) -> frozenset[str]:
        """Figures that rest on a judge who only advises: no limit is held against them."""
        advisers = (judge for judge in self.judges if not judge.standing.may_block)
        return frozenset(name for one in advisers for name in FIGURES_OF_KIND[one.rubric.kind])

    @property
    def decides(self) -> bool:
        """Whether a judge of whole answers may block."""
        return any(one.standing.may_block and one.rubric.kind == "answer" for one in self.judges)


def consult_judges(
    run: Run,
    files: Sequence[str | Path],
    *,
    rubrics: Sequence[str | Path] = (),
    broken: Mapping[Pair, bool],
    policy: JudgePolicy | None = None,
    settings: Settings | None = None,
) -> Judging:
    """What the verdicts of some files say of a run's answers.

    Args:
        run: a sealed run with answers.
        files: verdicts as `ragwb judge run` writes them, one file a judge; at most one judge of
            whole answers and one of support.
        rubrics: files of the rubrics that they follow, beside those that come with ragwb.
        broken: whether an answer breaks a hard rule, by case id and repeat.
        policy: what a calibration must show before a judge may block; by default kappa 0.6 on 50
            labelled items.
        settings: where calibrations are on record; default the settings in force.

    Raises:
        DataError: a file is broken.
        UsageError: verdicts follow a rubric that is not given, are of another run, or two judges
            say the same kind of thing.
    """
    known = [load_rubric(path) for path in rubrics]
    answers = run_answers_of(run)
    by_kind: dict[str, RunJudge] = {}
    for path in files:
        judge = _judge(Path(path), known, answers, run, policy, settings)
        if judge.rubric.kind in by_kind:
            raise UsageError(
                f"{path}: a second judge of kind {judge.rubric.kind}: give one of each"
            )
        by_kind[judge.rubric.kind] = judge
    whole, support = by_kind.get("answer"), by_kind.get("support")
    opinions = _opinions(answers, whole, broken) if whole else {}
    judged = judged_answers(answers, support=support.verdicts if support else None)
    return Judging(
        tuple(by_kind.values()),
        {pair: _accepted(one, opinions.get(pair), whole) for pair, one in judged.items()},
        opinions,
    )


def _judge(
    path: Path,
    known: Sequence[Rubric],
    answers: Sequence[RunAnswer],
    run: Run,
    policy: JudgePolicy | None,
    settings: Settings | None,
) -> RunJudge:
    verdicts = load_verdicts(path)
    rubric = _rubric_of(path, verdicts, known)
    if rubric.kind not in FIGURES_OF_KIND:
        raise UsageError(f"{path}: its rubric compares two answers, and a run holds one each")
    lengths = {item.item_id: item.length_chars(rubric.kind) for item in items_of(answers, rubric)}
    _check_answers(path, verdicts, lengths, run)
    asked = tuple(lengths)
    scored = {one.item_id for one in verdicts.verdicts if one.scores}
    why = verdicts.unscored()
    unscored = {name: why.get(name, "no verdict") for name in asked if name not in scored}
    standing = standing_of(rubric, verdicts, policy, settings)
    return RunJudge(verdicts, rubric, standing, asked, unscored)


def _check_answers(path: Path, verdicts: Verdicts, lengths: Mapping[str, int], run: Run) -> None:
    """Refuse verdicts on the answers of another run, which has cases of the same names."""
    if not lengths.keys() & set(verdicts.item_ids):
        raise UsageError(f"{path}: no verdict in it is on an answer of run {run.run_id}")
    for verdict in verdicts.verdicts:
        said, here = verdict.length_chars, lengths.get(verdict.item_id)
        if None not in (said, here) and said != here:
            raise UsageError(
                f"{path}: {plain(verdict.item_id, width=60)} was judged on {said} characters and "
                f"has {here} in run {run.run_id}: verdicts on other answers; judge this run"
            )


def _rubric_of(path: Path, verdicts: Verdicts, known: Sequence[Rubric]) -> Rubric:
    """The rubric that verdicts follow: by its hash, or the one given where they name none."""
    if verdicts.rubric_hash is None and len(known) == 1:
        return known[0]
    for rubric in (*known, default_rubric("answer"), default_rubric("support")):
        if rubric.hash == verdicts.rubric_hash:
            return rubric
    name = plain(verdicts.rubric or "no rubric by name", width=60)
    raise UsageError(f"{path}: its verdicts follow {name}, which is not given as it was: --rubric")


def _opinions(
    answers: Sequence[RunAnswer], judge: RunJudge, broken: Mapping[Pair, bool]
) -> dict[Pair, Opinion]:
    held = {one.name: judge.verdicts.of(one.name, one.scale) for one in judge.rubric.criteria}
    words = {
        verdict.item_id: verdict.rationale
        for verdict in reversed(judge.verdicts.verdicts)
        if verdict.rationale
    }
    found = {}
    for answer in answers:
        said = {name: of[answer.item_id] for name, of in held.items() if answer.item_id in of}
        scores = said if len(said) == len(held) else None
        rules_pass = not broken.get(answer.pair, False)
        acceptance = accept(rules_pass, scores, judge.rubric, judge.standing)
        found[answer.pair] = Opinion(acceptance, scores, words.get(answer.item_id, ""))
    return found


def _accepted(
    judged: JudgedAnswer, opinion: Opinion | None, whole: RunJudge | None
) -> JudgedAnswer:
    """An answer as judged, with its acceptance where the judge may decide it."""
    if opinion is None or whole is None or not whole.standing.may_block:
        return judged
    return replace(judged, accepted=opinion.acceptance.accepted)
