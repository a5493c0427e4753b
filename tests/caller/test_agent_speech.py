from voice_agent.caller.agent_speech import AgentSpeech
from voice_agent.caller.audio import FRAME_S
from voice_agent.caller.playout import PlayedFrame


def hear(speech: AgentSpeech, pattern: str, start: float = 0.0, lead: float = 0.0) -> float:
    """Feed one frame per character: ``#`` audible, ``.`` silent; ``lead``: how long before it was heard it came in."""
    for index, sign in enumerate(pattern):
        now = start + index * FRAME_S
        audible = sign == "#"
        if audible:
            speech.arrive(now - lead, True)
        speech.hear(now, PlayedFrame(b"", audible, now - lead if audible else None))
    return start + len(pattern) * FRAME_S


def spans(speech: AgentSpeech) -> list[tuple[float, float]]:
    return [(round(s.start, 2), round(s.end, 2)) for s in speech.stretches]


def test_a_pause_between_sentences_does_not_end_the_speech():
    speech = AgentSpeech()
    hear(speech, "#" * 10 + "." * 15 + "#" * 10)
    assert spans(speech) == [(0.0, 0.7)]


def test_a_gap_ends_it_and_what_follows_is_another():
    speech = AgentSpeech()
    hear(speech, "#" * 10 + "." * 20 + "#" * 5)
    assert spans(speech) == [(0.0, 0.2), (0.6, 0.7)]
    assert speech.stretches[0].ended and speech.current is speech.stretches[1]


def test_silence_is_counted_from_the_last_audible_frame():
    speech = AgentSpeech()
    now = hear(speech, "..##" + "." * 10)
    assert speech.silent_for(now) == 10 * FRAME_S
    assert AgentSpeech().silent_for(3.0) == 3.0


def test_the_first_arrival_is_when_it_came_in_and_not_when_it_was_played():
    speech = AgentSpeech()
    hear(speech, "." * 5 + "#" * 5, lead=0.04)
    assert round(speech.stretches[0].arrived_at, 2) == 0.06


def test_the_last_arrival_of_a_cut_speech_includes_what_was_cleared_and_not_the_next_reply():
    speech = AgentSpeech()
    now = hear(speech, "#" * 10)
    speech.arrive(0.25, True)  # came in, then was cleared
    hear(speech, "." * 30 + "#" * 3, start=now, lead=0.04)
    assert speech.last_arrival(speech.stretches[0]) == 0.25


def test_speech_that_began_before_a_moment_and_goes_on_after_it_follows_it():
    speech = AgentSpeech()
    hear(speech, "#" * 50)
    stretch = speech.stretches[0]
    assert speech.following(0.5) is stretch
    assert speech.following(0.5, excluding=stretch) is None
    assert speech.following(1.0) is None
