// The call on one axis: both voices, what was said when, who spoke over whom, and the place that is being played.

import { clock, h, svg } from "./dom.js";

const HEIGHT = 132, TOP = 8, LANE = 48, PEAKS_PER_SECOND = 20;

export class CallTimeline {
  // `onSeek(seconds)` is called when a place is chosen.
  constructor(onSeek) {
    this.onSeek = onSeek;
    this.zoom = 1;
    this.length = 1;
    this.root = h("div", { class: "zoomed", tabindex: 0, role: "group", "aria-label": "Timeline of the call" });
    this.line = null;
    new ResizeObserver(() => this.redraw()).observe(this.root);
  }

  show(call, turns, peaks) {
    this.shown = { call, turns, peaks };
    this.drawnAt = 0;
    this.redraw();
  }

  redraw() {
    const outer = this.root.clientWidth;
    if (!this.shown || !outer || outer === this.drawnAt) return;
    this.drawnAt = outer;
    const { call, turns, peaks } = this.shown;
    const ends = turns.flatMap((turn) => Object.values(turn.times));
    this.length = Math.max(1, call.seconds ?? 0, peaks.length / 2 / PEAKS_PER_SECOND, ...ends);
    const width = (this.width = outer * this.zoom);
    const x = (seconds) => (seconds / this.length) * width;
    const lanes = { caller: TOP, agent: TOP + LANE + 6 };
    this.line = svg("line", { class: "head-line", x1: 0, x2: 0, y1: TOP, y2: TOP + 2 * LANE + 6, visibility: "hidden" });
    const drawing = svg("svg", {
      class: "wave", viewBox: `0 0 ${width} ${HEIGHT}`, width, height: HEIGHT, role: "img",
      "aria-label": describe(call, turns, this.length),
      onclick: (event) => this.onSeek(((event.clientX - drawing.getBoundingClientRect().left) / width) * this.length),
    },
      Object.values(lanes).map((y) => svg("rect", { class: "lane", x: 0, y, width, height: LANE, rx: 6 })),
      ticks(this.length, width, x),
      turns.map((turn) => [
        bar(turn.times.speech_start, turn.times.speech_end, "bar-caller", lanes.caller, x, peaks.length, `Caller: ${turn.user?.text ?? ""}`),
        bar(turn.times.first_audio, turn.times.last_audio, "bar-agent", lanes.agent, x, peaks.length, `Agent: ${turn.heard}`),
      ]),
      peaks.length > 0 && [wave(peaks, 0, lanes.caller, x, width, "caller"), wave(peaks, 1, lanes.agent, x, width, "agent")],
      turns.flatMap((turn) => turn.pauses.map((pause) => interruption(pause, x, lanes))),
      this.line);
    drawing.style.width = `${width}px`;
    this.root.replaceChildren(drawing);
    this.moveTo(this.at ?? 0);
  }

  zoomTo(zoom) {
    const middle = (this.root.scrollLeft + this.root.clientWidth / 2) / (this.width || 1);
    this.zoom = zoom;
    this.drawnAt = 0;
    this.redraw();
    this.root.scrollLeft = middle * this.width - this.root.clientWidth / 2;
  }

  moveTo(seconds) {
    this.at = seconds;
    if (!this.line) return;
    const x = (seconds / this.length) * this.width;
    for (const end of ["x1", "x2"]) this.line.setAttribute(end, x);
    this.line.setAttribute("visibility", seconds > 0 ? "visible" : "hidden");
  }
}

function bar(from, to, style, y, x, hasPeaks, words) {
  if (from === undefined || to === undefined || to < from) return null;
  return svg("rect", { class: `${style}${hasPeaks ? "" : " plain"}`, x: x(from), y, width: Math.max(2, x(to) - x(from)), height: LANE, rx: 4 }, svg("title", {}, words));
}

function wave(peaks, side, y, x, width, style) {
  // One column for each pixel: the loudest of what falls into it.
  const count = peaks.length / 2, columns = Math.max(1, Math.min(count, Math.floor(width))), middle = y + LANE / 2;
  const up = [], down = [];
  for (let column = 0; column < columns; column++) {
    let loudest = 0;
    const end = Math.max(Math.floor(((column + 1) / columns) * count), Math.floor((column / columns) * count) + 1);
    for (let i = Math.floor((column / columns) * count); i < end; i++) loudest = Math.max(loudest, peaks[2 * i + side]);
    // Loudness is heard by its ratio: the root shows quiet voices too.
    const half = Math.max(0.5, (Math.sqrt(loudest / 255) * (LANE - 6)) / 2);
    // A step, not a slope: what is loud is loud for all of its column and nowhere else.
    for (const edge of [column, column + 1]) {
      const at = x((edge / columns) * (count / PEAKS_PER_SECOND)).toFixed(1);
      up.push(`${at} ${(middle - half).toFixed(1)}`);
      down.push(`${at} ${(middle + half).toFixed(1)}`);
    }
  }
  return svg("path", { class: `peaks ${style}`, d: `M${up.join("L")}L${down.reverse().join("L")}Z` });
}

function interruption(pause, x, lanes) {
  const confirmed = pause.outcome === "confirmed";
  const words = confirmed ? "The caller interrupted" : `The caller spoke over it: ${pause.outcome.replaceAll("_", " ") || "undecided"}`;
  const bottom = lanes.agent + LANE;
  return svg("g", {},
    svg("title", {}, `${words}, at ${clock(pause.onset)}`),
    pause.pause !== null && pause.decision !== null && svg("rect", { class: "pause", x: x(pause.pause), y: lanes.agent, width: Math.max(2, x(pause.decision) - x(pause.pause)), height: LANE }),
    pause.onset !== null && svg("line", { class: `onset${confirmed ? "" : " soft"}`, x1: x(pause.onset), x2: x(pause.onset), y1: lanes.caller, y2: bottom }));
}

function ticks(length, width, x) {
  const step = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600].find((each) => (each / length) * width >= 64) ?? 900;
  const found = [];
  for (let at = 0; at <= length; at += step) {
    found.push(svg("line", { class: "tick", x1: x(at), x2: x(at), y1: TOP, y2: TOP + 2 * LANE + 6 }));
    if (x(at) < width - 26) found.push(svg("text", { x: x(at) + 2, y: HEIGHT - 6 }, `${Math.floor(at / 60)}:${String(at % 60).padStart(2, "0")}`));
  }
  return found;
}

function describe(call, turns, length) {
  const over = turns.flatMap((turn) => turn.pauses);
  const taken = over.filter((pause) => pause.outcome === "confirmed").length;
  return `${clock(length)} long, ${turns.length} turns, ${over.length} voices over the agent, of which ${taken} interrupted it.`;
}
