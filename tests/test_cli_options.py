"""What several commands share: Ks, identities, and rows in the asked format."""

import json

import pytest

from ragwb.cli.options import Format, parse_identities, parse_ks, print_rows
from ragwb.errors import UsageError


@pytest.mark.parametrize(("text", "ks"), [("5,1, 3", [1, 3, 5]), ("3,3", [3]), (None, None)])
def test_ks_are_sorted_and_distinct(text, ks):
    assert parse_ks(text, top_k=5) == ks


@pytest.mark.parametrize("text", ["0", "101", "five", "1,,3", "", "1.5", "-1", "٣", "1e1"])
def test_a_k_outside_its_range_is_refused(text):
    with pytest.raises(UsageError, match="must be whole numbers from 1 to 100"):
        parse_ks(text, top_k=100)


def test_a_k_beyond_top_k_is_refused():
    with pytest.raises(UsageError, match="beyond top K = 5"):
        parse_ks("1,10", top_k=5)


@pytest.mark.parametrize("top_k", [0, 101, -3])
def test_a_top_k_outside_its_range_is_refused(top_k):
    with pytest.raises(UsageError, match="--top-k"):
        parse_ks(None, top_k=top_k)


def test_identities_by_label(tmp_path):
    file = tmp_path / "token"
    file.write_text("x", encoding="utf-8")
    assert parse_identities([f"finance={file}"]) == {"finance": file}


@pytest.mark.parametrize("pairs", [["finance"], ["=x"], ["a="], ["a=/no/such/file"]])
def test_a_wrong_identity_is_refused(pairs):
    with pytest.raises(UsageError, match="--identity"):
        parse_identities(pairs)


def test_a_label_given_twice_is_refused(tmp_path):
    file = tmp_path / "token"
    file.write_text("x", encoding="utf-8")
    with pytest.raises(UsageError, match="given twice"):
        parse_identities([f"a={file}", f"a={file}"])


ROWS = [{"metric": "recall@5", "value": 0.5}, {"metric": "退款\x1b[31m", "value": float("nan")}]


def test_unknown_is_null_in_json_and_empty_in_csv_and_a_dash_in_a_table(capsys):
    print_rows(ROWS, Format.json)
    assert json.loads(capsys.readouterr().out)[1]["value"] is None
    print_rows(ROWS, Format.csv)
    assert capsys.readouterr().out.splitlines()[2].endswith(",")
    print_rows([{"a": "=cmd|' /C calc'!A0", "b": "\x1b[31m\u202e"}], Format.csv)
    assert capsys.readouterr().out == "a,b\n'=cmd|' /C calc'!A0,⟨U+001B⟩[31m⟨U+202E⟩\n"
    print_rows([{"a": "\t=1+1"}], Format.csv)
    assert capsys.readouterr().out == "a\n'\t=1+1\n"
    print_rows(ROWS, Format.table)
    table = capsys.readouterr().out
    assert table.splitlines()[2].split() == ["退款", "–"]
    assert "\x1b" not in table
