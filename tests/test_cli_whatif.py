"""`ragwb triage --what-if`, for people and for scripts."""

from __future__ import annotations

import csv
import json
from dataclasses import replace

import pytest
from triage_data import saved, told
from whatif_data import Config, World, answer, text_of, tokens_of

from ragwb.cli import run as ragwb

CONFIG = Config(top_k=1, rerank=False)
WORLD = World(
    channels={"vector": ["b0", "c0", "d0", "a0", "e0"], "keyword": ["e0", "b0", "a0"]},
    own={},
    groups=[["e0"]],
)
TEXTS = {f"{letter}0": text_of(letter) for letter in "abcde"}


@pytest.fixture
def what_if(tmp_path, capfd):
    """`ragwb triage RUN --what-if …` of a run of these results; gives stdout."""

    def call(shown, *flags, **manifest):
        config = {**CONFIG.manifest, "texts": TEXTS, **manifest}
        run = saved(tmp_path / "home" / "runs", *shown, **config)
        assert ragwb(["triage", str(run.path), "--offline", "--what-if", *flags]) == 0
        return capfd.readouterr().out

    return call


def table(out):
    """The lines from the heading of what-if on."""
    return out.partition("what if:")[2].splitlines()


def test_json_is_the_list_of_remedies_to_the_letter(what_if):
    remedies = json.loads(what_if([answer(WORLD, CONFIG)], "--format", "json"))

    assert {
        "change": "K = 2",
        "fixed": ["c0"],
        "broken": [],
        "unknown": [],
        "tokens_per_case": float(tokens_of("e0")),
        "latency_ms": None,
        "is_remedy": True,
    } in remedies
    assert all(remedy["fixed"] for remedy in remedies)


def test_csv_has_a_row_a_remedy(what_if):
    rows = list(csv.DictReader(what_if([answer(WORLD, CONFIG)], "--format", "csv").splitlines()))

    assert [*rows[0]] == [
        *("change", "fixed", "broken", "unknown", "tokens_per_case", "latency_ms", "is_remedy")
    ]
    assert ("K = 2", "c0", "True") in [(r["change"], r["fixed"], r["is_remedy"]) for r in rows]


def test_people_see_what_it_fixes_breaks_and_costs_with_names(what_if):
    broken = [answer(replace(WORLD, groups=[["b0"]]), CONFIG) for _ in range(10)]
    lines = table(what_if([answer(WORLD, CONFIG), *broken]))
    by_change = {line.split("  ")[0]: line for line in lines if line}

    assert "1: c0" in by_change["K = 2"]
    assert "not measured" in by_change["K = 2"]
    keyword = by_change["only keyword"]
    assert "10: c1, c2, c3, c4, c5, c6, c7, c8 and 2 more" in keyword
    assert lines.index(by_change["K = 2"]) < lines.index(keyword)
    assert "every case by name: --format json" in lines


def test_a_waived_filter_stands_apart_and_is_called_no_remedy(what_if):
    hidden = told(filtered_by=["ACL"], ranks={"vector": 1, "fused": 1, "reranked": None})
    shown = replace(
        answer(replace(WORLD, groups=[["z0"]]), CONFIG),
        filtered=[("z0", "vector", "ACL")],
        explained={"z0": hidden},
    )
    lines = table(what_if([shown]))
    apart = next(i for i, line in enumerate(lines) if line.startswith("effect only"))

    assert any(line.startswith("no single change") for line in lines[:apart])
    assert "filter reason ACL waived" in "".join(lines[apart:])
    one = what_if([shown], "--case", "c0", run_id="again")
    assert "a waived filter shows an effect and is no remedy" in one


def test_one_case_has_its_least_changes(what_if):
    lines = table(what_if([answer(WORLD, CONFIG)], "--case", "c0"))
    row = next(line for line in lines if line.startswith("K = 2"))
    assert row.split()[3:] == ["2", "2", "1", str(tokens_of("e0"))]

    rows = json.loads(
        what_if([answer(WORLD, CONFIG)], "--case", "c0", "--format", "json", run_id="again")
    )
    assert rows[0].keys() == {
        *("change", "rank_before", "rank_after", "positions", "tokens_added", "note", "is_remedy")
    }


def test_a_case_that_nothing_brings_back_says_so(what_if):
    shown = answer(replace(WORLD, groups=[["z0"]]), CONFIG)
    line = table(what_if([shown], "--case", "c0"))[1]
    as_far = "of those that the saved candidates can tell"
    assert line == f"no single change {as_far} brings this case back"


def test_tokens_that_are_counted_otherwise_are_called_estimates(what_if):
    first, second = (answer(world, CONFIG) for world in (WORLD, replace(WORLD, groups=[["b0"]])))
    out = what_if([first, replace(second, context_tokens=(second.context_tokens or 0) + 3)])
    assert "token counts are estimates" in out
