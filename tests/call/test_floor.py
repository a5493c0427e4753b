"""The floor is one table: every transition that exists is meant, every other one is a fault."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voice_agent.call.floor import TRANSITIONS, Command, Event, Floor, IllegalTransition, State
from voice_agent.telemetry.metrics import ILLEGAL_TRANSITIONS


def _walk(*events: Event) -> tuple[State, list[Command]]:
    floor, commands = Floor(strict=True), []
    for event in events:
        commands.extend(floor.on(event))
    return floor.state, commands


def test_a_barge_in_pauses_first_and_yields_when_confirmed() -> None:
    assert _walk(Event.TURN_STARTED, Event.AUDIO_STARTED, Event.CALLER_VOICE) == (State.PAUSED, [Command.PAUSE])
    assert _walk(Event.TURN_STARTED, Event.AUDIO_STARTED, Event.CALLER_VOICE, Event.CONFIRMED) == (
        State.YIELDING,
        [Command.PAUSE, Command.YIELD],
    )


def test_a_false_interruption_resumes() -> None:
    assert _walk(Event.TURN_STARTED, Event.AUDIO_STARTED, Event.CALLER_VOICE, Event.CALLER_DONE) == (
        State.SPEAKING,
        [Command.PAUSE, Command.RESUME],
    )


def test_voice_before_the_first_audio_holds_it_back() -> None:
    assert _walk(Event.TURN_STARTED, Event.CALLER_VOICE, Event.CALLER_DONE) == (
        State.THINKING,
        [Command.HOLD, Command.RELEASE],
    )


def test_a_turn_that_starts_while_the_caller_speaks_is_held() -> None:
    assert _walk(Event.CALLER_VOICE, Event.TURN_STARTED) == (State.HELD, [Command.HOLD])


def test_a_confirmed_utterance_during_the_goodbye_yields() -> None:
    assert _walk(Event.TURN_STARTED, Event.AUDIO_STARTED, Event.GOODBYE, Event.CALLER_VOICE, Event.CONFIRMED)[0] is (
        State.YIELDING
    )


def test_an_illegal_event_raises_when_strict_and_is_ignored_and_counted_in_a_call() -> None:
    with pytest.raises(IllegalTransition):
        Floor(strict=True).on(Event.AUDIO_STARTED)
    floor, count = Floor(), ILLEGAL_TRANSITIONS.labels(state="listening", event="audio_started")._value
    before = count.get()
    assert floor.on(Event.AUDIO_STARTED) == ()
    assert (floor.state, count.get() - before) == (State.LISTENING, 1)


@given(st.lists(st.sampled_from(list(Event)), max_size=40))
def test_whatever_happens_the_floor_stays_usable_until_it_is_closed(events: list[Event]) -> None:
    floor = Floor()
    paused = held = False
    for event in events:
        for command in floor.on(event):
            # Commands are paired: nothing resumes that was not paused, nothing is released that was not held.
            if command is Command.RESUME:
                assert paused
            if command is Command.RELEASE:
                assert held
            paused, held = command is Command.PAUSE, command is Command.HOLD
    if Event.ENDED in events:
        assert floor.state is State.CLOSED
    elif floor.state is not State.LISTENING:
        # From every state a turn's end or the caller's leads back to listening.
        floor.on(Event.TURN_ENDED)
        floor.on(Event.CALLER_DONE)
        assert floor.state is State.LISTENING


def test_every_state_can_be_reached_and_left() -> None:
    reachable = {State.LISTENING}
    while True:
        found = reachable | {to for (origin, _), (to, _) in TRANSITIONS.items() if origin in reachable}
        if found == reachable:
            break
        reachable = found
    assert reachable == set(State)
