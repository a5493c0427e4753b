from __future__ import annotations

import gc
from pathlib import Path

import pytest

from tests.support.dialogue_projects import caller, skill
from voice_agent.dialogue.fields import Field
from voice_agent.dialogue.memory import PROJECT, Schema
from voice_agent.dialogue.seeds import BadMetadata, read_metadata

SCHEMA = Schema(
    [
        Field(PROJECT, "tier", "categorical", enum_values=("gold", "plain"), seed=True),
        Field(PROJECT, "age", "int", seed=True),
        Field(PROJECT, "verified", "bool"),
        Field("billing", "amount", "float"),
    ]
)
FILES = {
    "memory.yml": "tier: {type: text, seed: true}\nverified: {type: bool}\n",
    "skills/help/skill.md": skill("Help the caller."),
}


def test_metadata_becomes_values_of_the_fields_types() -> None:
    given = {"tier": "GOLD", "age": "41", "user_id": "ann", "environment": "test"}
    assert read_metadata(SCHEMA, given) == {"tier": "gold", "age": 41, "user_id": "ann", "environment": "test"}
    assert read_metadata(SCHEMA, {}) == {}


@pytest.mark.parametrize(
    ("given", "tells"),
    [
        ({"teir": "gold"}, "'teir' is no field of the project's memory.yml"),
        ({"verified": True}, "'verified' is declared without `seed: true`"),
        ({"amount": 5}, "'amount' is no field"),
        ({"tier": "silver"}, "tier takes one of gold, plain."),
        ({"age": "old"}, "age takes int."),
        ({"user_id": 7}, "user_id must be a text"),
        ({"user_id": ""}, "user_id must be a text"),
        ({"user_id": "a\nb"}, "user_id must be a text"),
        ({"user_id": "x" * 201}, "1 to 200"),
        ({"bad": 1, "age": 5, "worse": 2}, "'worse'"),
    ],
)
def test_what_cannot_be_used_is_named_with_what_would_be_right(given: dict[str, object], tells: str) -> None:
    with pytest.raises(BadMetadata) as fault:
        read_metadata(SCHEMA, given)
    assert tells in str(fault.value)
    assert str(fault.value).endswith("Metadata may have: age, tier, user_id, environment.")
    assert "silver" not in str(fault.value), "values stay out of messages, which are logged"


async def test_a_new_session_on_a_live_conversation_begins_with_new_metadata(tmp_path: Path) -> None:
    bench = caller(tmp_path, FILES, ["One.", "Two."], metadata={"tier": "gold", "user_id": "ann"})
    await bench.says("hello")
    assert bench.conversation.state.memory.read(PROJECT, "tier") == "gold"
    bench.agent.open("c1", channel="text", metadata={"tier": "plain", "user_id": "ann"})
    assert bench.conversation.state.memory.read(PROJECT, "tier") == "gold", "the session goes on with what it has"
    await bench.conversation.close("completed")
    await bench.says("hello again")
    assert bench.conversation.state.memory.read(PROJECT, "tier") == "plain"


async def test_a_caller_stays_known_on_a_channel_that_cannot_tell_who_they_are(tmp_path: Path) -> None:
    bench = caller(tmp_path, FILES, ["One.", "Two."], metadata={"user_id": "ann"})
    await bench.says("hello")
    bench.conversation = None  # type: ignore[assignment]
    gc.collect()
    bench.conversation = bench.agent.open("c1", channel="text")
    await bench.says("me again")
    assert {event["user_id"] for event in bench.conversation.events} == {"ann"}
