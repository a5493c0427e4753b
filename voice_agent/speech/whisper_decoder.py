"""Decodes one window of speech with Whisper at the cost of its length, not of 30 s.

Whisper is trained on windows padded to 30 s, and its encoder costs in proportion to the window.
Two things keep its accuracy in a shorter one:

* The window is the speech and 8 s of silence after it (6 s for ``base``, which loops less), cut to
  whole seconds. With less it repeats itself more often.
* Without timestamps in its answer it hears better, but in a short window it sometimes loops
  ("Please hold. Please hold. …"). With timestamps it hardly ever loops. So it is asked without
  them first, and only when that answer loops, runs into its token bound, holds more words than
  can be said in the time, or is uncertain, the *same* encoding is decoded again with timestamps:
  a third of the cost of a decode in a longer window, and as good. Only when that loops too
  follows one decode in a longer window (speech and 20 s).

Word error rate and CPU on 160 clips (``scripts/bench/wer.py --clips 150``): stock ``tiny.en`` (30 s,
timestamps, beam 1) 4.1 % at 1; this 4.1 % at 0.38; ``base`` as this 3.1 % at 0.61. Without the
second decode a third of the errors of 150 of these clips were loops.

The encoder runs on several threads, the decoder on one: its steps are too small to share, and a
second thread made it slower (5.2 ms a token instead of 4.6) at 1.5 times the CPU.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voice_agent.audio.frames import SAMPLE_RATE
from voice_agent.diagnostics import RemediableError, did_you_mean, missing_package
from voice_agent.speech import repetition
from voice_agent.speech.models import whisper_model

PADDING_S = 8.0
"""Word errors of ``tiny.en`` on 160 clips with 5, 6, 7, 8 and 10 s: 4.5, 4.6, 4.3, 4.1 and 4.1 %."""
PADDING_OF_MODEL_S = {"base": 6.0}
"""``base`` on 70 clips with 6, 7 and 8 s: 3.9, 3.8 and 4.1 %, at 0.62, 0.65 and 0.69 of stock ``tiny.en``'s CPU."""
LONG_PADDING_S = 20.0
UNCERTAIN_LOG_PROBABILITY = -0.5
"""Below this average the window is decoded again. It took 5 of 150 studio prompts."""
CLOSING_MARKS = (".", "?", "!")
_FRAMES_PER_SECOND = 100
_MAX_FRAMES = 3000
# Speech has at most about 6 tokens a second; what needs more is a loop.
_TOKENS_PER_SECOND = 10
_SPARE_TOKENS = 16
_MAX_TOKENS = 440


@dataclass(frozen=True, slots=True)
class Decoded:
    """What one window was heard as, and how sure the model was."""

    text: str
    seconds: float
    tokens: int
    no_speech_probability: float
    average_log_probability: float
    is_cut_off: bool
    """The token bound ended it, not the model."""
    stop_probability: float | None = None
    """Share of closing marks in what the model would have put after the last word; None if nothing was heard."""

    @property
    def is_runaway(self) -> bool:
        return self.is_cut_off or repetition.is_looping(self.text) or repetition.is_too_fast(self.text, self.seconds)


class WhisperDecoder:
    """A loaded Whisper model. Blocking; safe to call from as many threads as ``workers``.

    Args:
        name: As in `voice_agent.speech.models.whisper_model`.
        language: Code such as ``en``, or None to detect it in each window.
        threads: Threads of one encoding.
        workers: Windows decoded at once.

    Raises:
        RemediableError: The package, the model or the language cannot be had.
    """

    def __init__(self, name: str, language: str | None, *, threads: int, workers: int) -> None:
        self._model, self._generator = _load(name, threads, workers)
        self._padding_s = PADDING_OF_MODEL_S.get(name, PADDING_S)
        self._extractor = self._model.feature_extractor
        self._mels = self._model.model.n_mels
        self._tokenizer = self._model.hf_tokenizer
        self._end = self._token("<|endoftext|>")
        self._no_timestamps = self._token("<|notimestamps|>")
        self._closing = [self._token(mark) for mark in CLOSING_MARKS]
        self._marks = {self._token(mark) for mark in (*CLOSING_MARKS, ",", "...")}
        self._language = self._checked_language(name, language)

    def decode(self, pcm: NDArray[np.int16]) -> Decoded:
        """Decode one window of at most 30 s of 16 kHz speech.

        The answer of a decoder that loops even in the long window holds the first occurrence only.
        """
        seconds = len(pcm) / SAMPLE_RATE
        best: Decoded | None = None
        for candidate in self._attempts(pcm, seconds):
            if best is None or _rank(candidate) > _rank(best):
                best = candidate
        assert best is not None
        if not best.is_cut_off:
            return best
        return replace(best, text=repetition.collapse(best.text))

    def _attempts(self, pcm: NDArray[np.int16], seconds: float) -> Iterator[Decoded]:
        mel = self._extractor(pcm.astype(np.float32) / 32768)
        encoded = self._encode(mel, seconds + self._padding_s)
        prompt = self._prompt(encoded)
        first = self._generate(encoded, [*prompt, self._no_timestamps], seconds)
        yield first
        if not first.is_runaway and first.average_log_probability >= UNCERTAIN_LOG_PROBABILITY:
            return
        second = self._generate(encoded, prompt, seconds)
        yield second
        if first.is_runaway and second.is_runaway and seconds + self._padding_s < _MAX_FRAMES / _FRAMES_PER_SECOND:
            encoded = self._encode(mel, seconds + LONG_PADDING_S)
            yield self._generate(encoded, [*prompt, self._no_timestamps], seconds)

    def _encode(self, mel: NDArray[np.float32], window_s: float) -> Any:
        """Encode the mel frames of the speech, padded with what silence gives to ``window_s`` seconds."""
        import ctranslate2

        # Whole seconds: the engine keeps memory for every length it has met (over 2 MB each, without end
        # in a service), so there are at most 30 of them.
        frames = min(_MAX_FRAMES, int(window_s) * _FRAMES_PER_SECOND)
        # Features are (log10(power) + 4) / 4 and cut off 8 below the loudest: silence lies at the
        # cut-off, or where log10(1e-10) comes out in speech that is fainter than that.
        silence = max(float(mel.max()) - 2.0, -1.5)
        window = np.full((1, self._mels, frames), silence, dtype=np.float32)
        used = min(frames, mel.shape[1])
        window[0, :, :used] = mel[:, :used]
        return self._model.model.encode(ctranslate2.StorageView.from_array(window))

    def _prompt(self, encoded: Any) -> list[int]:
        start = self._token("<|startoftranscript|>")
        if not self._model.model.is_multilingual:
            return [start]
        language = self._language
        if language is None:
            language = self._generator.detect_language(encoded)[0][0][0]
        return [start, self._token(language), self._token("<|transcribe|>")]

    def _generate(self, encoded: Any, prompt: list[int], seconds: float) -> Decoded:
        bound = min(_MAX_TOKENS, int(seconds * _TOKENS_PER_SECOND) + _SPARE_TOKENS)
        (result,) = self._generator.generate(
            encoded,
            [prompt],
            beam_size=1,
            max_length=len(prompt) + bound,
            return_scores=True,
            return_logits_vocab=True,
            return_no_speech_prob=True,
        )
        ids = result.sequences_ids[0]
        # The score is the mean over the tokens without the end; Whisper's own thresholds count it.
        mean = result.scores[0] * len(ids) / (len(ids) + 1)
        text = self._tokenizer.decode([token for token in ids if token < self._end]).strip()
        cut_off = len(ids) >= bound
        stop = None if cut_off or not text else self._stop_probability(ids, result.logits[0])
        return Decoded(text, seconds, len(ids), float(result.no_speech_prob), float(mean), cut_off, stop)

    def _stop_probability(self, ids: list[int], logits: Sequence[Any]) -> float | None:
        """Return how likely a closing mark is after the last word, with whatever mark was chosen there."""
        words = [at for at, token in enumerate(ids) if token < self._end and token not in self._marks]
        after = words[-1] + 1 if words else 0
        if not words or after >= len(logits):
            return None
        scores = np.array(logits[after], dtype=np.float32).ravel()
        shares = np.exp(scores - scores.max())
        return float(shares[self._closing].sum() / shares.sum())

    def _token(self, text: str) -> int:
        token = self._tokenizer.token_to_id(text)
        if token is None:
            raise RemediableError(
                f"The Whisper model's tokenizer has no token {text}.",
                "Use a model that was converted with its own tokenizer.json.",
            )
        return int(token)

    def _checked_language(self, name: str, language: str | None) -> str | None:
        """Return the language token, or None to detect the language."""
        if language is None:
            return None
        if not self._model.model.is_multilingual:
            if language == "en":
                return "<|en|>"
            raise RemediableError(
                f"speech.stt.language is {language!r}, but the model {name} hears English only.",
                'Set speech.stt.model to "base" or another multilingual model, or the language to en.',
            )
        if self._tokenizer.token_to_id(f"<|{language}|>") is None:
            known = [str(code) for code in self._model.supported_languages]
            raise RemediableError(
                f"speech.stt.language: the model {name} knows no language {language!r}.",
                f"{did_you_mean(language, known)} Give a code such as en, de or fr, or leave it empty to detect "
                "it.".strip(),
            )
        return f"<|{language}|>"


def _rank(decoded: Decoded) -> tuple[bool, float]:
    return not decoded.is_runaway, decoded.average_log_probability


def _load(name: str, threads: int, workers: int) -> tuple[Any, Any]:
    """Return the model for encoding and the one for decoding (see the module's docstring)."""
    path = whisper_model(name)
    try:
        import ctranslate2
        from faster_whisper import WhisperModel, download_model
    except ImportError as error:
        raise missing_package("faster-whisper", "whisper") from error
    try:
        model = WhisperModel(path, device="cpu", compute_type="int8", cpu_threads=threads, num_workers=workers)
        if threads == 1:
            return model, model.model
        # A hub name was fetched by the first load; this finds it in the cache.
        weights = path if Path(path).is_dir() else download_model(path)
        generator = ctranslate2.models.Whisper(
            weights, device="cpu", compute_type="int8", intra_threads=1, inter_threads=workers
        )
    except (OSError, RuntimeError, ValueError) as error:
        raise RemediableError(
            f"The Whisper model {name} ({path}) cannot be loaded: {error}.",
            "Give tiny.en or base (bundled), a name on the hub that can be reached, or the path of a CTranslate2 "
            "model.",
        ) from error
    return model, generator
