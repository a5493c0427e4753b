"""Personal data stands nowhere in what is shown, however it was written or said."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voice_agent.inspector.redaction import REDACTED, WITHHELD, Redactor, redacted, redactor_for

FIELDS = frozenset({("balance", "account_number"), ("project", "name")})
WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")


def _set(key: str, value: Any, namespace: str = "balance", **more: Any) -> dict[str, Any]:
    payload = {"namespace": namespace, "key": key, "value_json": json.dumps(value), "source": "model", **more}
    return {"memory_set": payload}


@pytest.mark.parametrize(
    "text",
    [
        "it is 471182", "it is 4711-82.", "it is 4 7 1 1 8 2", "it is four seven one one eight two",
        "it is four, seven. one one eight two", "it is Four Seven double one eight two", "it is 47 11 82 thank you",
        "it is four seven one 1 eight 2",
    ],
)  # fmt: skip
def test_digits_are_found_however_they_are_grouped_or_said(text: str) -> None:
    shown = Redactor(["471182"]).text(text)
    assert shown.startswith(f"it is {REDACTED}")
    assert not any(c.isdigit() for c in shown)


@pytest.mark.parametrize("text", ["call 1471182", "4711820 of them", "eighty-four", "471 people", "order 471-183"])
def test_other_numbers_stay(text: str) -> None:
    assert Redactor(["471182"]).text(text) == text


@pytest.mark.parametrize("spoken", ["triple seven one", "seven seven seven one", "double seven seven one", "777 1"])
def test_digits_that_are_said_as_repeated_are_found(spoken: str) -> None:
    assert Redactor([7771]).text(f"so {spoken}, yes") == f"so {REDACTED}, yes"


def test_names_are_found_in_any_case_and_spacing_and_not_inside_other_words() -> None:
    redactor = Redactor(["Ann Lee"])
    assert redactor.text("I am ANN  lee; Joann Leeds is not") == f"I am {REDACTED}; Joann Leeds is not"


def test_values_too_short_or_too_common_are_not_looked_for_in_text() -> None:
    assert Redactor(["7", True, None, "no", ""]).text("no, 7 is true, none of it") == "no, 7 is true, none of it"


@pytest.mark.parametrize("text", ["$1042.50", "$1,042.50", "1042.5 dollars", '{"amount": 1042.5}'])
def test_an_amount_is_found_with_and_without_its_last_zero(text: str) -> None:
    shown = Redactor([1042.5]).text(text)
    assert REDACTED in shown and not any(c.isdigit() for c in shown)


@pytest.mark.parametrize("text", ["$1200.00", "1,200 dollars", "1200", "1200.0"])
def test_a_whole_number_is_found_however_its_fraction_is_written(text: str) -> None:
    redactor = Redactor([1200.0])
    assert REDACTED in redactor.text(text) and "12" not in redactor.text(text)
    assert redactor.value({"amount": 1200}) == {"amount": REDACTED}


def test_values_within_lists_and_mappings_are_found() -> None:
    assert Redactor([{"card": ["4000-1234", {"pin": 9876}]}]).text("4000 1234 and 9876") == f"{REDACTED} and {REDACTED}"


def test_json_in_records_stays_json_and_loses_numbers_as_well() -> None:
    result = {"account": 471182, "list": ["471182"], "balance": 5, "ok": True}
    record = {"tool_executed": {"tool": "get", "turn_id": "t", "result_json": json.dumps(result)}}
    (shown,) = redacted([record], frozenset(), Redactor(["471182"]))
    told = json.loads(shown["tool_executed"]["result_json"])
    assert told == {"account": REDACTED, "list": [REDACTED], "balance": 5, "ok": True}


def test_the_value_of_a_marked_field_is_taken_out_wherever_it_stands() -> None:
    records = [
        {"sequence": 0, "user": {"turn_id": "t", "text": "four seven one one eight two"}},
        {"sequence": 1, **_set("account_number", "471182", turn_id="t")},
        {"sequence": 2, "tool_executed": {"turn_id": "t", "arguments_json": '{"account_number": "99"}'}},
        {"sequence": 3, "turn_finished": {"turn_id": "t"}},
        {"sequence": 4, "bot": {"turn_id": "t", "text": "Account 471182.", "unheard": "That is 4711 82."}},
    ]
    shown = redacted(records, FIELDS)
    assert shown[0]["user"]["text"] == REDACTED
    assert json.loads(shown[1]["memory_set"]["value_json"]) == REDACTED
    # A value that was refused is personal all the same: its name says so.
    assert json.loads(shown[2]["tool_executed"]["arguments_json"]) == {"account_number": REDACTED}
    assert shown[4]["bot"] == {"turn_id": "t", "text": f"Account {REDACTED}.", "unheard": f"That is {REDACTED}."}
    assert records[0]["user"]["text"] == "four seven one one eight two"  # type: ignore[index]


def test_a_field_that_was_marked_when_it_was_written_stays_personal_though_the_project_has_changed() -> None:
    records = [{"sequence": 0, **_set("pin", "8642", pii=True)}, {"sequence": 1, "bot": {"text": "Your PIN is 8642."}}]
    shown = redacted(records, frozenset())
    assert "8642" not in json.dumps(shown)


def test_what_is_said_in_a_running_turn_is_withheld_where_there_is_personal_data() -> None:
    running = [{"sequence": 0, "user": {"turn_id": "t", "text": "471182", "kind": "speech"}}]
    assert redacted(running, FIELDS)[0]["user"] == {"turn_id": "t", "text": WITHHELD, "kind": "speech"}
    assert redacted(running, frozenset())[0]["user"]["text"] == "471182"
    ended = [*running, {"sequence": 1, "turn_finished": {"turn_id": "t"}}]
    assert redacted(ended, FIELDS)[0]["user"]["text"] == "471182"


def test_old_flat_records_are_redacted_too() -> None:
    flat = {"event": "memory_set", "namespace": "balance", "key": "account_number", "value_json": '"471182"'}
    assert "471182" not in json.dumps(redacted([flat, {"event": "bot", "text": "471182"}], FIELDS))


@given(
    st.text("0123456789", min_size=3, max_size=12),
    st.lists(st.sampled_from(["digit", "word", "oh"]), min_size=12, max_size=12),
    st.lists(st.sampled_from([" ", ", ", "-", ". "]), min_size=12, max_size=12),
)
def test_no_digit_survives_in_any_mix_of_digits_and_words(number: str, forms: list[str], gaps: list[str]) -> None:
    said = ""
    for digit, form, gap in zip(number, forms, gaps, strict=False):
        word = "oh" if form == "oh" and digit == "0" else WORDS[int(digit)]
        said += (digit if form == "digit" else word) + gap
    text = f"well {said}indeed"
    assert Redactor([number]).text(text).startswith(f"well {REDACTED}")


@given(st.text(min_size=3, max_size=30), st.text(max_size=40), st.text(max_size=40))
def test_any_text_is_found_between_blanks_and_nothing_raises(value: str, before: str, after: str) -> None:
    redactor = redactor_for([_set("account_number", value)], FIELDS)
    words = " ".join(value.split())
    shown = redactor.text(f"{before} {words} {after}")
    if sum(map(str.isalnum, words)) >= 3:
        assert REDACTED in shown
