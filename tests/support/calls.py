"""Place a call in virtual time: a fake wire, scripted ears and voice, a scripted conversation, the real call."""

from __future__ import annotations

import asyncio
import gc
import weakref
from typing import Any

from tests.fakes.conversation import ScriptedConversation
from tests.fakes.voice import FakeVoice
from tests.fakes.wire import FakeDetector, FakeWire, ScriptedEars
from voice_agent.call.call import Call
from voice_agent.call.clock import MediaClock
from voice_agent.call.outcome import CallOutcome
from voice_agent.call.recorder import Recorder
from voice_agent.call.transfer import HoldAudio, ringing_tone
from voice_agent.config import TurnTaking
from voice_agent.speech.protocols import Recognizer, Voice

OPTIONS = TurnTaking(greeting_guard_s=0, silence_timeout_s=0)
"""Without greeting guard and silence prompt, so that a test about something else need not mind them."""


def make_call(
    wire: FakeWire,
    conversation: ScriptedConversation,
    clock: MediaClock,
    *,
    voice: Voice | None = None,
    recognizer: Recognizer | None = None,
    detector: Any = None,
    options: TurnTaking = OPTIONS,
    recorder: Recorder | None = None,
    call_id: str = "call",
    hold_audio: HoldAudio = ringing_tone,
) -> Call:
    """Return a call with fakes for whatever is not given."""
    return Call(
        call_id=call_id,
        conversation=conversation,
        wire=wire,
        voice=voice if voice is not None else FakeVoice(),
        recognizer=recognizer if recognizer is not None else ScriptedEars(wire),
        detector=detector or FakeDetector(),
        options=options,
        clock=clock,
        recorder=recorder,
        strict=True,
        hold_audio=hold_audio,
    )


async def place(
    wire: FakeWire,
    conversation: ScriptedConversation,
    *,
    calls: list[Call] | None = None,
    **parts: Any,
) -> CallOutcome:
    """Run one call to its end, and check that nothing of it is left. ``parts`` are those of `make_call`."""
    before = asyncio.all_tasks()
    async with MediaClock() as clock:
        call = make_call(wire, conversation, clock, **parts)
        if calls is not None:
            calls.append(call)
        outcome = await call.run()
        assert clock.subscribers == 0, "the call is still on the clock"
    assert conversation.parallel <= 1, "two turns ran at once"
    assert len(conversation.closed) == 1, "the conversation must be closed exactly once"
    assert asyncio.all_tasks() == before, "tasks were left behind"
    if calls is None:
        reference = weakref.ref(call)
        del call
        gc.collect()
        assert reference() is None, f"the call is still referenced by {gc.get_referrers(reference())}"
    return outcome
