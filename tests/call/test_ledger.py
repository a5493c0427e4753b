"""The ledger knows what was heard: released, played by the wall clock, acknowledged, cleared, cut at a word."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes.voice import fake_speech
from voice_agent.audio.frames import FRAME_SAMPLES
from voice_agent.call.ledger import PlayoutLedger
from voice_agent.dialogue.reply import Heard
from voice_agent.speech.protocols import Speech

TEXT = "Your balance is fifty dollars. Anything else I can do?"
FIRST = "Your balance is fifty dollars. "


def _ledger(*pieces: Speech, reports_position: bool = False, text: str | None = None) -> PlayoutLedger:
    ledger = PlayoutLedger(reports_position=reports_position)
    ledger.said("".join(p.text for p in pieces) if text is None else text)
    for piece in pieces:
        samples = -(-len(piece.pcm) // 2 // FRAME_SAMPLES) * FRAME_SAMPLES
        ledger.append(piece, samples)
    return ledger


def _play(ledger: PlayoutLedger, seconds: float, start: float = 0.0) -> float:
    """Release frame by frame in real time; returns the instant at which the last one was played."""
    now = start
    for _ in range(round(seconds / 0.02)):
        ledger.release(now)
        now += 0.02
    return now


def test_a_reply_played_to_the_end_was_heard_fully() -> None:
    ledger = _ledger(fake_speech(FIRST), fake_speech(TEXT[len(FIRST) :]))
    end = _play(ledger, len(TEXT) * 0.06)
    heard = ledger.heard(end)
    assert (heard.heard, heard.unheard, heard.extent) == (TEXT, "", Heard.FULLY)
    assert ledger.drained(end)


def test_a_cut_reply_is_cut_between_words() -> None:
    ledger = _ledger(fake_speech(TEXT))
    end = _play(ledger, 1.0)
    heard = ledger.heard(end)
    assert heard.heard == "Your balance is"
    assert heard.heard + heard.unheard == TEXT


def test_nothing_released_means_nothing_heard() -> None:
    assert _ledger(fake_speech(TEXT)).heard(5.0).extent is Heard.NOT


def test_one_frame_is_no_word() -> None:
    ledger = _ledger(fake_speech(TEXT))
    ledger.release(0.0)
    assert ledger.heard(0.02).heard == ""


def test_audio_released_ahead_was_not_heard_before_its_time() -> None:
    ledger = _ledger(fake_speech(TEXT))
    for _ in range(100):
        ledger.release(0.0)
    assert ledger.heard(0.5).heard == "Your"
    assert ledger.position(0.5) == 8000


def test_without_word_spans_the_cut_goes_by_characters() -> None:
    speech = fake_speech(TEXT)
    ledger = _ledger(Speech(speech.text, speech.pcm, ()))
    end = _play(ledger, 1.0)
    assert ledger.heard(end).heard.strip() == "Your balance is"


def test_speech_that_failed_was_not_heard_though_its_audio_played() -> None:
    ledger = _ledger(fake_speech(FIRST, failed=True), fake_speech(TEXT[len(FIRST) :]))
    heard = ledger.heard(_play(ledger, len(TEXT) * 0.06))
    assert (heard.heard.strip(), heard.unheard.strip()) == (TEXT[len(FIRST) :], FIRST.strip())


def test_text_that_was_never_synthesised_is_unheard() -> None:
    ledger = _ledger(fake_speech(FIRST), text=TEXT)
    heard = ledger.heard(_play(ledger, 10))
    assert (heard.heard, heard.unheard) == (FIRST, TEXT[len(FIRST) :])


def test_a_position_from_the_wire_caps_what_the_clock_believes() -> None:
    ledger = _ledger(fake_speech(TEXT), reports_position=True)
    end = _play(ledger, 2.0)
    assert ledger.heard(end).heard == ""
    ledger.acked(500, end)
    assert ledger.position(end) == 8000
    assert ledger.position(end + 0.1) == 9600


def test_acknowledgements_after_a_clear_do_not_count() -> None:
    ledger = _ledger(fake_speech(TEXT), reports_position=True)
    end = _play(ledger, 2.0)
    ledger.acked(500, end)
    at = ledger.clear(end)
    ledger.acked(2000, end + 0.05)
    assert ledger.position(end + 1) == at == 8000


def test_impossible_acknowledgements_do_not_count() -> None:
    ledger = _ledger(fake_speech(TEXT), reports_position=True)
    end = _play(ledger, 1.0)
    for ms in (-5, 60_000):
        ledger.acked(ms, end)
    assert ledger.position(end) == 0


def test_a_resume_goes_back_to_the_start_of_the_cut_word() -> None:
    ledger = _ledger(fake_speech(TEXT))
    for _ in range(50):
        ledger.release(0.0)
    # 0.5 s into the reply is inside "balance", which begins with its fifth character.
    assert ledger.clear(0.5) == 8000
    assert ledger.rewind() == 5 * 960 // FRAME_SAMPLES * FRAME_SAMPLES
    end = _play(ledger, (len(TEXT) - 5) * 0.06, start=3.0)
    assert ledger.heard(end).extent is Heard.FULLY


def test_the_position_after_a_resume_counts_from_where_it_went_on() -> None:
    ledger = _ledger(fake_speech(TEXT), reports_position=True)
    for _ in range(50):
        ledger.release(0.0)
    ledger.acked(500, 0.5)
    ledger.clear(0.5)
    again = ledger.rewind()
    end = _play(ledger, 1.0, start=3.0)
    ledger.acked(1500, end)
    assert ledger.position(end) == again + 16000


def test_a_commit_counts_once() -> None:
    ledger = _ledger(fake_speech(TEXT))
    end = _play(ledger, 1.0)
    assert ledger.commit(end) is not None
    assert ledger.commit(end + 5) is None


def test_a_piece_without_audio_is_heard_with_what_precedes_it() -> None:
    ledger = _ledger(fake_speech("See this. "), Speech("```code```", b"", ()))
    assert ledger.heard(0.0).heard == ""
    assert ledger.heard(_play(ledger, 1.0)).heard == "See this. ```code```"


@given(
    st.lists(st.sampled_from(["One two three. ", "Four! ", "Five six, seven eight nine. "]), min_size=1, max_size=5),
    st.floats(0, 12),
    st.floats(0, 2),
)
def test_heard_and_unheard_are_always_the_whole_text_and_the_cut_never_splits_a_word(
    pieces: list[str], played: float, later: float
) -> None:
    ledger = _ledger(*(fake_speech(p) for p in pieces))
    total = ledger.length / 16000
    end = _play(ledger, min(played, total))
    heard = ledger.heard(end + later)
    assert heard.heard + heard.unheard == "".join(pieces)
    if heard.heard.strip() and heard.unheard:
        assert heard.heard[-1].isspace() or heard.unheard[0].isspace()
    words = len(heard.heard.split())
    truth = sum(
        1
        for s, p, base in zip(
            (s for x in pieces for s in fake_speech(x).spans),
            (x for x in pieces for _ in fake_speech(x).spans),
            _bases(pieces),
            strict=True,
        )
        if base + s.last / 16000 <= min(played, total) and p
    )
    assert words == pytest.approx(truth, abs=1)


def _bases(pieces: list[str]) -> list[float]:
    bases, at = [], 0.0
    for piece in pieces:
        speech = fake_speech(piece)
        bases += [at] * len(speech.spans)
        at += -(-len(speech.pcm) // 640) * 0.02
    return bases


def test_a_far_end_that_reports_standing_still_is_credited_with_nothing_more() -> None:
    ledger = _ledger(fake_speech(TEXT), reports_position=True)
    _play(ledger, 1.0)
    ledger.acked(500, 1.0)
    assert ledger.position(1.09) > ledger.position(1.0), "between reports playout is taken to go on"
    ledger.acked(500, 1.1)
    for now in (1.1, 1.15, 1.2):
        assert ledger.position(now) == 8000
    ledger.acked(560, 1.3)
    assert ledger.position(1.32) == pytest.approx(8960 + 320, abs=1), "it goes on once the far end does"


def test_what_was_only_extrapolated_does_not_stay_heard() -> None:
    ledger = _ledger(fake_speech("one two three four five six"), reports_position=True)
    _play(ledger, 1.4)
    ledger.acked(300, 1.0)
    assert ledger.heard(1.3).heard.strip() == "one two"
    ledger.acked(300, 1.31)
    assert ledger.heard(1.32).heard.strip() == "one"
    assert ledger.clear(1.32) == 4800


def test_a_place_before_the_last_message_is_known_as_such() -> None:
    ledger = PlayoutLedger()
    for text in (FIRST, TEXT[len(FIRST) :]):
        ledger.message_begins()
        ledger.said(text)
    assert ledger.precedes_last_message(0)
    for piece in (fake_speech(FIRST), fake_speech(TEXT[len(FIRST) :])):
        ledger.append(piece, -(-len(piece.pcm) // 2 // FRAME_SAMPLES) * FRAME_SAMPLES)
    begins = -(-len(fake_speech(FIRST).pcm) // 2 // FRAME_SAMPLES) * FRAME_SAMPLES
    assert ledger.precedes_last_message(begins - 1)
    assert not ledger.precedes_last_message(begins)


def test_a_reply_of_one_message_has_nothing_before_it_but_silence() -> None:
    ledger = _ledger(fake_speech(TEXT))
    assert ledger.precedes_last_message(-1)
    assert not ledger.precedes_last_message(0)
    assert not PlayoutLedger().precedes_last_message(0)


def test_words_around_a_sentence_that_was_not_spoken_stay_apart() -> None:
    last = "Anything else?"
    ledger = PlayoutLedger()
    ledger.said(f"Hello. {FIRST}{last}")
    for piece in (fake_speech("Hello."), fake_speech(FIRST, failed=True), fake_speech(last)):
        ledger.append(piece, -(-len(piece.pcm) // 2 // FRAME_SAMPLES) * FRAME_SAMPLES)
    heard = ledger.heard(_play(ledger, 10))
    assert heard.heard == f"Hello. {last}"


def test_a_filler_that_was_cut_is_no_part_of_the_reply_behind_it() -> None:
    aside = replace(fake_speech("One moment, please."), text="")
    ledger = PlayoutLedger()
    ledger.append(aside, -(-len(aside.pcm) // 2 // FRAME_SAMPLES) * FRAME_SAMPLES)
    ledger.said(TEXT)
    for frames in range(len(aside.pcm) // 2 // FRAME_SAMPLES):
        assert ledger.heard(frames * 0.02).heard == ""
        ledger.release(frames * 0.02)
    assert aside.spans and ledger.said_since(0.0) == ""
