"""A rubric is read whole or refused with every fault."""

import json

import pytest
from judge_data import rubric, rubric_file

from ragwb.errors import DataError
from ragwb.judge.reply import read_reply
from ragwb.judge.rubric import default_rubric, load_rubric
from ragwb.judge.schema import schema_of
from ragwb.settings import shared_file


@pytest.mark.parametrize("kind", ["answer", "support", "pair"])
def test_the_rubrics_that_come_with_ragwb_are_right(kind):
    found = default_rubric(kind)
    assert found.kind == kind
    assert {example.kind for example in found.examples} == {"positive", "negative"}
    assert set(found.output_schema["required"]) == {"rationale", *found.scales}
    assert shared_file("datasets", "judge", f"{kind}.toml").is_file()


def test_a_criterion_accepts_from_a_value_on(tmp_path):
    found = rubric(tmp_path)
    assert [found.accepts({"good": value}) for value in (1, 2, 3)] == [False, True, True]
    words = rubric(tmp_path, scale='["no", "partly", "yes"]', rest='accept_from = "yes"')
    assert [words.accepts({"good": v}) for v in ("no", "partly", "yes")] == [False, False, True]
    assert rubric(tmp_path, rest="").accepts({"good": 1})
    with pytest.raises(DataError, match="'maybe' is not on the scale of good"):
        words.accepts({"good": "maybe"})


def test_the_hash_is_of_the_content_and_not_of_its_writing(tmp_path):
    path = rubric_file(tmp_path)
    found = load_rubric(path)
    path.write_text("# a comment\n" + path.read_text(encoding="utf-8"), encoding="utf-8")
    assert load_rubric(path).hash == found.hash
    as_json = tmp_path / "r.json"
    criterion = {"name": "good", "question": "Is it good?", "scale": [1, 2, 3], "accept_from": 2}
    content = {"criteria": [criterion], "instructions": "Decide.", "name": "test", "version": "1"}
    as_json.write_text(json.dumps(content), encoding="utf-8")
    assert load_rubric(as_json).hash == found.hash
    content["output_schema"] = schema_of({"good": (1, 2, 3)}, "rationale")
    as_json.write_text(json.dumps(content), encoding="utf-8")
    assert load_rubric(as_json).hash == found.hash


@pytest.mark.parametrize(
    ("before", "after"),
    [("Decide.", "Decide!"), ("accept_from = 2", "accept_from = 3"), ("[1, 2, 3]", "[1, 2, 3, 4]")],
)
def test_any_other_word_is_another_rubric(tmp_path, before, after):
    path = rubric_file(tmp_path)
    found = load_rubric(path)
    path.write_text(path.read_text(encoding="utf-8").replace(before, after), encoding="utf-8")
    assert load_rubric(path).hash != found.hash


EXAMPLE = '[[examples]]\nkind = "positive"\nwhy = "w"\nverdict = {{ good = {value} }}\n{shown}'


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"scale": "[1]"}, "at least 2 items"),
        ({"scale": '[1, "a"]'}, "mixes numbers and words"),
        ({"scale": "[1, 1, 2]"}, "a value twice"),
        ({"scale": "[3, 2, 1]"}, "worst to the best"),
        ({"scale": "[true, false]"}, "valid integer"),
        ({"scale": f"[1, 1{'0' * 400}]", "rest": ""}, "a number beyond 2"),
        ({"rest": "accept_from = 9"}, "accept_from 9 is not on the scale"),
        ({"rest": 'meanings = { "9" = "x" }'}, "meaning of '9'"),
        ({"rest": "weight = 2"}, "weight: Extra inputs"),
        ({"kind": "pair"}, "same on both sides of 0"),
        ({"kind": "pair", "scale": '["a", "b"]', "rest": ""}, "compared by numbers"),
        ({"kind": "pair", "scale": "[-1, 0, 1]", "rest": "accept_from = 1"}, "leave accept_from"),
        ({"kind": "opinion"}, "Input should be"),
        ({"rest": EXAMPLE.format(value=9, shown='answer = "a"')}, "good 9 is not on the scale"),
        ({"rest": EXAMPLE.format(value=1, shown="")}, "no answer: there is nothing to judge"),
        ({"rest": EXAMPLE.format(value=1, shown='answer = "a"\nclaim = "c"')}, "claim is nothing"),
    ],
)
def test_a_broken_rubric_is_refused_in_a_line(tmp_path, given, said):
    with pytest.raises(DataError, match=said.replace("(", r"\(")) as caught:
        rubric(tmp_path, **given)
    assert str(tmp_path) in str(caught.value)
    assert "\n" not in str(caught.value)


SCHEMAS = [
    ("[output_schema]\ntype = 'list'", "no JSON schema"),
    ("[output_schema]\ntype = 'array'", "must describe an object"),
    ("[output_schema]\ntype = 'object'\n[output_schema.properties]", "does not require good"),
    (
        "[output_schema]\ntype = 'object'\nrequired = ['good']\n"
        "properties = { good = { enum = [1, 2] } }",
        "does not allow good to be 3",
    ),
    (
        "[output_schema]\ntype = 'object'\nrequired = ['good']\n"
        "properties = { good = { '$ref' = 'http://x.example/s.json' } }",
        "everything must stand in the file",
    ),
]


@pytest.mark.parametrize(("schema", "said"), SCHEMAS)
def test_a_broken_schema_is_refused(tmp_path, schema, said):
    with pytest.raises(DataError, match=said):
        rubric(tmp_path, rest=schema)


def with_schema(folder, *, rest="", **properties):
    """A rubric whose schema asks for `good`, and says so much more."""
    more = "".join(f", {name} = {said}" for name, said in properties.items())
    return rubric(
        folder,
        rest="[output_schema]\ntype = 'object'\nrequired = ['good']\n"
        f"properties = {{ good = {{ enum = [1, 2, 3] }}{more} }}\n{rest}",
    )


DOUBLING = "\n".join(
    f"[output_schema.'$defs'.a{at}]\n"
    f"allOf = [{{ '$ref' = '#/$defs/a{at + 1}' }}, {{ '$ref' = '#/$defs/a{at + 1}' }}]"
    for at in range(40)
)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"x": "{ pattern = '(a+)+$' }"}, "properties.x.pattern: a pattern may take longer"),
        ({"rest": "patternProperties = { '(a+)+$' = true }"}, "patternProperties: a pattern may"),
        ({"x": "{ items = { anyOf = [{ pattern = 'a' }] } }"}, "x.items.anyOf.0.pattern: a pat"),
        ({"x": "{ '$ref' = '#/$defs/a' }", "rest": "'$defs' = { a = { pattern = 'a' } }"},
         "$defs.a.pattern: a pattern may"),
        ({"x": "{ unevaluatedProperties = false }"}, "x.unevaluatedProperties: it tries every"),
        ({"x": "{ '$ref' = '#' }"}, "properties.x.$ref: refers to '#': everything must stand"),
        ({"x": "{ '$ref' = 'file:///etc/hosts' }"}, "properties.x.$ref: refers to 'file:///etc"),
        ({"x": "{ '$ref' = '#/properties/good' }"}, "under #/$defs/NAME"),
        ({"x": "{ '$ref' = '#/$defs/none' }"}, "refers to '#/$defs/none', which is not there"),
        ({"x": "{ '$ref' = 3 }"}, "properties.x.$ref: refers to '3'"),
        ({"x": "{ '$dynamicRef' = '#x' }"}, "$dynamicRef: a schema is named and referred to"),
        ({"rest": "'$id' = 'http://x.example/s'"}, "$id: a schema is named"),
        ({"x": "{ '$ref' = '#/$defs/a' }",
          "rest": "[output_schema.'$defs']\na = { not = { '$ref' = '#/$defs/b' } }\n"
                  "b = { '$ref' = '#/$defs/a' }"},
         "refers to '#/$defs/a', which refers to itself"),
        ({"x": "{ '$ref' = '#/$defs/a0' }", "rest": f"{DOUBLING}\n[output_schema.'$defs'.a40]"},
         "its references make more than 10,000 schemas"),
        ({"x": "{ default = 2026-01-01 }"}, "properties.x.default: JSON has no date"),
        ({"x": "{ enum = [2026-01-01T00:00:00Z] }"}, "properties.x.enum.0: JSON has no datetime"),
        ({"x": "{ maximum = nan }"}, "properties.x.maximum: no number of JSON"),
        ({"x": f"{{ maximum = 1{'0' * 400} }}"}, "properties.x.maximum: no number of JSON"),
        ({"rest": f"[output_schema.{'.'.join(['not'] * 4000)}]"}, "nested more than 32 levels"),
        ({"x": "3"}, "no JSON schema: properties.x: 3 is not of type"),
        ({"x": "{ type = 'strin' }"}, "no JSON schema: properties.x.type: 'strin'"),
        ({"rest": "'$schema' = 3"}, "no JSON schema: $schema: 3"),
        ({"good2": "true", "rest": "additionalProperties = 'no'"}, "no JSON schema: additionalPr"),
    ],
)  # fmt: skip
def test_a_schema_that_could_hang_or_is_none_is_refused_with_its_place(tmp_path, given, said):
    with pytest.raises(DataError) as caught:
        with_schema(tmp_path, **given)
    assert str(caught.value).startswith(f"{tmp_path / 'r.toml'}: output_schema: ")
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_what_is_legal_and_harmless_in_a_schema_works(tmp_path):
    found = with_schema(
        tmp_path,
        x="true",
        pattern="{ type = 'string' }",
        why="{ '$ref' = '#/$defs/why' }",
        rest="'$schema' = 'https://json-schema.org/draft/2020-12/schema'\n"
        "'$defs' = { why = { type = 'string', enum = ['a', 'pattern'] } }",
    )
    good = {"good": 2, "x": [1], "pattern": "p", "why": "a"}
    assert read_reply(json.dumps(good), found).scores == {"good": 2}
    with pytest.raises(ValueError, match="why: 'b' is not one of"):
        read_reply(json.dumps({**good, "why": "b"}), found)


def test_a_value_that_no_reply_may_give_is_named(tmp_path):
    schema = "[output_schema]\ntype = 'object'\nrequired = ['good']\nproperties = { good = false }"
    with pytest.raises(DataError, match="does not allow good to be 1"):
        rubric(tmp_path, rest=schema)
    assert rubric(tmp_path, rest=schema.replace("false", "true")).scales


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ('{"name": "\\ud800"}', "half a character"),
        ('{"name": "a", "name": "b"}', "a name stands twice"),
        ('{"name": NaN}', "NaN is no number"),
    ],
)
def test_json_that_says_two_things_or_none_is_no_rubric(tmp_path, content, said):
    path = tmp_path / "r.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(DataError, match=said) as caught:
        load_rubric(path)
    assert str(caught.value).startswith(str(path))


@pytest.mark.parametrize("content", [b"name = ", b"\xff\xfe", b"[]", b""])
def test_a_file_that_is_no_rubric_is_named(tmp_path, content):
    path = tmp_path / "r.toml"
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"r\.toml"):
        load_rubric(path)


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(DataError, match="No such file"):
        load_rubric(tmp_path / "none.toml")


def test_a_reserved_or_repeated_name_is_refused(tmp_path):
    path = rubric_file(tmp_path)
    text = path.read_text(encoding="utf-8")
    # A criterion has a column in a sheet, beside those of the material.
    for name in ("rationale", "comment", "claim", "item_id"):
        path.write_text(text.replace('"good"', f'"{name}"'), encoding="utf-8")
        with pytest.raises(DataError, match=f"criteria.{name}: a reserved name"):
            load_rubric(path)
    path.write_text(text + text[text.index("[[criteria]]") :], encoding="utf-8")
    with pytest.raises(DataError, match="named twice"):
        load_rubric(path)
