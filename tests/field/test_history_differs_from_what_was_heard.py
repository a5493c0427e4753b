"""After an interruption the history held words nobody had heard, held them twice, or held them after the caller's.

Right: what was heard is recorded once per turn, nothing if nothing was heard, and before the words
that followed it.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.support.dialogue_projects import Caller, caller, skill
from tests.support.virtual_time import virtual_time
from voice_agent.dialogue.cancellation import CancelReason, CancelToken
from voice_agent.dialogue.reply import HeardReply, TurnStatus

FILES = {"skills/talk/skill.md": skill("Chat.")}
LONG = ["One two three ", 1.0, "four five six."]


async def barge_in(bench: Caller, reply: HeardReply) -> None:
    token = CancelToken()
    async with asyncio.TaskGroup() as group:
        turn = group.create_task(bench.says("count", cancel=token, commit=False))
        await asyncio.sleep(0.5)
        token.cancel(CancelReason.BARGE_IN)
        bench.conversation.commit_reply("t0", reply)
    assert turn.result().result.status is TurnStatus.CANCELLED


@virtual_time
async def test_a_reply_cut_before_anything_was_heard_leaves_no_message(tmp_path: Path) -> None:
    bench = caller(tmp_path, FILES, [LONG, "Yes?"])
    await barge_in(bench, HeardReply("", "One two three"))
    await bench.says("stop")
    assert [(m.role, m.content) for m in bench.model.requests[1].messages[1:]] == [("user", "count"), ("user", "stop")]


@virtual_time
async def test_a_reply_committed_twice_is_recorded_once(tmp_path: Path) -> None:
    bench = caller(tmp_path, FILES, [LONG, "Yes?"])
    await barge_in(bench, HeardReply("One two", "three"))
    bench.conversation.commit_reply("t0", HeardReply("One two three"))
    bench.conversation.commit_reply("t0", HeardReply("One two three four five six."))
    assert [(e["text"], e["interrupted"]) for e in bench.events("bot")] == [("One two", True)]


@virtual_time
async def test_the_interrupted_reply_stands_before_the_words_that_interrupted_it(tmp_path: Path) -> None:
    bench = caller(tmp_path, FILES, [LONG, "Yes?"])
    await barge_in(bench, HeardReply("One", "two three"))
    await bench.says("stop")
    said = [(m.role, m.content) for m in bench.model.requests[1].messages[1:]]
    assert said == [("user", "count"), ("assistant", "One"), ("user", "stop")]
