"""When the caller is listened to, answered, and yielded to."""

from __future__ import annotations

from pydantic import Field

from voice_agent.config.options import Milliseconds, Options, Seconds


class TurnTaking(Options):
    """When the caller is listened to, answered, and yielded to. All times are audio time."""

    pre_roll_ms: Milliseconds = 300
    """Audio before the detected onset that goes to the recogniser."""
    pause_ms: Milliseconds = 160
    """Silence after which the recogniser starts on what is there."""
    min_endpoint_ms: Milliseconds = 300
    """Silence that ends a complete utterance."""
    max_endpoint_ms: Milliseconds = 1200
    """Silence that ends any utterance."""
    reply_after_ms: Milliseconds = 700
    """Silence before an answer worded by a model sounds, where the caller may have made a mere pause at a comma."""
    max_utterance_s: Seconds = 60
    """Hard cap on one utterance."""
    min_utterance_voice_ms: Milliseconds = 200
    """Voice below this makes no turn."""
    late_final_ms: Milliseconds = 700
    """Speech this soon after the commit, before any reply was heard, reopens the turn."""
    stt_timeout_s: Seconds = 5
    """A recogniser slower than this costs the caller a "could not hear you"."""
    barge_in: bool = True
    """Whether the caller may interrupt the agent on this channel."""
    stop_words_always: bool = False
    """Whether stop words interrupt where ``barge_in`` is off."""
    barge_in_onset_ms: Milliseconds = 80
    """Confirmed voice that pauses playout."""
    min_words: int = Field(2, ge=1, le=20)
    """Words that turn a pause into a barge-in."""
    min_voice_ms: Milliseconds = 500
    """Voice that turns a pause into a barge-in without words."""
    false_interruption_ms: Milliseconds = 400
    """Silence after which a pause without words resumes."""
    greeting_guard_s: Seconds = 3
    """Start of the agent's first speech during which only words interrupt."""
    echo_guard: bool = True
    """Whether the agent's own voice, where it comes back, is kept from interrupting it and from being answered."""
    echo_margin_db: float = Field(6, ge=0, le=40)
    """By how much a voice must exceed the expected echo, in decibels."""
    echo_tail_ms: Milliseconds = 200
    """How long echo goes on after the agent's last sound."""
    backchannels: tuple[str, ...] = ()
    """Words and phrases that mean "go on" over the agent, beside those of its language."""
    stop_words: tuple[str, ...] = ()
    """Words and phrases that stop the agent, beside those of its language."""
    lead_ms: Milliseconds = 120
    """How far audio may run ahead of the wall clock where the wire buffers."""
    fade_ms: Milliseconds = 20
    """Length of the fade when speech is cut."""
    grace_ms: Milliseconds = 500
    """How long cancelled work is awaited before it is abandoned."""
    filler_after_ms: Milliseconds = 900
    """Time without a word of an answer after which ``utter_filler`` is said; 0 never says it."""
    silence_timeout_s: Seconds = 8
    """Silence of an idle call before ``/silence`` is sent."""
    media_timeout_s: Seconds = 15
    """No frames at all for this long ends the call."""
    close_timeout_s: Seconds = 5
    """Limit on everything that follows a hang-up."""
    drain_timeout_s: Seconds = 5
    """Limit on waiting for the far end to play what was sent."""
    interruptible_goodbye: bool = True
    """Whether speech during the goodbye keeps the call."""
    max_call_s: Seconds = 3600
    """Longest call; a warning line is said before it."""
    resume_window_s: Seconds = 30
    """How long after a dropped connection the conversation may be resumed without a new greeting."""
