// Where the time of each turn went: from the caller's last word to the agent's first.

import { clock, h, svg } from "./dom.js";

const STAGES = [
  ["endpoint", "endpoint", "Waiting for the end of speech"],
  ["model_request", "start", "Before the model"],
  ["first_token", "token", "Model's first token"],
  ["first_sentence", "sentence", "First sentence"],
  ["first_audio", "audio", "First audio"],
];

export function turnsPanel(turns) {
  const told = turns.filter((turn) => Object.keys(turn.times).length);
  if (!told.length) return h("p", { class: "quiet" }, "No turn was timed: turns by text have no audio, and a running turn is told when it ends.");
  const lengths = told.map((turn) => (turn.times.first_audio ?? origin(turn)) - origin(turn));
  const longest = Math.max(0.5, ...lengths) * 1.02;
  return h("div", { class: "turns" },
    h("ul", { class: "legend" }, STAGES.map(([, style, words]) => h("li", {}, h("i", { class: `s-${style}` }), words))),
    told.map((turn) => row(turn, longest)));
}

const origin = (turn) => turn.times.speech_end ?? turn.times.endpoint ?? turn.times.model_request ?? turn.times.first_text ?? turn.times.first_audio ?? 0;

function row(turn, longest) {
  const begin = origin(turn), width = 600, x = (instant) => ((instant - begin) / longest) * width;
  let before = begin;
  const segments = [];
  for (const [name, style, words] of STAGES) {
    const instant = turn.times[name];
    if (instant === undefined || instant < before) continue;
    segments.push({ style, words, from: before, to: instant });
    before = instant;
  }
  const total = turn.times.first_audio === undefined ? null : turn.times.first_audio - begin;
  const label = segments.map((s) => `${s.words} ${seconds(s.to - s.from)}`).join(", ");
  const mark = turn.times.stt_final;
  return h("div", { class: "turn", "data-turn": turn.id },
    h("div", { class: "line" },
      h("span", {}, `${turn.number ?? "–"}. ${caption(turn)}`),
      h("span", { class: "mono" }, total === null ? "no audio" : `${seconds(total)} to first audio`)),
    svg("svg", { class: "fall", viewBox: `0 0 ${width} 22`, height: 22, preserveAspectRatio: "none", role: "img", "aria-label": label || "nothing was timed" },
      svg("line", { class: "grid", x1: 0, x2: width, y1: 21.5, y2: 21.5 }),
      segments.map((s) => svg("rect", { class: s.style, x: x(s.from), y: 4, width: Math.max(1.5, x(s.to) - x(s.from)), height: 13 }, svg("title", {}, `${s.words}: ${seconds(s.to - s.from)}`))),
      mark !== undefined && mark >= begin && svg("line", { class: "mark", x1: x(mark), x2: x(mark), y1: 1, y2: 20 }, svg("title", {}, `Transcript final: ${seconds(mark - begin)}`))),
    h("details", { class: "entry" }, h("summary", {}, "All instants"),
      h("table", {}, h("tbody", {}, Object.entries(turn.times).sort((a, b) => a[1] - b[1]).map(([name, instant]) =>
        h("tr", {}, h("th", { scope: "row" }, name.replaceAll("_", " ")), h("td", { class: "mono" }, clock(instant)), h("td", { class: "mono" }, `${instant >= begin ? "+" : "−"}${seconds(Math.abs(instant - begin))}`)))))));
}

function caption(turn) {
  if (turn.user?.kind === "intent") return turn.user.text === "/session_start" ? "Greeting" : turn.user.text;
  return turn.user?.text ?? "";
}

const seconds = (value) => (value < 1 ? `${Math.round(value * 1000)} ms` : `${value.toFixed(2)} s`);
