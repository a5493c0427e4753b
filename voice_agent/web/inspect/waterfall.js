// Where the time of each turn went: from the caller's last word to the agent's first, or to the whole text.

import { clock, h, svg } from "./dom.js";

const STAGES = [
  ["endpoint", "endpoint", "Waiting for the end of speech"],
  ["model_request", "start", "Before the model"],
  ["first_token", "token", "Model's first token"],
  ["first_sentence", "sentence", "First sentence"],
  ["first_audio", "audio", "First audio"],
];
const TEXT_STAGES = [
  ["model_request", "start", "Before the model"],
  ["first_token", "token", "Model's first token"],
  ["first_text", "sentence", "First text"],
  ["last_text", "audio", "Whole text"],
];

// A turn by text belongs to no call: its times begin when the words came.
const isText = (turn) => turn.call_id === null;
const stagesOf = (turn) => (isText(turn) ? TEXT_STAGES : STAGES);
const endOf = (turn) => (isText(turn) ? turn.times.last_text ?? turn.times.teardown : turn.times.first_audio);

export function turnsPanel(turns) {
  const told = turns.filter((turn) => Object.keys(turn.times).length);
  if (!told.length) return h("p", { class: "quiet" }, "No turn was timed yet: a running turn is told when it ends.");
  const lengths = told.map((turn) => (endOf(turn) ?? origin(turn)) - origin(turn));
  const longest = Math.max(told.every(isText) ? 0.02 : 0.5, ...lengths) * 1.02;
  const used = new Map(told.flatMap(stagesOf).map(([, style, words]) => [`${style} ${words}`, [style, words]]));
  return h("div", { class: "turns" },
    h("ul", { class: "legend" }, [...used.values()].map(([style, words]) => h("li", {}, h("i", { class: `s-${style}` }), words))),
    told.map((turn) => row(turn, longest)));
}

const origin = (turn) => turn.times.speech_end ?? turn.times.endpoint ?? turn.times.model_request ?? turn.times.first_text ?? turn.times.first_audio ?? 0;

function row(turn, longest) {
  const begin = origin(turn), width = 600, x = (instant) => ((instant - begin) / longest) * width;
  let before = begin;
  const segments = [];
  const stages = stagesOf(turn).filter(([name]) => turn.times[name] !== undefined);
  // A configured line may come before the model's first token.
  if (isText(turn)) stages.sort(([one], [other]) => turn.times[one] - turn.times[other]);
  for (const [name, style, words] of stages) {
    const instant = turn.times[name];
    if (instant < before) continue;
    segments.push({ style, words, from: before, to: instant });
    before = instant;
  }
  const tools = isText(turn) ? turn.tools.filter((tool) => tool.seconds !== null) : [];
  const marks = tools.map((tool) => ({ at: begin + tool.seconds, words: `${tool.tool} ${tool.success ? "answered" : "failed"}` }));
  if (turn.times.stt_final >= begin) marks.push({ at: turn.times.stt_final, words: "Transcript final" });
  const label = [...segments.map((s) => `${s.words} ${seconds(s.to - s.from)}`), ...tools.map((_, index) => `${marks[index].words} after ${seconds(marks[index].at - begin)}`)].join(", ");
  return h("div", { class: "turn", "data-turn": turn.id },
    h("div", { class: "line" },
      h("span", {}, `${turn.number ?? "–"}. ${caption(turn)}`),
      h("span", { class: "mono" }, total(turn, begin))),
    svg("svg", { class: "fall", viewBox: `0 0 ${width} 22`, height: 22, preserveAspectRatio: "none", role: "img", "aria-label": label || "nothing was timed" },
      svg("line", { class: "grid", x1: 0, x2: width, y1: 21.5, y2: 21.5 }),
      segments.map((s) => svg("rect", { class: s.style, x: x(s.from), y: 4, width: Math.max(1.5, x(s.to) - x(s.from)), height: 13 }, svg("title", {}, `${s.words}: ${seconds(s.to - s.from)}`))),
      marks.map((mark) => svg("line", { class: "mark", x1: x(mark.at), x2: x(mark.at), y1: 1, y2: 20 }, svg("title", {}, `${mark.words}: ${seconds(mark.at - begin)}`)))),
    h("details", { class: "entry" }, h("summary", {}, "All instants"),
      h("table", {}, h("tbody", {}, Object.entries(turn.times).sort((a, b) => a[1] - b[1]).map(([name, instant]) =>
        h("tr", {}, h("th", { scope: "row" }, name.replaceAll("_", " ")), h("td", { class: "mono" }, clock(instant)), h("td", { class: "mono" }, `${instant >= begin ? "+" : "−"}${seconds(Math.abs(instant - begin))}`)))))));
}

function total(turn, begin) {
  const end = endOf(turn);
  if (!isText(turn)) return end === undefined ? "no audio" : `${seconds(end - begin)} to first audio`;
  const first = turn.times.first_text;
  return first === undefined ? "no text" : `${seconds(first - begin)} to first text, ${seconds(end - begin)} in all`;
}

function caption(turn) {
  if (turn.user?.kind === "intent") return turn.user.text === "/session_start" ? "Greeting" : turn.user.text;
  return turn.user?.text ?? "";
}

const seconds = (value) => (value < 1 ? `${Math.round(value * 1000)} ms` : `${value.toFixed(2)} s`);
