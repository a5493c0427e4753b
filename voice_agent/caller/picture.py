"""The timeline picture: both voices on one time axis, with words, latencies and what the agent decided when."""

from __future__ import annotations

import wave
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voice_agent.caller.picture_layout import (
    MARK_KINDS,
    Caption,
    Layout,
    Side,
    axis_step,
    caption_width,
    lay_out,
    wrap,
)
from voice_agent.diagnostics import RemediableError

WIDTH_PX = 1600
_DPI = 100
_MARGIN_PX = 64
_HEADER_PX, _FOOTER_PX = 78, 58
_ROW_PX, _ROW_GAP_PX = 330, 26

# Heights within a row, in pixels from its bottom.
_AGENT_Y, _CALLER_Y, _WAVE_PX = 106, 228, 28
_LANES_Y, _LANE_PX = 140, 7
_AGENT_TEXT_Y, _CALLER_TEXT_Y = 70, 262
_LINE_PX, _CHARACTER_PT = 15, 9

_INK, _QUIET_INK, _MUTED, _GRID, _PAPER = "#1f2937", "#5b6675", "#9aa3af", "#e9edf2", "#ffffff"
_VOICE = {Side.CALLER: "#2f6fde", Side.AGENT: "#12876b"}
_RESPONSE, _RESPONSE_INK, _BARGE_IN = "#fbe3ae", "#8a5a00", "#d0312d"
# Colour, shape and size of each kind of mark.
_MARKS = {
    "endpoint": ("#7048c6", "D", 4.5),
    "transcript": ("#3b82c4", "o", 5),
    "first token": ("#e07b00", "^", 5),
    "first text": ("#a8710a", "s", 5),
    "first audio": ("#12876b", ">", 5),
    "pause": ("#64748b", "|", 9),
    "decision": ("#d0312d", "D", 4.5),
    "cancel": ("#7f1d1d", "X", 4.5),
}
_QUIETEST_PEAK = 1000
"""A side that never gets louder is drawn flat instead of as enlarged noise."""


def draw_timeline(account: Mapping[str, Any], audio: Path, picture: Path) -> None:
    """Draw the call recorded in ``audio`` (stereo WAV, caller left) as a PNG of `WIDTH_PX` pixels.

    Args:
        account: The call's account (see `account.as_json`).

    Raises:
        RemediableError: matplotlib is missing, the recording cannot be read, or the picture not written.
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise RemediableError(
            "Timeline pictures need matplotlib.", 'Install it with pip install "voice-agent[picture]".'
        ) from error
    sides, rate = _read(audio)
    seconds = len(sides[Side.CALLER]) / rate
    layout = lay_out(account, seconds)
    height = _HEADER_PX + len(layout.rows) * (_ROW_PX + _ROW_GAP_PX) + _FOOTER_PX
    figure = Figure(figsize=(WIDTH_PX / _DPI, height / _DPI), dpi=_DPI, facecolor=_PAPER)
    canvas = FigureCanvasAgg(figure)
    _draw_header(figure, account, seconds, height)
    for index, row in enumerate(layout.rows):
        bottom = height - _HEADER_PX - (index + 1) * _ROW_PX - index * _ROW_GAP_PX
        _Row(figure, canvas, layout, row, bottom / height, height).draw(sides, rate)
    _draw_legend(figure, height)
    try:
        figure.savefig(picture, format="png", dpi=_DPI)
    except OSError as error:
        raise RemediableError(f"Cannot write {picture}: {error.strerror}.", "Make room on the disk.") from error


def _read(audio: Path) -> tuple[dict[Side, NDArray[np.int16]], int]:
    try:
        with wave.open(str(audio), "rb") as file:
            content, rate = file.readframes(file.getnframes()), file.getframerate()
    except (OSError, EOFError, wave.Error) as error:
        raise RemediableError(f"{audio} cannot be read ({error}).", "Record the call again.") from error
    stereo = np.frombuffer(content, "<i2").reshape(-1, 2)
    return {Side.CALLER: stereo[:, 0], Side.AGENT: stereo[:, 1]}, rate


class _Row:
    """One row of the picture: an axis in seconds across and pixels up."""

    def __init__(
        self, figure: Any, canvas: Any, layout: Layout, row: tuple[float, float], bottom: float, height: int
    ) -> None:
        self._layout, self._row, self._renderer = layout, row, canvas.get_renderer()
        self._scale_s = max(end - start for start, end in layout.rows)
        self._px_per_s = (WIDTH_PX - 2 * _MARGIN_PX) / self._scale_s
        left, width = _MARGIN_PX / WIDTH_PX, 1 - 2 * _MARGIN_PX / WIDTH_PX
        self._axes = figure.add_axes((left, bottom, width, _ROW_PX / height))
        self._axes.set_xlim(row[0], row[0] + self._scale_s)
        self._axes.set_ylim(0, _ROW_PX)
        self._axes.set_facecolor("none")

    def draw(self, sides: Mapping[Side, NDArray[np.int16]], rate: int) -> None:
        self._draw_axis()
        self._draw_spans()
        for side, y in ((Side.CALLER, _CALLER_Y), (Side.AGENT, _AGENT_Y)):
            self._draw_wave(sides[side], rate, y, _VOICE[side])
            style = {"color": _VOICE[side], "fontsize": 9.5, "fontweight": "bold"}
            self._axes.text(self._row[0] - 10 / self._px_per_s, y, side.value, ha="right", va="center", **style)
        self._draw_marks()
        for caption in self._layout.captions:
            if self._holds(caption.at):
                self._draw_caption(caption)

    def _holds(self, at: float) -> bool:
        return self._row[0] <= at < self._row[1]

    def _draw_axis(self) -> None:
        axes, (start, end) = self._axes, self._row
        for spine in axes.spines.values():
            spine.set_visible(False)
        step = axis_step(self._scale_s)
        ticks = np.arange(np.ceil(start / step) * step, end + 1e-6, step)
        axes.set_xticks(ticks, [_clock(t) for t in ticks])
        axes.set_yticks([])
        axes.tick_params(axis="x", length=0, labelsize=8, labelcolor=_MUTED, pad=2)
        axes.vlines(ticks, 0, _ROW_PX, color=_GRID, linewidth=0.8, zorder=0)
        axes.hlines([_CALLER_Y, _AGENT_Y], start, end, color=_GRID, linewidth=0.8, zorder=0)

    def _draw_wave(self, pcm: NDArray[np.int16], rate: int, y: float, color: str) -> None:
        start, end = self._row
        piece = pcm[int(start * rate) : int(end * rate)].astype(np.float32)
        columns = max(1, int((end - start) * self._px_per_s))
        size = max(1, len(piece) // columns)
        blocks = piece[: len(piece) // size * size].reshape(-1, size)
        if not len(blocks):
            return
        scale = _WAVE_PX / max(float(np.abs(pcm.astype(np.int32)).max()), _QUIETEST_PEAK)
        times = start + (np.arange(len(blocks)) + 0.5) * size / rate
        low, high = y + blocks.min(axis=1) * scale, y + blocks.max(axis=1) * scale
        self._axes.fill_between(times, low - 0.5, high + 0.5, color=color, linewidth=0, zorder=3)

    def _draw_spans(self) -> None:
        """Shade how long the caller waited, and how long the agent went on once interrupted."""
        axes = self._axes
        for span in self._layout.responses:
            if self._holds(span.start):
                axes.axvspan(span.start, span.end, 70 / _ROW_PX, 264 / _ROW_PX, color=_RESPONSE, linewidth=0, zorder=1)
                self._label((span.start + span.end) / 2, _CALLER_Y - 4, span.label, _RESPONSE_INK)
        for span in self._layout.stops:
            if self._holds(span.start):
                axes.vlines(span.start, 70, 262, color=_BARGE_IN, linewidth=1.4, linestyle=(0, (4, 2)), zorder=4)
                axes.axvspan(
                    span.start,
                    span.end,
                    72 / _ROW_PX,
                    138 / _ROW_PX,
                    color=_BARGE_IN,
                    alpha=0.22,
                    linewidth=0,
                    zorder=2,
                )
                self._label(span.end + 5 / self._px_per_s, _AGENT_Y, span.label, _BARGE_IN, ha="left")

    def _label(self, at: float, y: float, text: str, color: str, ha: str = "center") -> None:
        halo = {"facecolor": _PAPER, "edgecolor": "none", "alpha": 0.75, "pad": 0.8}
        self._axes.text(
            *(at, y, text), color=color, fontsize=8.5, fontweight="bold", ha=ha, va="center", zorder=6, bbox=halo
        )

    def _draw_marks(self) -> None:
        for mark in self._layout.marks:
            if self._holds(mark.at):
                color, shape, size = _MARKS[mark.kind]
                y = _LANES_Y + (len(MARK_KINDS) - 1 - MARK_KINDS.index(mark.kind)) * _LANE_PX
                self._axes.vlines(mark.at, _LANES_Y - 4, _LANES_Y + 56, color=color, linewidth=0.6, alpha=0.5, zorder=4)
                self._axes.plot(
                    [mark.at], [y], marker=shape, color=color, markersize=size, linestyle="none", zorder=7, mew=1.6
                )

    def _draw_caption(self, caption: Caption) -> None:
        from matplotlib.font_manager import FontProperties

        font = FontProperties(size=_CHARACTER_PT)
        texts = [word.text for word in caption.words]
        sizes = [self._renderer.get_text_width_height_descent(text, font, False)[0] for text in texts]
        space = self._renderer.get_text_width_height_descent("n", font, False)[0] * 0.55
        room = caption_width(caption, self._layout.captions, self._row, lambda at: (at - self._row[0]) * self._px_per_s)
        lines = wrap(sizes, space, max(room - 14, 110))
        left_out = sum(map(len, lines)) < len(texts)
        top = _CALLER_TEXT_Y + (len(lines) - 1) * _LINE_PX + 6 if caption.side is Side.CALLER else _AGENT_TEXT_Y - 10
        for number, line in enumerate(lines):
            x, y = self._first_x(caption.at, lines, sizes, space), top - number * _LINE_PX
            for index in line:
                word = caption.words[index]
                last = left_out and index == lines[-1][-1]
                self._draw_word(x, y, texts[index] + (" …" if last else ""), sizes[index], heard=word.heard)
                x += (sizes[index] + space) / self._px_per_s

    def _first_x(self, at: float, lines: list[list[int]], sizes: list[float], space: float) -> float:
        """Start where the words start, but not so late that they leave the picture."""
        widest = max(sum(sizes[i] + space for i in line) for line in lines)
        return max(self._row[0], min(at, self._row[0] + self._scale_s - widest / self._px_per_s))

    def _draw_word(self, x: float, y: float, text: str, width: float, *, heard: bool) -> None:
        self._axes.text(
            *(x, y, text), color=_INK if heard else _MUTED, fontsize=_CHARACTER_PT, ha="left", va="center", zorder=6
        )
        if not heard:
            self._axes.hlines(y - 0.5, x, x + width / self._px_per_s, color=_MUTED, linewidth=1, zorder=7)


def _draw_header(figure: Any, account: Mapping[str, Any], seconds: float, height: int) -> None:
    left, top = _MARGIN_PX / WIDTH_PX, 1 - 22 / height
    title = f"Call of {_clock(seconds)}" + ("" if account["ok"] else " — incomplete")
    figure.text(left, top, title, fontsize=14, fontweight="bold", color=_INK, va="center")
    waits = sorted(t["response_s"] for t in account["turns"][1:] if t["response_s"] is not None)
    stops = sorted(t["stop_s"] for t in account["turns"] if t["stop_s"] is not None)
    facts = [account.get("url") or "", f"greeting after {_seconds(account['turns'][0]['response_s'])}"]
    if waits:
        facts.append(f"answers after {_seconds(waits[len(waits) // 2])} (median of {len(waits)})")
    if stops:
        facts.append(f"silent {_seconds(stops[len(stops) // 2])} after a barge-in")
    figure.text(
        left, top - 24 / height, "   ·   ".join(filter(None, facts)), fontsize=9.5, color=_QUIET_INK, va="center"
    )


def _draw_legend(figure: Any, height: int) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles: list[Any] = [
        Patch(facecolor=_RESPONSE, label="caller waits"),
        Line2D([], [], color=_BARGE_IN, linestyle=(0, (4, 2)), label="barge-in onset"),
        Patch(facecolor=_BARGE_IN, alpha=0.22, label="agent still audible"),
    ]
    for kind in MARK_KINDS:
        color, shape, size = _MARKS[kind]
        handles.append(Line2D([], [], color=color, marker=shape, ls="none", markersize=size, mew=1.6, label=kind))
    handles.append(Line2D([], [], color=_MUTED, linewidth=1, label="words not heard"))
    figure.legend(
        handles=handles,
        loc="lower left",
        bbox_to_anchor=((_MARGIN_PX - 8) / WIDTH_PX, 6 / height),
        ncols=len(handles),
        frameon=False,
        fontsize=8.5,
        handletextpad=0.5,
        columnspacing=1.3,
        labelcolor=_QUIET_INK,
    )


def _clock(seconds: float) -> str:
    minutes, rest = divmod(seconds, 60)
    return f"{int(minutes)}:{rest:04.1f}" if rest % 1 > 0.049 and seconds else f"{int(minutes)}:{int(rest):02d}"


def _seconds(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f} s"
