from __future__ import annotations

from urllib.parse import quote

import pytest

from ragwb.errors import UsageError
from ragwb.secrets import Secrets, key_from_environment

TOKEN = "AbC/dEf/123456+xyz=="
ESCAPED = "".join(f"\\u{ord(char):04x}" for char in TOKEN)


def secrets(*tokens: str) -> Secrets:
    found = Secrets()
    for token in tokens:
        found.add(token)
    return found


@pytest.mark.parametrize(
    "spelling", [TOKEN, ESCAPED, TOKEN.replace("/", "\\/"), TOKEN.lower(), quote(TOKEN, safe="")]
)
@pytest.mark.parametrize("body", ['{"a":{"b":["x %s"]}}', '{"%s":1}', '"%s"'])
def test_no_spelling_of_a_token_is_left_in_a_reply(spelling: str, body: str) -> None:
    clean = secrets(TOKEN).scrub_body((body % spelling).encode())
    assert clean.decode() == body % "[token]"


@pytest.mark.parametrize("spelling", [TOKEN, TOKEN.lower()])
def test_a_body_that_is_no_json_is_scrubbed_too(spelling: str) -> None:
    body = b"no \xff JSON: " + spelling.encode()
    assert secrets(TOKEN).scrub_body(body) == b"no \xff JSON: [token]"


def test_a_body_without_a_token_is_left_byte_for_byte() -> None:
    body = b'{ "a": 1.0,  "b": "\\u4e00" }'
    assert secrets(TOKEN).scrub_body(body) == body


def test_a_token_that_begins_another_leaves_no_rest() -> None:
    assert secrets("token-123", "token-123456").scrub("token-123456 token-123") == "[token] [token]"


def test_a_token_too_short_to_be_told_from_text_is_left() -> None:
    assert secrets("one").scrub("one") == "one"


def test_a_key_given_for_its_name_is_not_repeated():
    with pytest.raises(UsageError) as told:
        key_from_environment("sk-live-0123456789")
    assert "sk-live" not in str(told.value)


def test_a_variable_without_a_key_is_named():
    with pytest.raises(UsageError, match="NO_SUCH_KEY holds no key"):
        key_from_environment("NO_SUCH_KEY")
