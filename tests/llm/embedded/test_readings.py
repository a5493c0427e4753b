"""Tool results as something that can be said."""

from __future__ import annotations

import json
from typing import Any

import pytest

from voice_agent.llm.embedded.readings import FAILED, MAX_CHARS, read_result


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ({"message": "Your balance is 42 dollars"}, "Your balance is 42 dollars."),
        ({"ok": True, "say": "Done!", "balance": 1}, "Done!"),
        ({"balance": 42.5}, "Balance: 42.5."),
        ({"ok": True, "due_date": "5 March", "paid": False, "_id": 7, "note": None}, "Due date: 5 March. Paid: no."),
        ({"account": {"owner": "Anna", "limits": {"deep": 1}}}, "Account owner: Anna."),
        ({"plans": ["small", "large"]}, "Plans: small, large."),
        ({"slots": list("abcdefgh")}, "Slots: a, b, c, d, e, f, and 2 more."),
        (["one", "two"], "one, two."),
        (42, "42."),
        ({}, ""),
        ({"ok": True}, ""),
        (None, ""),
    ],
)
def test_a_result_is_said_in_its_own_words_or_read_plainly(data: Any, text: str) -> None:
    reading = read_result(json.dumps(data))
    assert reading.text == text
    assert reading.ok


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ({"ok": False, "message": "There is no such account"}, "There is no such account."),
        ({"ok": False, "error": "policy_not_found", "hint": "ask"}, "I am sorry, that did not work: policy not found."),
        ({"error": "The account is locked."}, "I am sorry, that did not work: The account is locked."),
        ({"error": "KeyError: 'balance'"}, FAILED),
        ({"error": "Traceback (most recent call last)"}, FAILED),
        ({"ok": False}, FAILED),
        ({"ok": False, "message": "HTTP 500 at line 3"}, FAILED),
    ],
)
def test_a_failure_is_told_without_the_language_of_programs(data: Any, text: str) -> None:
    reading = read_result(json.dumps(data))
    assert reading.text == text
    assert not reading.ok


def test_a_result_that_is_no_json_is_read_as_text_and_a_huge_one_is_cut() -> None:
    assert read_result("All good").text == "All good."
    assert len(read_result("word " * 5000).text) <= MAX_CHARS + 1
    assert read_result("ValueError: x").text == FAILED
