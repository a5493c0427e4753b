"""Piper text to speech: a whole sentence or clause at once, with the samples of each word.

Piper's models know how long each phoneme lasts but do not return it. `load` marks that tensor as an
output (see `piper_model`), so that heard text is exact to the word. Where that fails, words are
placed by their number of characters.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from voice_agent.audio.frames import SAMPLE_RATE
from voice_agent.audio.resample import resample
from voice_agent.config import TtsOptions
from voice_agent.diagnostics import missing_package
from voice_agent.speech.alignment import Phoneme, display_spans, spans_by_characters, word_ranges
from voice_agent.speech.models import PIPER_BUNDLES, piper_voice
from voice_agent.speech.pcm import check_pcm
from voice_agent.speech.piper_model import file_digest, load_voice
from voice_agent.speech.pool import SpeechPool
from voice_agent.speech.protocols import EngineError, Priority, Speech, TextSpan
from voice_agent.speech.silence import LEAD_S, Sentence, set_silence, tail
from voice_agent.speech.speakable import REVISION, SpeakableText, speakable

if TYPE_CHECKING:
    from piper import PiperVoice

log = logging.getLogger(__name__)

PEAK = 0.7
"""Peak of each sentence, -3 dBFS: room for resampling and telephone codecs."""

_WARM_UP_TEXT = "One moment, please."


class PiperSynthesizer:
    """Implements `voice_agent.speech.protocols.Synthesizer`. Call `load` before anything else.

    Args:
        threads: Threads of one synthesis; several may run at once in the pool.
    """

    def __init__(self, options: TtsOptions, pool: SpeechPool, threads: int) -> None:
        self._options = options
        self._pool = pool
        self._threads = threads
        self._voice: PiperVoice | None = None
        self._identity = ""
        self._language = "en"
        self._has_alignment = False
        self._alone: dict[str, str] = {}

    @property
    def identity(self) -> str:
        if not self._identity:
            raise RuntimeError("PiperSynthesizer.identity is known after load()")
        return self._identity

    @property
    def language(self) -> str:
        """Two-letter language of the voice."""
        return self._language

    @property
    def has_alignment(self) -> bool:
        """Word spans are exact rather than estimated from characters."""
        return self._has_alignment

    def load(self) -> None:
        """Load the voice and speak once, so that the first caller does not wait for it. Blocks for 1 to 2 s.

        Raises:
            RemediableError: The package or the voice is missing or damaged.
        """
        try:
            import piper  # noqa: F401
        except ImportError as error:
            raise missing_package("piper-tts", "piper") from error
        weights, config_path = piper_voice(self._options.voice)
        # A bundled voice was hashed a moment ago, to be compared with its pinned sum.
        bundle = PIPER_BUNDLES.get(self._options.voice)
        digest = bundle.sha256 if bundle else file_digest(weights)
        self._voice = load_voice(weights, config_path, digest, self._threads)
        self._has_alignment = len(self._voice.session.get_outputs()) > 1
        espeak_voice: str = self._voice.config.espeak_voice
        self._language = espeak_voice.split("-")[0]
        exact = "exact" if self._has_alignment else "estimated"
        self._identity = f"piper/{weights.stem}/{digest[:16]}/{SAMPLE_RATE}/{PEAK}/{exact}/speakable-{REVISION}"
        self._speak(_WARM_UP_TEXT)

    async def synthesize(self, text: str, *, priority: Priority = Priority.SPEECH) -> Speech:
        """Speak one piece of display text. Text with nothing to say has empty ``pcm`` and empty spans.

        Raises:
            EngineError: Piper failed, or the pool refused the job.
        """
        return await self._pool.run(self._speak, text, priority=priority, job="synthesize")

    def _speak(self, text: str) -> Speech:
        if self._voice is None:
            raise EngineError("the Piper voice is not loaded; call load() first")
        said = speakable(text, self._language)
        if not said.text:
            return Speech(text, b"", tuple(TextSpan(span.start, span.end, 0, 0) for span in said.spans))
        try:
            sentences = self._sentences(said.text)
            return self._assemble(text, said, sentences)
        except EngineError:
            raise
        except Exception as error:
            # No text in the message: it may hold what the caller said.
            raise EngineError(f"Piper failed on a text of {len(text)} characters: {error!r}") from error

    def _sentences(self, spoken: str) -> list[Sentence]:
        from piper import SynthesisConfig

        assert self._voice is not None
        rate = self._voice.config.sample_rate
        config = SynthesisConfig(normalize_audio=True, volume=PEAK)
        sentences = []
        for chunk in self._voice.synthesize(spoken, config, include_alignments=self._has_alignment):
            phonemes = None
            if chunk.phoneme_alignments is not None:
                phonemes = [Phoneme(part.phoneme, int(part.num_samples)) for part in chunk.phoneme_alignments]
                if sum(phoneme.samples for phoneme in phonemes) != len(chunk.audio_float_array):
                    phonemes = None
            mark = chunk.phonemes[-1] if chunk.phonemes else ""
            sentences.append(set_silence(chunk.audio_float_array, phonemes, mark, rate))
        if not sentences:
            raise EngineError("Piper returned no audio for a text that can be spoken")
        return sentences

    def _assemble(self, text: str, said: SpeakableText, sentences: Sequence[Sentence]) -> Speech:
        assert self._voice is not None
        rate = self._voice.config.sample_rate
        samples = np.concatenate([sentence.samples for sentence in sentences])
        pcm = (np.clip(samples, -1, 1) * 32767).astype("<i2").tobytes()
        pcm = check_pcm(resample(pcm, rate, SAMPLE_RATE))
        spans = self._exact_spans(said, sentences)
        if spans is None:
            spans = spans_by_characters(said, round(LEAD_S * rate), len(samples) - tail(sentences[-1].last_mark, rate))
        last = len(pcm) // 2
        spans = tuple(
            TextSpan(span.start, span.end, _convert(span.first, rate, last), _convert(span.last, rate, last))
            for span in spans
        )
        return Speech(text, pcm, spans)

    def _exact_spans(self, said: SpeakableText, sentences: Sequence[Sentence]) -> tuple[TextSpan, ...] | None:
        phonemes: list[Phoneme] = []
        for sentence in sentences:
            if sentence.phonemes is None:
                return None
            phonemes += [*sentence.phonemes, Phoneme(" ", 0)]
        ranges = word_ranges(said.text, phonemes, self._say_alone)
        return None if ranges is None else display_spans(said, ranges)

    def _say_alone(self, word: str) -> str:
        """Phonemes of one word, remembered: eSpeak takes 0.13 ms for each."""
        assert self._voice is not None
        known = self._alone.get(word)
        if known is None:
            if len(self._alone) >= 4096:
                self._alone.clear()
            known = self._alone[word] = "".join(symbol for group in self._voice.phonemize(word) for symbol in group)
        return known


def _convert(at: int, rate: int, last: int) -> int:
    return min(last, (2 * at * SAMPLE_RATE + rate) // (2 * rate))
