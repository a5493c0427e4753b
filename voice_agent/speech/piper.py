"""Piper text to speech: a whole sentence or clause at once, with the samples of each word.

Piper's models know how long each phoneme lasts but do not return it. `load` marks that tensor as an
output in a copy of the voice, kept in the user's cache, so that heard text is exact to the word.
Without the ``onnx`` package, or where that fails, words are placed by their number of characters.

Silence is set here, since the model's own varies: 15 ms before the first sound (it puts 0 to 60 ms
there) and a pause by punctuation after the last (it puts 100 to 270 ms there).
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from voice_agent.audio.frames import SAMPLE_RATE
from voice_agent.audio.resample import resample
from voice_agent.config import TtsOptions
from voice_agent.diagnostics import RemediableError
from voice_agent.speech.alignment import Phoneme, display_spans, spans_by_characters, word_ranges
from voice_agent.speech.models import cache_directory, piper_voice
from voice_agent.speech.pcm import check_pcm
from voice_agent.speech.pool import SpeechPool
from voice_agent.speech.protocols import EngineError, Priority, Speech, TextSpan
from voice_agent.speech.speakable import REVISION, SpeakableText, speakable

if TYPE_CHECKING:
    from piper import PiperVoice

log = logging.getLogger(__name__)

LEAD_S = 0.015
"""Silence kept before the first sound."""
PAUSES_S = {".": 0.2, "!": 0.2, "?": 0.2, ":": 0.15, ";": 0.15, ",": 0.1}
"""Silence after the last sound, by the mark that ends the piece."""
PAUSE_S = 0.06
"""Silence after a piece that ends without a mark."""
PEAK = 0.7
"""Peak of each sentence, -3 dBFS: room for resampling and telephone codecs."""

_SILENCE_DBFS = -50.0
_WINDOW_S = 0.005
_WARM_UP_TEXT = "One moment, please."


@dataclass(frozen=True, slots=True)
class _Sentence:
    """What Piper made of one sentence: float samples, and its phonemes where their lengths are known."""

    samples: NDArray[np.float32]
    phonemes: list[Phoneme] | None
    last_mark: str


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
            raise RemediableError(
                "speech.tts.name is piper, but the package piper-tts is not installed.",
                'Install it: pip install "voice-agent[piper]".',
            ) from error
        weights, config_path = piper_voice(self._options.voice)
        digest = _digest(weights)
        self._voice = _load_voice(weights, config_path, digest, self._threads)
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

    def _sentences(self, spoken: str) -> list[_Sentence]:
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

    def _assemble(self, text: str, said: SpeakableText, sentences: Sequence[_Sentence]) -> Speech:
        assert self._voice is not None
        rate = self._voice.config.sample_rate
        samples = np.concatenate([sentence.samples for sentence in sentences])
        pcm = (np.clip(samples, -1, 1) * 32767).astype("<i2").tobytes()
        pcm = check_pcm(resample(pcm, rate, SAMPLE_RATE))
        spans = self._exact_spans(said, sentences)
        if spans is None:
            spans = spans_by_characters(said, round(LEAD_S * rate), len(samples) - _tail(sentences[-1].last_mark, rate))
        last = len(pcm) // 2
        spans = tuple(
            TextSpan(span.start, span.end, _convert(span.first, rate, last), _convert(span.last, rate, last))
            for span in spans
        )
        return Speech(text, pcm, spans)

    def _exact_spans(self, said: SpeakableText, sentences: Sequence[_Sentence]) -> tuple[TextSpan, ...] | None:
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


def set_silence(samples: NDArray[np.float32], phonemes: Sequence[Phoneme] | None, mark: str, rate: int) -> _Sentence:
    """Give a sentence the configured silence at both ends, and its outer phonemes the length that leaves them."""
    start, end = _sounding(samples, rate)
    start = max(0, start - round(LEAD_S * rate))
    wanted_end = end + _tail(mark, rate)
    cut = samples[start:wanted_end]
    padding = wanted_end - start - len(cut)
    if padding > 0:
        cut = np.concatenate([cut, np.zeros(padding, np.float32)])
    if phonemes is None:
        return _Sentence(cut, None, mark)
    kept = _cut_front(phonemes, start)
    kept = _cut_front(kept[::-1], len(samples) - wanted_end)[::-1] if padding <= 0 else kept
    if padding > 0:
        kept[-1] = Phoneme(kept[-1].symbol, kept[-1].samples + padding)
    return _Sentence(cut, kept, mark)


def _tail(mark: str, rate: int) -> int:
    return round(PAUSES_S.get(mark, PAUSE_S) * rate)


def _sounding(samples: NDArray[np.float32], rate: int) -> tuple[int, int]:
    """Return where sound begins and ends; the whole of it if all is quiet."""
    window = max(1, round(_WINDOW_S * rate))
    whole = len(samples) // window * window
    power = np.square(samples[:whole]).reshape(-1, window).mean(axis=1)
    loud = np.flatnonzero(power > 10 ** (_SILENCE_DBFS / 10))
    if not len(loud):
        return 0, len(samples)
    return int(loud[0]) * window, min(len(samples), int(loud[-1] + 1) * window)


def _cut_front(phonemes: Sequence[Phoneme], samples: int) -> list[Phoneme]:
    kept = []
    for phoneme in phonemes:
        taken = min(samples, phoneme.samples)
        samples -= taken
        kept.append(Phoneme(phoneme.symbol, phoneme.samples - taken))
    return kept


def _convert(at: int, rate: int, last: int) -> int:
    return min(last, (2 * at * SAMPLE_RATE + rate) // (2 * rate))


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _load_voice(weights: Path, config_path: Path, digest: str, threads: int) -> PiperVoice:
    from piper import PiperVoice
    from piper.config import PiperConfig

    try:
        config = PiperConfig.from_dict(json.loads(config_path.read_text("utf-8")))
    except (ValueError, KeyError, OSError) as error:
        raise RemediableError(
            f"speech.tts.voice: {config_path} is no configuration of a Piper voice ({error!r}).",
            "Take the .onnx.json file that belongs to the .onnx file.",
        ) from error
    aligned = aligned_model(weights, digest)
    try:
        session = _session(aligned, threads)
    except Exception as error:
        if aligned == weights:
            raise RemediableError(
                f"speech.tts.voice: {weights} cannot be loaded as a Piper voice ({error}).",
                "Give the path of a Piper .onnx file, or reinstall the bundled voice.",
            ) from error
        log.warning("the prepared voice %s cannot be loaded and is not used: %s", aligned, error)
        if isinstance(aligned, Path):
            aligned.unlink(missing_ok=True)
        session = _session(weights, threads)
    return PiperVoice(session=session, config=config)


def _session(model: Path | bytes, threads: int) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    # Idle threads that spin would take the core from the media clock.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    source = model if isinstance(model, bytes) else str(model)
    return onnxruntime.InferenceSession(source, sess_options=options, providers=["CPUExecutionProvider"])


def aligned_model(weights: Path, digest: str) -> Path | bytes:
    """Return the voice with its phoneme lengths as an output: a file in the user's cache, made once per voice.

    Returns:
        The cached copy; its bytes where the cache cannot be written; ``weights`` unchanged, with one
        warning, where the voice cannot be changed.
    """
    target = cache_directory() / "voices" / f"{weights.stem}-{digest[:16]}-aligned.onnx"
    if target.is_file():
        return target
    try:
        import onnx
        from piper.patch_voice_with_alignment import add_alignment_output

        model = onnx.load(str(weights))
        add_alignment_output(model)
        content: bytes = model.SerializeToString()
    except Exception as error:  # noqa: BLE001 - a voice without word times still speaks
        log.warning(
            "words of the voice %s are placed by their characters, which is up to 0.2 s off: %s%s",
            weights.stem,
            error,
            '. Install onnx: pip install "voice-agent[piper]"' if isinstance(error, ImportError) else "",
        )
        return weights
    try:
        _write_atomically(target, content)
    except OSError as error:
        log.warning("the prepared voice cannot be kept in %s and is made again at each start: %s", target.parent, error)
        return content
    return target


def _write_atomically(target: Path, content: bytes) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        Path(name).replace(target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
