"""Responses and steps say how their wording is to be delivered; what is to be known whole reaches the model."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.dialogue.test_loader import problems as problems_of
from tests.fakes.model import ScriptedModel
from tests.support.dialogue_projects import block, caller, skill
from voice_agent.dialogue.reply import HeardReply, Say

NOTICE = {
    "skills/talk/skill.md": skill("Chat."),
    "skills/default_session_start/skill.md": skill(
        block("- action: utter_notice\n- action: utter_plain\n  interruptible: false\n  record: full"),
        routing="{engine_managed: true}",
    ),
    "responses.yml": """
        responses:
          utter_notice:
            - text: This call is recorded.
              interruptible: false
              while_uninterruptible: discard
          utter_plain: Hello.
        """,
}


def _says(items: list[object]) -> list[tuple[str, bool, str, str]]:
    return [(i.text, i.interruptible, i.while_uninterruptible, i.record) for i in items if isinstance(i, Say)]


async def test_the_response_says_how_and_a_step_may_say_otherwise(tmp_path: Path) -> None:
    bench = caller(tmp_path, NOTICE)
    said = await bench.connects()
    assert _says(list(said.sink.items)) == [
        ("This call is recorded.", False, "discard", "heard"),
        ("Hello.", False, "keep", "full"),
    ]


@pytest.mark.parametrize(
    ("heard", "known"),
    [
        (HeardReply("Your table", " is booked.", "Your table is booked."), "Your table is booked."),
        (HeardReply("", "Your table is booked.", "Your table is booked."), "Your table is booked."),
        (HeardReply("Your table", " is booked."), "Your table"),
    ],
)
async def test_what_is_to_be_known_whole_is_in_the_next_prompt_and_the_tracker_tells_the_truth(
    tmp_path: Path, heard: HeardReply, known: str
) -> None:
    model = ScriptedModel(["Your table is booked.", "A taxi, then."])
    bench = caller(tmp_path, {"skills/talk/skill.md": skill("Chat.")}, model=model)
    await bench.connects()
    await bench.says("a table please", heard=heard)
    (record,) = bench.events("bot") or bench.events("reply_unheard")
    assert record["text"] == (heard.heard or heard.unheard)
    await bench.says("and a taxi")
    messages = [m.content for m in model.requests[-1].messages if m.role == "assistant"]
    assert messages == [known]


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        ("interruptible: false, while_uninterruptible: discrad", "responses.delivery"),
        ("record: all", "responses.delivery"),
        ("while_uninterruptible: discard", "responses.delivery_unused"),
    ],
)
def test_what_cannot_be_is_told_with_its_line(tmp_path: Path, keys: str, problem: str) -> None:
    responses = f"responses:\n  utter_x:\n    - {{text: Hello., {keys}}}\n"
    problems = problems_of(tmp_path, {"skills/talk/skill.md": skill("Chat."), "responses.yml": responses})
    found = [p for p in problems if p.id == problem]
    assert found and found[0].line == 3
