"""`ragwb judge` as people and scripts type it."""

import csv
import json
import shlex
import sqlite3
from pathlib import Path

import pytest
from judge_data import rubric_file, write_lines
from loopback import serve

from ragwb.cli import run as ragwb
from ragwb.judge.cache import CACHE_FILE
from ragwb.judge.rows import write_csv
from ragwb.judge.rubric import MATERIAL, default_rubric, load_rubric
from ragwb.judge.standing import CALIBRATIONS
from ragwb.judge.verdicts import load_verdicts

ITEMS = [{"item_id": f"i{at}", "answer": f"答 {at}", "tags": {"d": str(at % 2)}} for at in range(6)]


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("RAGWB_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    write_lines(tmp_path / "items.jsonl", ITEMS)
    rubric_file(tmp_path)
    return tmp_path


def endpoint(text, status=200):
    body = json.dumps({"choices": [{"message": {"content": text}, "finish_reason": "stop"}]})
    return lambda *_: (status, {"content-type": "application/json"}, body.encode())


def asked(capfd, text, *flags, status=200):
    with serve(endpoint(text, status)) as url:
        code = ragwb(
            ["judge", "run", "--judge-url", url, "--model", "m", "--items", "items.jsonl",
             "--rubric", "r.toml", "--out", "v.jsonl", *flags]
        )  # fmt: skip
    out, err = capfd.readouterr()
    return code, out, err


def test_a_judge_is_asked_over_a_socket_and_its_verdicts_are_saved(home, capfd):
    code, out, err = asked(capfd, '{"rationale": "r", "good": 3}', "--repeats", "2")
    assert code == 0
    assert "unscored items           0" in out
    assert "verdicts: v.jsonl" in err
    rows = [json.loads(line) for line in (home / "v.jsonl").read_text("utf-8").splitlines()]
    assert len(rows) == 12
    assert rows[0]["scores"] == {"good": 3}
    assert rows[0]["rubric_hash"] == load_rubric("r.toml").hash
    code, out, _ = asked(capfd, "must not be asked", "--repeats", "2", "--format", "json")
    assert code == 0
    (kept,) = (row["value"] for row in json.loads(out) if "cache" in row["figure"])
    assert kept == 12
    assert asked(capfd, "asked anew", "--no-cache")[0] == 2


def test_a_judge_that_says_nothing_usable_is_an_error_and_leaves_its_reasons(home, capfd):
    code, out, err = asked(capfd, "很好，5 分")
    assert code == 2
    assert "ragwb: no verdict can be used, the first is malformed: not JSON" in err
    assert "unscored: malformed: not JSON" in out
    rows = [json.loads(line) for line in (home / "v.jsonl").read_text("utf-8").splitlines()]
    assert {row["scores"] for row in rows} == {None}


def test_a_refused_key_is_one_line(capfd):
    code, _, err = asked(capfd, "", status=401)
    assert code == 2
    assert len([line for line in err.splitlines() if line.startswith("ragwb:")]) == 1
    assert "401" in err


def refusing_after(n, text='{"rationale": "r", "good": 3}'):
    """An endpoint that takes a key for the first n calls."""
    good, calls = endpoint(text), iter(range(1000))
    return lambda *given: good(*given) if next(calls) < n else endpoint("", 401)(*given)


@pytest.mark.parametrize("flags", [["--no-cache"], []])
def test_a_key_that_is_refused_half_way_loses_nothing(home, capfd, flags):
    call = ["judge", "run", "--model", "m", "--items", "items.jsonl", "--rubric", "r.toml"]
    call += ["--out", "v.jsonl", "--concurrency", "1"]
    with serve(refusing_after(4)) as url:
        assert ragwb([*call, "--judge-url", url, *flags]) == 2
    err = capfd.readouterr().err
    assert "4 verdicts so far: v.partial.jsonl. To go on" in err
    assert "run the same again without --no-cache" in err
    assert err.count("ragwb:") == 1
    assert "401" in err
    assert not (home / "v.jsonl").exists()
    kept = load_verdicts(home / "v.partial.jsonl")
    assert [v.scores for v in kept.verdicts] == [{"good": 3}] * 4
    with serve(endpoint('{"rationale": "r", "good": 1}')) as url:
        assert ragwb([*call, "--judge-url", url]) == 0
    assert "verdicts from the cache  4" in capfd.readouterr().out
    assert [v.scores["good"] for v in load_verdicts(home / "v.jsonl").verdicts] == [3] * 4 + [1] * 2


def test_without_a_single_verdict_there_is_no_part_of_the_file(home, capfd):
    assert asked(capfd, "", "--no-cache", status=401)[0] == 2
    assert not list(home.glob("v*.jsonl"))


def test_a_cache_that_cannot_be_used_is_no_hindrance_where_it_is_not_read(home, capfd):
    (home / "home" / "judge" / CACHE_FILE).mkdir(parents=True)
    good = '{"rationale": "r", "good": 3}'
    code, _, err = asked(capfd, good)
    assert (code, "delete it, it is only a cache" in err) == (2, True)
    code, _, err = asked(capfd, good, "--no-cache")
    assert (code, "verdicts are not kept for later: " in err) == (0, True)


def test_broken_rows_of_the_cache_are_asked_again_and_counted(home, capfd):
    good = '{"rationale": "r", "good": 3}'
    assert asked(capfd, good)[0] == 0
    store = sqlite3.connect(home / "home" / "judge" / CACHE_FILE)
    with store:
        store.execute("UPDATE verdicts SET reply = 'broken' WHERE rowid <= 2")
    store.close()
    code, out, _ = asked(capfd, good, "--format", "json")
    assert code == 0
    told = {row["figure"]: row["value"] for row in json.loads(out)}
    assert told["broken rows of the cache, asked again"] == 2
    assert told["verdicts from the cache"] == 4


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ([], "give --items FILE or --run RUN"),
        (["--items", "items.jsonl", "--run", "latest"], "one of them"),
        (["--items", "none.jsonl"], "none.jsonl: cannot be read: No such file"),
        (["--items", "items.jsonl", "--kind", "opinion"], "must be answer, support, pair"),
        (["--items", "items.jsonl", "--temperature", "1"], "temperature 1"),
        (["--run", "latest"], "no finished run"),
    ],
)
def test_a_wrong_call_is_one_line(capfd, flags, said):
    call = ["judge", "run", "--judge-url", "http://127.0.0.1:9", "--model", "m", "--out", "v.jsonl"]
    assert ragwb([*call, *flags]) == 2
    assert said in capfd.readouterr().err


@pytest.mark.parametrize(
    ("out", "said"),
    [
        ("items.jsonl", "it is what is read"),
        (".", "a folder"),
        ("items.jsonl/v.jsonl", "exists"),
    ],
)
def test_an_output_that_cannot_be_is_found_before_anything_is_asked(home, capfd, out, said):
    before = (home / "items.jsonl").read_bytes()
    call = ["judge", "run", "--judge-url", "http://127.0.0.1:9", "--model", "m"]
    assert ragwb([*call, "--items", "items.jsonl", "--rubric", "r.toml", "--out", out]) == 2
    assert said in capfd.readouterr().err
    assert (home / "items.jsonl").read_bytes() == before


@pytest.fixture
def files(home):
    """Labels and verdicts of 60 items on which the judge is wrong six times."""
    people = {f"i{at}": 3 if at % 2 else 1 for at in range(60)}
    labels = [
        {"item_id": i, "annotator": who, "labels": {"good": v}, "tags": {"d": "x"}}
        for i, v in people.items()
        for who in ("甲", "乙")
    ]
    judge = {"model": "m", "rubric": "test 1", "rubric_hash": load_rubric("r.toml").hash}
    verdicts = [
        {"item_id": i, "scores": {"good": 4 - v if at < 6 else v}, **judge}
        for at, (i, v) in enumerate(people.items())
    ]
    write_lines(home / "l.jsonl", labels)
    write_lines(home / "v.jsonl", verdicts)
    second = [{**row, "scores": {"good": 3}, "rubric_hash": "other"} for row in verdicts]
    write_lines(home / "w.jsonl", second)
    return ["judge", "calibrate", "--labels", "l.jsonl", "--verdicts", "v.jsonl"]


def test_a_judge_is_held_against_people(files, capfd):
    assert ragwb(files) == 0
    out = capfd.readouterr().out
    assert out.startswith("ADVISES: no rubric was given")
    assert "- good: raw_agreement 0.900 (people 1.000), kappa 0.800 (people 1.000)" in out
    assert "human \\ judge" in out


def test_the_copies_of_two_annotators_come_back_as_they_are(files, home, capfd):
    lines = (home / "l.jsonl").read_text("utf-8").splitlines(keepends=True)
    for name, who in (("a.jsonl", "甲"), ("b.jsonl", "乙")):
        own = "".join(line for line in lines if json.loads(line)["annotator"] == who)
        (home / name).write_text(own, encoding="utf-8")
    assert ragwb([*files, "--format", "json"]) == 0
    together = json.loads(capfd.readouterr().out)
    copies = ["--labels", "a.jsonl", "--labels", "b.jsonl"]
    assert ragwb([*files[:2], *copies, "--verdicts", "v.jsonl", "--format", "json"]) == 0
    assert json.loads(capfd.readouterr().out) == together


def test_a_calibration_on_record_lets_a_judge_decide(files, home, capfd):
    assert ragwb([*files, "--rubric", "r.toml"]) == 0
    assert "ADVISES: the judge advises: no calibration on record" in capfd.readouterr().out
    assert ragwb([*files, "--rubric", "r.toml", "--record", "--format", "json"]) == 0
    told = json.loads(capfd.readouterr().out)
    assert told["standing"]["may_block"] is True
    assert told["decisions"][0]["cut"] == 2
    assert (home / "home" / CALIBRATIONS).is_file()
    assert ragwb([*files, "--rubric", "r.toml", "--min-kappa", "0.9"]) == 0
    assert "kappa 0.800 of good is below 0.9" in capfd.readouterr().out


def test_two_judges_side_by_side(files, capfd):
    assert ragwb([*files, "--second", "w.jsonl", "--by", "d"]) == 0
    out = capfd.readouterr().out
    assert "good by d" in out
    assert "30 decided differently; right where the other is wrong: first 27, second 3" in out
    assert "60 items scored by both" in out
    assert "McNemar p =" in out


def test_figures_as_csv(files, capfd):
    assert ragwb([*files, "--format", "csv", "--cut", "2"]) == 0
    lines = capfd.readouterr().out.splitlines()
    assert lines[0].startswith("criterion,cut,figure,value")
    assert lines[1].startswith("good,2,raw_agreement,0.9")


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--record"], "put on record for a rubric"),
        (["--criterion", "better"], "no 'better'"),
        (["--by", "mood"], "no tag 'mood'"),
        (["--cut", "fair"], "needs an ordered scale"),
        (["--cut", "nan"], "cut 'nan': is no rating"),
        (["--kind", "opinion"], "must be answer, support, pair"),
        (["--min-kappa", "3"], "min_kappa 3"),
        (["--key", "none.json"], "none.json"),
        (["--rubric", "none.toml"], "none.toml"),
    ],
)
def test_a_wrong_calibration_is_one_line(files, capfd, flags, said):
    assert ragwb([*files, *flags]) == 2
    err = capfd.readouterr().err
    assert said in err
    assert err.count("ragwb:") == 1


def test_a_sheet_is_drawn_and_its_labels_come_back(files, home, capfd):
    drawn = ["judge", "sample", "--items", "items.jsonl", "--rubric", "r.toml", "--out", "s.csv"]
    assert ragwb([*drawn, "--size", "4", "--by", "d"]) == 0
    out, err = capfd.readouterr()
    assert out.split() == ["stratum", "drawn", "of", "0", "2", "3", "1", "2", "3"]
    assert "for the annotators, a copy each: s.csv\n" in err
    assert "to fill in: annotator (their name, in every row), good (one of 1, 2, 3); comment" in err
    assert "for nobody but you: s.csv.key.json" in err
    back = next(line for line in err.splitlines() if "judge calibrate" in line)
    call = shlex.split(back.replace("VERDICTS.jsonl", "v.jsonl"))[1:]
    sheet = (home / "s.csv").read_text(encoding="utf-8-sig").splitlines()
    head = sheet[0].split(",")
    place = {name: head.index(name) for name in ("annotator", "good")}
    rows = [line.split(",") for line in sheet[1:]]
    for row in rows:
        row[place["annotator"]], row[place["good"]] = "甲", "3"
    lines = [sheet[0], *(",".join(row) for row in rows)]
    (home / "s.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert ragwb([*call, "--format", "json"]) == 0
    told = json.loads(capfd.readouterr().out)["calibrations"][0]
    assert (told["n_items"], told["n_unlabelled"]) == (4, 56)
    place = call.index("--key")
    assert ragwb([*call[:place], *call[place + 2 :]]) == 2
    assert "does not know" in capfd.readouterr().err


def test_a_sheet_of_the_default_size_takes_all_there_are(home, capfd):
    drawn = ["judge", "sample", "--items", "items.jsonl", "--rubric", "r.toml", "--out", "s.csv"]
    assert ragwb([*drawn, "--size", "7"]) == 2
    assert "7 items: there are 6" in capfd.readouterr().err
    assert ragwb(drawn) == 0
    out, err = capfd.readouterr()
    assert out.split()[-2:] == ["6", "6"]
    assert err.startswith("all there are: 6 items\n")
    write_lines(home / "items.jsonl", [{"item_id": f"i{at}", "answer": "答"} for at in range(51)])
    assert ragwb([*drawn[:-1], "t.csv"]) == 0
    out, err = capfd.readouterr()
    assert out.split()[-2:] == ["50", "51"]
    assert "all there are" not in err


def test_verdicts_may_go_to_standard_output(home, capfd):
    code, out, _ = asked(capfd, '{"rationale": "r", "good": 3}', "--out", "/dev/stdout")
    assert code == 0
    assert [json.loads(line)["item_id"] for line in out.splitlines()[:6]] == [
        item["item_id"] for item in ITEMS
    ]


@pytest.mark.parametrize("kind", ["answer", "support", "pair"])
def test_the_command_that_brings_labels_back_fits_each_rubric(home, capfd, kind):
    parts = dict.fromkeys(MATERIAL[kind], "text")
    write_lines(home / "i.jsonl", [{"item_id": f"i{at}", **parts} for at in range(3)])
    out = str(home / "my sheets" / "s.csv")
    drawn = ["judge", "sample", "--items", "i.jsonl", "--kind", kind, "--out", out]
    assert ragwb([*drawn, "--size", "3"]) == 0
    back = next(line for line in capfd.readouterr().err.splitlines() if "calibrate" in line)
    (one, *_) = default_rubric(kind).criteria
    value = one.scale.values[-1]
    sheet = csv_rows(out)
    for row in sheet:
        row |= {"annotator": "甲", one.name: str(value)}
    write_csv(Path(out), list(sheet[0]), sheet)
    verdicts = [{"item_id": f"i{at}", "scores": {one.name: value}} for at in range(3)]
    write_lines(home / "v.jsonl", verdicts)
    call = shlex.split(back.replace("VERDICTS.jsonl", "v.jsonl"))
    assert call[0] == "ragwb"
    assert ragwb([*call[1:], "--format", "json"]) == 0
    (told,) = json.loads(capfd.readouterr().out)["calibrations"]
    assert (told["criterion"], told["n_items"]) == (one.name, 3)


def csv_rows(path):
    with Path(path).open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.slow
def test_the_report_is_written(files, home, capfd):
    flags = ["--second", "w.jsonl", "--rubric", "r.toml", "--by", "d", "--report", "out/judge"]
    assert ragwb([*files, *flags]) == 0
    told = json.loads((home / "out" / "judge.json").read_text(encoding="utf-8"))
    assert told["calibrations"][0]["judge_human"]["kappa"]["value"] == pytest.approx(0.8)
    html = (home / "out" / "judge.html").read_text(encoding="utf-8")
    assert "no calibration on record for this model and rubric" in html
    assert "<svg" in html
    assert "<script" not in html


def test_the_answers_of_a_run_are_judged_by_claim(home, capfd):
    from run_data import case, golden, no_wait, service
    from test_judge_answers import answering

    from ragwb.runs.runner import run_answers
    from ragwb.settings import load_settings

    run_answers(
        golden(home, [case(1), case(2)]),
        load_settings(base_url="http://service.example"),
        top_k=2,
        transport=answering(service(n_chunks=3)),
        sleep=no_wait,
    )
    said = '{"rationale": "", "support": "supported"}'
    call = ["judge", "run", "--model", "m", "--run", "latest", "--kind", "support"]
    with serve(endpoint(said)) as url:
        assert ragwb([*call, "--judge-url", url, "--out", "v.jsonl", "--format", "csv"]) == 0
        out = capfd.readouterr().out
        split = [*call, "--judge-url", url, "--out", "w.jsonl", "--split", "model"]
        assert ragwb(split) == 2
    rows = dict(line.split(",", 1) for line in out.splitlines())
    assert (rows["n_claims"], rows["n_cited"]) == ("2", "1")
    assert (rows["unsupported_rate"], rows["citation_support"]) == ("0.0", "1.0")
    err = capfd.readouterr().err
    assert "not split, and left out: c1: malformed" in err
    assert "holds nothing that a support rubric judges" in err
    assert ragwb([*split[:-1], "people"]) == 2
    assert "--split people: must be rules or model" in capfd.readouterr().err
