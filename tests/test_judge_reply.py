"""What a judge says is one verdict, or none at all."""

import pytest
from judge_data import rubric

from ragwb.judge.reply import read_reply

GOOD = '{"rationale": "为什么", "good": 2}'


@pytest.fixture
def given(tmp_path):
    return rubric(tmp_path)


@pytest.mark.parametrize(
    "text",
    [
        GOOD,
        f"  {GOOD}\n",
        f"```json\n{GOOD}\n```",
        f"```\n{GOOD}\n```\n",
        f'<think>{{"good": 3}} or so</think>\n{GOOD}',
        '{"rationale": "为什么", "good": 2.0}',
    ],
)
def test_a_verdict_and_its_wrapping(given, text):
    scored = read_reply(text, given)
    assert scored.scores == {"good": 2}
    assert type(scored.scores["good"]) is int
    assert scored.rationale == "为什么"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "said nothing"),
        ("   ", "said nothing"),
        ("Good answer!", "not JSON"),
        ('{"rationale": "", "good": ', "cut off"),
        (f"```json\n{GOOD}", "not JSON"),
        (f"{GOOD} Hope this helps.", "words after the verdict"),
        (f"{GOOD}{GOOD}", "words after the verdict"),
        (f"Sure: {GOOD}", "not JSON"),
        ("[2]", "not an object"),
        ("2", "not an object"),
        ('{"rationale": ""}', "no good"),
        ('{"rationale": "", "good": 9}', "good is 9, not on the scale 1, 2, 3"),
        ('{"rationale": "", "good": 0}', "not on the scale"),
        ('{"rationale": "", "good": -2}', "not on the scale"),
        ('{"rationale": "", "good": 2.5}', "not on the scale"),
        ('{"rationale": "", "good": "2"}', "not on the scale"),
        ('{"rationale": "", "good": null}', "not on the scale"),
        ('{"rationale": "", "good": true}', "not on the scale"),
        ('{"rationale": "", "good": [2]}', "not on the scale"),
        ('{"rationale": "", "good": NaN}', "no number of JSON"),
        ('{"rationale": "", "good": 1e400}', "a number beyond 1e308"),
        (f'{{"rationale": "", "good": 1{"0" * 400}}}', "a number beyond 1e308"),
        (f'{{"rationale": "", "good": 1{"0" * 5000}}}', "a number beyond 1e308"),
        (f'{{"rationale": "", "good": 1{"0" * 300}}}', "not on the scale"),
        ('{"rationale": "", "good": Infinity}', "no number of JSON"),
        ('{"rationale": "\\ud800", "good": 2}', "half a character"),
        ('{"good": 2}', "schema says"),
        ('{"rationale": 3, "good": 2}', "schema says"),
        ('{"rationale": "", "good": 2, "bonus": 1}', "schema says"),
        ('{"rationale": "", "good": 1, "good": 3}', "twice"),
        ("[" * 100_000, "nested|not JSON"),
    ],
)
def test_what_is_not_one_verdict_is_none(given, text, said):
    with pytest.raises(ValueError, match=said) as caught:
        read_reply(text, given)
    assert "\n" not in str(caught.value)
