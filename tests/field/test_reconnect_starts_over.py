"""A reconnect greeted again, and a "goodbye" in the replayed history made the agent hang up.

Right: a caller who comes back soon finds the conversation where it was, ungreeted; what was once said
or done is history, and history is never done again.
"""

from __future__ import annotations

from pathlib import Path

from tests.fakes.model import tool_call
from tests.support.dialogue_projects import Caller, block, caller, skill
from voice_agent.dialogue.reply import SESSION_START
from voice_agent.store import MemoryStore

FILES = {
    "skills/default_session_start/skill.md": skill(block("- action: utter_greet"), routing="{engine_managed: true}"),
    "skills/talk/skill.md": skill("Talk.", description="Talk."),
    "responses.yml": "responses: {utter_greet: Hello.}\n",
}


def another_process(root: Path, first: Caller, store: MemoryStore, script: list[object]) -> Caller:
    bench = caller(root, FILES, script, store=store)  # type: ignore[arg-type]
    bench.calendar.now = first.calendar.now
    bench._turns = iter(range(100, 200))
    return bench


async def test_a_dropped_caller_is_not_greeted_again_even_by_another_process(tmp_path: Path) -> None:
    store = MemoryStore()
    bench = caller(tmp_path, FILES, [tool_call("start_skill", skill="talk"), "Go on."], store=store)
    assert (await bench.connects()).messages == ["Hello."]
    await bench.says("hi")
    await bench.conversation.close("dropped")
    bench.calendar.advance(seconds=3)
    again = another_process(tmp_path, bench, store, ["Where were we?"])
    assert (await again.says(SESSION_START)).messages == []
    assert (await again.says("me again")).messages == ["Where were we?"]
    assert again.stack == ["talk"]
    assert len(again.events("session_started")) == 1


async def test_a_goodbye_in_the_history_ends_nothing(tmp_path: Path) -> None:
    store = MemoryStore()
    bench = caller(tmp_path, FILES, [tool_call("hangup")], store=store)
    await bench.connects()
    said = await bench.says("goodbye")
    assert said.sink.hung_up
    await bench.conversation.close("dropped")
    bench.calendar.advance(seconds=3)
    again = another_process(tmp_path, bench, store, [])
    assert not (await again.says(SESSION_START)).sink.hung_up
    again.model._then = "Yes?"
    said = await again.says("one more thing")
    assert (said.messages, said.sink.hung_up) == (["Yes?"], False)
