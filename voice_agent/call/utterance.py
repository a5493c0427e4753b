"""The caller's words while they are being spoken."""

from __future__ import annotations

from voice_agent.call.barge_in import BargeIn
from voice_agent.call.endpointing import Endpoint


class Utterance:
    """One utterance from its onset on.

    Attributes:
        pcm: Canonical PCM with pre-roll; grows on demand and is bounded by whoever feeds it.
        onset: When its first voice sounded, in seconds of the loop's clock.
        over_agent: It began while a turn existed, so a backchannel in it is no answer.
        barge_in: Decides whether it interrupts.
        revision: Counts how often voice came back after a pause.
        text: The accepted transcript of everything so far; ``""`` if nothing was understood, None if not known.
        text_at: When ``text`` came.
        endpoint: The silences that end it, given what is known of its words.
        voice_ms: Voice in it so far, silences left out.
        silence_ms: Silence since its last voice.
        took_floor: It ended a turn, so silence is no answer to it.
        before: Words of the turn that it ended and continues.
        agreed: The backchannel that let the agent go on while it lasted.
        certainty: Average log-probability of the words so far, a partial or the whole; 0 is certain.
        heard_ms: Voice in which they were heard.
        partial_at_ms: Voice at which a partial was last asked for.
        discarded: Its last voice so far fell within wording over which the caller is not listened to.
    """

    __slots__ = (
        "agreed",
        "barge_in",
        "before",
        "certainty",
        "discarded",
        "endpoint",
        "heard_ms",
        "onset",
        "over_agent",
        "partial_at_ms",
        "pcm",
        "revision",
        "silence_ms",
        "text",
        "text_at",
        "took_floor",
        "voice_ms",
    )

    def __init__(self, onset: float, barge_in: BargeIn, endpoint: Endpoint, *, over_agent: bool) -> None:
        self.pcm = bytearray()
        self.onset = onset
        self.over_agent = over_agent
        self.took_floor = self.discarded = False
        self.before = self.agreed = ""
        self.certainty, self.heard_ms = 0.0, 0
        self.barge_in = barge_in
        self.revision = 0
        self.text: str | None = None
        self.text_at = 0.0
        self.endpoint = endpoint
        self.voice_ms = self.silence_ms = 0
        self.partial_at_ms = 0
