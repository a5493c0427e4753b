"""The drawing on the page about turn-taking shows the transitions of the floor, all of them and no others."""

from __future__ import annotations

import re
from pathlib import Path

from voice_agent.call.floor import TRANSITIONS, Event, State
from voice_agent.config import TurnTaking

PAGE = Path(__file__).parents[2] / "docs" / "turn-taking.md"
_ARROW = re.compile(r"^\s+(\w+) --> (\w+): ([a-z ]+?)(?: / ([a-z]+))?$", re.MULTILINE)

Arrow = tuple[str, str, str, str]


def _drawn() -> list[Arrow]:
    text = PAGE.read_text(encoding="utf-8")
    diagram = text[text.index("stateDiagram-v2") : text.index("```", text.index("stateDiagram-v2"))]
    return [(a, b, event, command or "") for a, b, event, command in _ARROW.findall(diagram)]


def _in_the_table() -> set[Arrow]:
    return {
        (state.value, to.value, event.value.replace("_", " "), " ".join(c.value for c in commands))
        for (state, event), (to, commands) in TRANSITIONS.items()
        if to is not state and event is not Event.ENDED
    }


def test_every_transition_is_drawn_once_and_nothing_else_is() -> None:
    drawn = [arrow for arrow in _drawn() if arrow[2] != "ended"]
    assert len(drawn) == len(set(drawn))
    assert set(drawn) == _in_the_table()


def test_the_end_leads_from_everywhere_to_closed() -> None:
    assert [arrow for arrow in _drawn() if arrow[2] == "ended"] == [("leaving", "closed", "ended", "")]
    assert all(TRANSITIONS[state, Event.ENDED][0] is State.CLOSED for state in State)
    assert "`ended` leads from every state to `closed`" in PAGE.read_text(encoding="utf-8")


def test_every_state_is_explained() -> None:
    text = PAGE.read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \|", text[: text.index("## Transitions")], re.MULTILINE)
    assert rows == [state.value for state in State]


def test_the_options_that_the_page_names_exist() -> None:
    named = set(re.findall(r"`([a-z]+(?:_[a-z]+)*_(?:ms|s))\b", PAGE.read_text(encoding="utf-8")))
    assert named and named <= set(TurnTaking.model_fields)
