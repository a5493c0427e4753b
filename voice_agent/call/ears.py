"""From the caller's frames to committed utterances: detector, segmenter, recogniser, endpoint.

::

    caller      ▇▇▇▇▇▇▇▇▇▇▁▁▁▁▁▁▁▁▁▁▁▁▁
                          └ pause_ms ┤ recogniser starts (speculation)
                                      ├──────┤ its transcript says how much silence ends the utterance
    committed                                 ▲ usually at once: the words are there before the endpoint

What the words mean for the floor is the listener's business.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable

import numpy as np

from voice_agent.audio.frames import FRAME_BYTES, FRAME_MS, SILENCE, Reframer
from voice_agent.call.answers import Wholeness, wholeness
from voice_agent.call.barge_in import BargeIn
from voice_agent.call.clock import MediaClock
from voice_agent.call.endpointing import Endpoint, Endpointing
from voice_agent.call.hum import words_or_hum
from voice_agent.call.listener import Listener, Lost
from voice_agent.call.own_voice import OwnVoice
from voice_agent.call.segmenter import Segmenter, Signal
from voice_agent.call.transcriber import Recognition, Transcriber
from voice_agent.call.utterance import Utterance
from voice_agent.call.vocabulary import ENGLISH, Vocabulary
from voice_agent.config import TurnTaking
from voice_agent.dialogue.reply import ExpectedAnswer
from voice_agent.speech.protocols import Priority, Recognizer, Transcript, VoiceDetector

log = logging.getLogger(__name__)

GAP_TICKS = 10
"""Ticks without a frame after which the wire is taken to send nothing in silence (200 ms)."""
PARTIAL_FIRST_MS = 140
"""Voice in which "yeah", "okay", "right", "wait" and "no" are known: the agent falls silent for a third of a second."""
PARTIAL_EVERY_MS = 200


class Ears:
    """Hears for one call."""

    def __init__(
        self,
        detector: VoiceDetector,
        recognizer: Recognizer,
        options: TurnTaking,
        clock: MediaClock,
        now: Callable[[], float],
        listener: Listener,
        expected: Callable[[], ExpectedAnswer | None] = lambda: None,
        *,
        own_voice: OwnVoice | None = None,
        vocabulary: Vocabulary = ENGLISH,
    ) -> None:
        """Args: ``expected``: tells what would answer the question that is open."""
        self._detector, self._options, self._clock, self._now = detector, options, clock, now
        self._listener, self._expected = listener, expected
        self._own_voice, self._vocabulary = own_voice, vocabulary
        self._unexplained = 0
        self._segmenter = Segmenter(options.pause_ms)
        self._endpointing = Endpointing(options, vocabulary)
        self._transcriber = Transcriber(recognizer, options.stt_timeout_s, self._transcribed)
        self._pre_roll: deque[bytes] = deque(maxlen=max(2, options.pre_roll_ms // FRAME_MS))
        self._max_bytes = max(FRAME_BYTES, int(options.max_utterance_s * 1000 / FRAME_MS) * FRAME_BYTES)
        self._utterance: Utterance | None = None
        self._closing: Utterance | None = None
        self._reframer = Reframer()
        self._frames = self._frames_seen = self._gap = 0
        self._unsubscribe: Callable[[], None] | None = None

    @property
    def open(self) -> Utterance | None:
        """The utterance that is being spoken or awaits its transcript."""
        return self._utterance

    @property
    def frames(self) -> int:
        """Frames heard since the call began: the proof that media flows."""
        return self._frames

    async def run(self) -> None:
        """Serve the recogniser until cancelled."""
        await self._transcriber.run()

    def hear(self, pcm: bytes) -> None:
        """Take caller audio of any length; what is no whole frame waits for the rest."""
        for frame in self._reframer.push(pcm):
            self._frame(frame)

    def want_partial(self, utterance: Utterance) -> None:
        """The words so far would help to decide: recognise them if nothing is under way."""
        due = utterance.partial_at_ms + (PARTIAL_EVERY_MS if utterance.partial_at_ms else PARTIAL_FIRST_MS)
        if utterance.voice_ms >= due and not self.words_pending(utterance):
            utterance.partial_at_ms = utterance.voice_ms
            self._transcriber.request(utterance, Priority.PARTIAL_TRANSCRIPT)

    def words_pending(self, utterance: Utterance) -> bool:
        """Whether the recogniser is at work on this utterance."""
        return self._transcriber.pending(utterance) is not None

    def drop(self, utterance: Utterance) -> None:
        """The utterance is settled: stop listening to it."""
        self._transcriber.drop(utterance)
        if utterance is self._utterance:
            self._forget()

    def close(self) -> None:
        """The call is over. Idempotent."""
        for utterance in (self._utterance, self._closing):
            if utterance is not None:
                self._transcriber.drop(utterance)
        self._closing = None
        self._forget()
        self._pre_roll.clear()

    def _frame(self, frame: bytes) -> None:
        self._frames += 1
        voicing = self._detector.push(frame)
        is_echo = self._own_voice is not None and self._own_voice.explains(frame)
        # Frames that the agent's own voice explains are no part of a voice that begins after them.
        earlier, self._unexplained = min(voicing.earlier_frames, self._unexplained), self._unexplained + 1
        if is_echo:
            self._unexplained = 0
        segmenter = self._segmenter
        signal = segmenter.push(voicing.voiced and not is_echo, earlier)
        if not segmenter.open:
            self._pre_roll.append(frame)
            return
        self._advance(frame, signal)

    def _advance(self, frame: bytes, signal: Signal) -> None:
        """One more frame of an open utterance."""
        segmenter = self._segmenter
        utterance = self._utterance
        if utterance is None:
            utterance = self._begin()
        utterance.pcm += frame
        utterance.voice_ms, utterance.silence_ms = segmenter.voice_ms, segmenter.silence_ms
        if signal is Signal.RESUME:
            utterance.revision += 1
            utterance.text = None
            utterance.endpoint = self._endpointing.endpoint(None)
        elif signal is Signal.PAUSE and utterance.voice_ms >= self._options.min_utterance_voice_ms:
            self._speculate(utterance)
        if len(utterance.pcm) >= self._max_bytes:
            self._cap(utterance)
        elif segmenter.paused:
            self._listener.caller_silence(utterance)
            if utterance is self._utterance:
                self._check_endpoint(utterance)
        elif not segmenter.silence_ms:
            self._listener.caller_voice(utterance)

    def _begin(self) -> Utterance:
        """Open an utterance with the audio just before its onset."""
        voice_s = self._segmenter.voice_ms / 1000
        utterance = self._utterance = Utterance(
            self._now() - voice_s,
            BargeIn(self._options, self._vocabulary),
            self._endpointing.endpoint(None),
            over_agent=self._listener.speaks_over_agent(),
        )
        utterance.pcm += b"".join(self._pre_roll)
        self._pre_roll.clear()
        if self._unsubscribe is None:
            self._frames_seen, self._gap = self._frames, 0
            self._unsubscribe = self._clock.subscribe(self._fill_gap)
        return utterance

    def _speculate(self, utterance: Utterance) -> None:
        """Start on the transcript now, so that it is there when the utterance turns out to be over."""
        pending = self._transcriber.pending(utterance)
        if pending is None or pending.revision != utterance.revision or pending.priority is Priority.PARTIAL_TRANSCRIPT:
            self._transcriber.request(utterance, Priority.SPECULATIVE_TRANSCRIPT)

    def _check_endpoint(self, utterance: Utterance) -> None:
        if utterance.voice_ms < self._options.min_utterance_voice_ms:
            if utterance.silence_ms >= self._options.false_interruption_ms:
                self._lose(utterance, Lost.TOO_SHORT)
            return
        if utterance.text is None:
            # From here on the words alone are waited for.
            if utterance.silence_ms >= self._options.min_endpoint_ms:
                self._transcriber.hurry(utterance)
        elif utterance.silence_ms < utterance.endpoint.turn_ms:
            return
        elif utterance.text:
            self.drop(utterance)
            self._listener.caller_finished(utterance, utterance.text)
        else:
            self._lose(utterance, Lost.NO_WORDS)

    def _cap(self, utterance: Utterance) -> None:
        """Nobody is listened to without end: commit what is there, hear the rest as a new utterance."""
        log.info("an utterance reached the longest length and was committed")
        if self._closing is not None:
            self._transcriber.drop(self._closing)
        self._closing = utterance
        utterance.endpoint = Endpoint(0, 0)
        self._forget()
        self._transcriber.request(utterance, Priority.FINAL_TRANSCRIPT)

    def _transcribed(self, job: Recognition, transcript: Transcript | None) -> None:
        utterance = job.utterance
        if utterance is self._closing:
            self._closing = None
            self._settle(utterance, transcript)
            return
        if utterance is not self._utterance:
            return
        fresh = job.revision == utterance.revision and job.priority is not Priority.PARTIAL_TRANSCRIPT
        if transcript is None:
            # A fault is tried once more, at once and with priority; one that takes this long is not asked again.
            if fresh and (job.priority is Priority.FINAL_TRANSCRIPT or job.token.is_cancelled):
                self._lose(utterance, Lost.FAILED)
            elif fresh and self._segmenter.paused:
                self._transcriber.request(utterance, Priority.FINAL_TRANSCRIPT)
            return
        text = self._words(utterance, transcript)
        utterance.certainty, utterance.heard_ms = transcript.average_log_probability, job.voice_ms
        if fresh and self._segmenter.paused:
            utterance.text, utterance.text_at = text, self._now()
            utterance.endpoint = self._endpoint(utterance, text, transcript.stop_probability)
        if text:
            self._listener.caller_words(utterance, text)
        if utterance is self._utterance and self._segmenter.paused:
            self._listener.caller_silence(utterance)
            if utterance is self._utterance:
                self._check_endpoint(utterance)

    def _settle(self, utterance: Utterance, transcript: Transcript | None) -> None:
        utterance.text_at = self._now()
        text = "" if transcript is None else self._words(utterance, transcript)
        if text:
            self._listener.caller_finished(utterance, text)
        else:
            self._listener.caller_lost(utterance, Lost.FAILED if transcript is None else Lost.NO_WORDS)

    def _endpoint(self, utterance: Utterance, text: str, stop_probability: float | None) -> Endpoint:
        # Nothing understood: no words to be completed, but more may be on its way.
        if not text:
            return Endpoint(self._options.false_interruption_ms, self._options.false_interruption_ms)
        expected = self._expected()
        if (
            utterance.over_agent
            and self._vocabulary.is_only_stops(text)
            and wholeness(text, expected, self._vocabulary) is not Wholeness.WHOLE
        ):
            # "Wait. Stop. I want to …": the agent is silent already, and the wish is still to come.
            return self._endpointing.endpoint(None)
        return self._endpointing.endpoint(text, expected, stop_probability)

    def _lose(self, utterance: Utterance, why: Lost) -> None:
        self.drop(utterance)
        self._listener.caller_lost(utterance, why)

    def _forget(self) -> None:
        self._utterance = None
        self._segmenter.close()
        if self._unsubscribe is not None:
            self._unsubscribe()
            self._unsubscribe = None

    def _fill_gap(self) -> None:
        """On each tick of an open utterance: a wire that sends nothing in silence is heard as silence."""
        if self._frames != self._frames_seen:
            self._frames_seen, self._gap = self._frames, 0
            return
        self._gap += 1
        if self._gap < GAP_TICKS or not self._segmenter.open:
            return
        missing = self._gap if self._gap == GAP_TICKS else 1
        for _ in range(missing):
            if self._segmenter.open:
                self._advance(SILENCE, self._segmenter.push(False))

    def _words(self, utterance: Utterance, transcript: Transcript) -> str:
        if utterance.over_agent:
            pcm = np.frombuffer(bytes(utterance.pcm), np.int16)
            return words_or_hum(transcript, pcm, so_far=utterance.agreed, vocabulary=self._vocabulary)
        return transcript.text.strip() if transcript.accepted else ""
