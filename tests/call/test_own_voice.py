"""Which words are the agent's own, and which are an answer."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support import sounds
from voice_agent.audio.frames import FRAME_SAMPLES, SAMPLE_RATE
from voice_agent.call.echo import FRAME_S, EchoGuard
from voice_agent.call.ledger import PlayoutLedger
from voice_agent.call.own_voice import OwnVoice, unmatched
from voice_agent.call.vocabulary import words
from voice_agent.config import TurnTaking
from voice_agent.speech.protocols import Speech

SAYING = "You can come on Monday or on Tuesday, or stop by at the weekend."


def _while_it_says(text: str, seconds: float = 4.0) -> tuple[OwnVoice, float]:
    """Return what is known after ``text`` was released, and the moment of its last sound."""
    now = 10.0
    ledger, own = PlayoutLedger(), OwnVoice(TurnTaking(), lambda: now)
    own.begin(ledger)
    ledger.said(text)
    frames = round(seconds / FRAME_S)
    ledger.append(Speech(text, bytes(frames * FRAME_SAMPLES * 2), ()), frames * FRAME_SAMPLES)
    for _ in range(frames):
        ledger.release(now)
        own.played(bytes(FRAME_SAMPLES * 2), now)
        now += FRAME_S
    return own, now


@pytest.mark.parametrize(
    ("heard", "is_own"),
    [
        ("Come on Monday or on Tuesday", True),
        ("Come on Mondays or and Tuesday", True),
        ("Tuesday", False),
        ("On Tuesday", False),
        ("No, wait a moment", False),
        ("I want to come on Friday with my brother", False),
        ("Stop.", False),
    ],
)
def test_several_words_in_the_agents_own_order_are_its_own(heard: str, is_own: bool) -> None:
    own, end = _while_it_says(SAYING)
    assert own.said(heard, end - 3.0) is is_own


def test_nothing_is_its_own_that_begins_after_its_voice_has_ended() -> None:
    own, end = _while_it_says(SAYING)
    assert own.said("or stop by at the weekend", end + 0.1)
    assert not own.said("or stop by at the weekend", end + 0.3)


def test_words_of_long_ago_are_not_just_said() -> None:
    own, end = _while_it_says("One two three four five. " * 10 + SAYING, seconds=30)
    assert not own.said("One two three four five", end - 1.0)


@pytest.mark.parametrize(
    ("heard", "rest"),
    [("the balance is fifty", ""), ("the balance was fifty", "was"), ("fifty is the balance", "fifty is")],
)
def test_words_are_matched_in_their_order(heard: str, rest: str) -> None:
    assert unmatched(words(heard), words("Your balance: the balance is fifty dollars.")) == words(rest)


def _speech(seconds: float, seed: int) -> np.ndarray:
    """Return a studio speaker's prompts, one after the other."""
    clips = [np.concatenate([clip, np.zeros(3000)]) for clip in sounds.prompts(40, seed).values()]
    return np.concatenate(clips)[: round(seconds * SAMPLE_RATE)] / 4


def _explained(released: np.ndarray, heard: np.ndarray, guard: EchoGuard) -> list[bool]:
    found = []
    for at in range(0, len(released) - FRAME_SAMPLES, FRAME_SAMPLES):
        now = at / SAMPLE_RATE
        guard.played(released[at : at + FRAME_SAMPLES].astype(np.int16).tobytes(), now)
        found.append(guard.heard(heard[at : at + FRAME_SAMPLES].astype(np.int16).tobytes(), now))
    return found


@pytest.mark.parametrize("echo_db", [-10, -20, -30])
@pytest.mark.parametrize("delay_s", [0.0, 0.13, 0.48])
def test_an_echo_is_explained_and_a_louder_voice_over_it_is_not(echo_db: float, delay_s: float) -> None:
    released, late = _speech(8, seed=1), round(delay_s * SAMPLE_RATE)
    gain = 10 ** (echo_db / 20)
    heard = np.concatenate([np.zeros(late), released])[: len(released)] * gain
    heard += np.random.default_rng(2).normal(0, 5, len(heard))
    caller = _speech(2, seed=3) * gain * 10 ** (10 / 20)
    heard[6 * SAMPLE_RATE :] += caller
    guard = EchoGuard(margin_db=6, tail_ms=200)
    explained = _explained(released, heard, guard)
    assert guard.coupled and abs(guard.delay_s - delay_s) <= 0.04
    assert np.mean(explained[150:300]) > 0.95
    assert np.mean(explained[300:350]) < 0.6


def test_without_an_echo_no_frame_is_explained() -> None:
    guard = EchoGuard(margin_db=6, tail_ms=200)
    assert not any(_explained(_speech(8, seed=1), _speech(8, seed=4) / 10, guard))
    assert not guard.coupled


def test_an_echo_that_ends_is_forgotten() -> None:
    released = _speech(12, seed=1)
    heard = released * 0.1 + np.random.default_rng(2).normal(0, 5, len(released))
    heard[5 * SAMPLE_RATE :] = np.random.default_rng(3).normal(0, 5, 7 * SAMPLE_RATE)
    guard = EchoGuard(margin_db=6, tail_ms=200)
    _explained(released, heard, guard)
    assert not guard.coupled


def test_nothing_is_looked_at_while_the_agent_is_silent() -> None:
    guard = EchoGuard(margin_db=6, tail_ms=200)
    assert not guard.heard(_speech(0.02, seed=1).astype(np.int16).tobytes(), 5.0)
    assert guard.correlation == 0.0


@pytest.mark.parametrize(
    ("heard", "own", "left"),
    [
        ("welcome to north line", "Welcome to Northline.", ""),
        ("you may be cancelled today", "You maybe cancelled today.", ""),
        ("welcome to north line stop", "Welcome to Northline.", "stop"),
        ("my north account", "Welcome to Northline.", "my north account"),
        ("the the bill", "The bill.", "the"),
    ],
)
def test_a_word_heard_as_two_is_the_agents_all_the_same(heard: str, own: str, left: str) -> None:
    assert unmatched(words(heard), words(own)) == words(left)


@given(st.lists(st.sampled_from(["a", "north", "line", "northline", "bill"]), max_size=8), st.data())
def test_what_the_agent_said_leaves_nothing_and_what_is_left_was_heard(own: list[str], data: st.DataObject) -> None:
    assert unmatched(tuple(own), tuple(own)) == ()
    heard = tuple(data.draw(st.lists(st.sampled_from(["a", "north", "line", "other"]), max_size=8)))
    left = list(unmatched(heard, tuple(own)))
    kept = iter(heard)
    assert all(word in kept for word in left)
