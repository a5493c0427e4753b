"""From the text of an input to arguments: JSON, nearly JSON, or a bare text."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from voice_agent.llm.protocol import ToolSpec
from voice_agent.llm.tagged_input import arguments_json, looks_whole, matched


def tool(*parameters: str, name: str = "look") -> ToolSpec:
    return ToolSpec(name, "Look.", {"type": "object", "properties": {p: {"type": "string"} for p in parameters}})


ONE, TWO, NONE = tool("a"), tool("a", "b"), tool()


@pytest.mark.parametrize(
    ("given_text", "spec", "arguments"),
    [
        pytest.param('{"a": {"b": [1]}}', ONE, {"a": {"b": [1]}}, id="nested objects stay nested"),
        pytest.param('{"a": "{\\"b\\": 1}"}', ONE, {"a": '{"b": 1}'}, id="JSON in a string is not decoded twice"),
        pytest.param("[1, 2]", ONE, {"a": [1, 2]}, id="a list for the only parameter"),
        pytest.param("[1, 2]", TWO, [1, 2], id="a list for two parameters is left for the refusal"),
        pytest.param('"x"', ONE, {"a": "x"}, id="a JSON string"),
        pytest.param("5", ONE, {"a": 5}, id="a number"),
        pytest.param('{"a": "5"}', ONE, {"a": "5"}, id="a number as text stays text"),
        pytest.param("true", ONE, {"a": True}, id="a boolean"),
        pytest.param("null", ONE, {"a": None}, id="null"),
        pytest.param("what is it", ONE, {"a": "what is it"}, id="a bare text for the only parameter"),
        pytest.param("what is it", TWO, "what is it", id="a bare text for two parameters is left for the refusal"),
        pytest.param('{"a": 1,}', ONE, {"a": 1}, id="a trailing comma"),
        pytest.param('{"a": true, "b": [1, ],}', TWO, {"a": True, "b": [1]}, id="trailing commas, JSON words"),
        pytest.param('{"a": "x,}"}', ONE, {"a": "x,}"}, id="a comma in a string stays"),
        pytest.param("{'a': 'it is', 'b': None}", TWO, {"a": "it is", "b": None}, id="single quotes"),
        pytest.param('```json\n{"a": 1}\n```', ONE, {"a": 1}, id="a fence"),
        pytest.param("```\nhello\n```", ONE, {"a": "hello"}, id="a fence around a text"),
        pytest.param('{"a": 1, "a": 2}', ONE, {"a": 2}, id="of two keys the last"),
        pytest.param('{"a": "grüß 你好 🐱"}', ONE, {"a": "grüß 你好 🐱"}, id="unicode"),
        pytest.param("{broken", ONE, {"a": "{broken"}, id="no JSON is a text"),
        pytest.param("{broken", TWO, "{broken", id="no JSON for two parameters is left for the refusal"),
        pytest.param("{1, 2}", TWO, "{1, 2}", id="what JSON has no form for is a text"),
        pytest.param('{"a": NaN, "b": 1}', TWO, '{"a": NaN, "b": 1}', id="NaN is no JSON"),
        pytest.param('{"a": 1e999, "b": 1}', TWO, '{"a": 1e999, "b": 1}', id="neither is what becomes infinite"),
        pytest.param("Infinity", ONE, {"a": "Infinity"}, id="but it is a name"),
        pytest.param(None, NONE, {}, id="no input for no parameters"),
        pytest.param(None, TWO, {}, id="no input: what is missing is named by the refusal"),
        pytest.param("", ONE, {}, id="an empty input is none"),
        pytest.param("none", NONE, {}, id="an input that nobody takes is dropped"),
    ],
)
def test_an_input_becomes_arguments(given_text: str | None, spec: ToolSpec, arguments: object) -> None:
    assert json.loads(arguments_json(given_text, spec)) == arguments


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=10,
)


@settings(max_examples=200, deadline=None)
@given(st.dictionaries(st.text(), JSON, max_size=4))
def test_objects_come_through_unchanged(value: dict[str, object]) -> None:
    assert json.loads(arguments_json(json.dumps(value), TWO)) == value
    assert looks_whole(json.dumps(value))


@settings(max_examples=300, deadline=None)
@given(st.text() | st.text(alphabet="{}[]()'\"\\,:-0 1e5nul`\n", max_size=60), st.sampled_from([NONE, ONE, TWO, None]))
def test_any_text_gives_json(text: str, spec: ToolSpec | None) -> None:
    json.loads(arguments_json(text, spec))
    looks_whole(text)


@pytest.mark.parametrize(
    "text", ["[" * 50_000, "(" * 15_000, '{"a":' * 15_000, "-" * 15_000, "{'a': " + "-" * 15_000 + "1}"]
)
def test_deep_nesting_is_a_text(text: str) -> None:
    assert json.loads(arguments_json(text, ONE)) == {"a": text}


@pytest.mark.parametrize("name", ["look", " Look ", "`look`", '"look"', "look()", "LOOK( )"])
def test_a_tool_is_found_by_what_models_make_of_its_name(name: str) -> None:
    assert matched(name, [ONE, tool(name="other")]) is ONE


@pytest.mark.parametrize("name", ["", "loo", "looks", "look other", "book"])
def test_a_name_that_is_not_the_tools_finds_none(name: str) -> None:
    assert matched(name, [ONE, tool(name="other")]) is None


def test_a_name_that_could_mean_two_finds_none() -> None:
    assert matched("LOOK", [tool(name="look"), tool(name="Look")]) is None
