"""A greeting set for one call, or by the project, was ignored and the default was said.

Right: what is nearest wins: the session-start skill's own wording, then the project's, then the
packaged; and what is known of this call chooses between variants.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.dialogue_projects import block, caller, skill

START = skill(block("- action: utter_greet"), routing="{engine_managed: true}")
FILES = {
    "skills/default_session_start/skill.md": START,
    "responses.yml": "responses: {utter_greet: Hello from the project., utter_hangup_goodbye: So long.}\n",
    "memory.yml": "customer: {type: text, seed: true}\n",
}
OWN = {
    "skills/default_session_start/responses.yml": """
        responses:
          utter_greet:
            - condition: session.project.customer
              text: "Welcome back, {customer}."
            - condition: session.project.customer == "Bob"
              text: "Never said."
            - text: "Only for readers."
              channel: rest
            - text: Hello from the skill.
        """
}


async def test_without_a_wording_of_its_own_the_projects_is_said(tmp_path: Path) -> None:
    assert (await caller(tmp_path, FILES).connects()).messages == ["Hello from the project."]


@pytest.mark.parametrize(
    ("metadata", "channel", "greeting"),
    [
        ({}, "websocket", "Hello from the skill."),
        ({"customer": "Ann"}, "websocket", "Welcome back, Ann."),
        ({"customer": "Bob"}, "rest", "Welcome back, Bob."),
        ({}, "rest", "Only for readers."),
        ({"other": "x"}, "websocket", "Hello from the skill."),
    ],
)
async def test_the_nearest_wording_that_fits_this_call_is_said(
    tmp_path: Path, metadata: dict[str, str], channel: str, greeting: str
) -> None:
    bench = caller(tmp_path, {**FILES, **OWN}, metadata=metadata, channel=channel)
    assert (await bench.connects()).messages == [greeting]


async def test_packaged_wording_is_replaced_by_the_projects(tmp_path: Path) -> None:
    bench = caller(tmp_path, FILES)
    assert bench.conversation.line("utter_hangup_goodbye") == "So long."
