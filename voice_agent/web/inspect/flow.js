// Skills as flow charts: the steps of each block, which were done, which is next.

import { h, svg } from "./dom.js";

const WIDTH = 210, BOX = 40, GAP = 30, LEFT = 8, LANE = 26;

export function flowPanel(flow, opened) {
  if (!flow.activations.length) return h("p", { class: "quiet" }, "No skill has run yet.");
  // What a reader looks for is open: what goes on now, and what had more than one step.
  const isTold = (activation) => activation.status === "active" || activation.blocks.some((block) => block.done.length > 1);
  const nothingIs = !flow.activations.some(isTold);
  const last = flow.activations.length - 1;
  return h("div", {}, flow.activations.map((activation, index) => {
    const key = `skill-${activation.sequence}`;
    const open = opened.get(key) ?? (isTold(activation) || (nothingIs && index === last));
    return h("details", { class: "skill", open, ontoggle: (event) => opened.set(key, event.target.open) },
      h("summary", {}, activation.name, h("span", { class: `chip ${activation.status}` }, activation.status)),
      activation.blocks.length
        ? activation.blocks.map((place) => blockChart(place, flow.graphs[`${activation.skill}/${place.block}`]))
        : h("p", { class: "quiet" }, "Guided by its prose; no block was begun."));
  }).reverse());
}

function blockChart(place, graph) {
  const title = h("p", { class: "quiet" }, `Block ${place.block}`);
  if (!graph) return [title, h("p", { class: "quiet" }, `This project no longer has it. Done: ${place.done.join(", ") || "nothing"}.`)];
  return [title, chart(place, graph)];
}

export function chart(place, graph) {
  const done = new Set(place.done);
  const rows = new Map(graph.steps.map((step, index) => [step.id, index]));
  rows.set("END", graph.steps.length);
  const y = (index) => 4 + index * (BOX + GAP);
  const jumps = [];
  graph.steps.forEach((step, index) => step.next.forEach((branch) => {
    const to = rows.get(branch.to) ?? rows.get("END");
    if (to !== index + 1) jumps.push({ from: index, to, if: branch.if });
  }));
  // Short jumps lie inside, long ones outside; each has a lane of its own.
  jumps.sort((a, b) => Math.abs(a.to - a.from) - Math.abs(b.to - b.from));
  const width = LEFT + WIDTH + 18 + Math.max(jumps.length * LANE, 0) + (graph.steps.some((s) => s.next.some((n) => n.if)) ? 130 : 20);
  const height = y(graph.steps.length) + 34;
  const state = (step) => (step.id === place.step ? "current" : done.has(step.id) ? "done" : "ahead");
  const words = { current: "now", done: "done", ahead: "not reached" };
  const label = `Block ${graph.id}: ` + graph.steps.map((s) => `${s.id}, ${s.kind} ${s.label}, ${words[state(s)]}`).join("; ");
  return svg("svg", { class: "flow", viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": label },
    graph.steps.map((step, index) => {
      const below = step.next.find((branch) => (rows.get(branch.to) ?? rows.get("END")) === index + 1);
      return below && [line(index, y), below.if && caption(LEFT + WIDTH / 2 + 10, y(index) + BOX + GAP / 2 + 4, below.if)];
    }),
    jumps.map((jump, index) => arc(jump, y, LEFT + WIDTH + 16 + (index + 1) * LANE, jump.to === graph.steps.length)),
    graph.steps.map((step, index) => svg("g", { class: state(step) },
      svg("title", {}, `${step.id}: ${step.kind} ${step.label} (${words[state(step)]})`),
      svg("rect", { x: LEFT, y: y(index), width: WIDTH, height: BOX, rx: 9 }),
      svg("text", { x: LEFT + 12, y: y(index) + 17 }, short(step.id, 24)),
      svg("text", { class: "kind", x: LEFT + 12, y: y(index) + 32 }, short(`${step.kind} ${step.label}`.trim(), 31)),
      state(step) !== "ahead" && svg("text", { x: LEFT + WIDTH - 24, y: y(index) + 25 }, state(step) === "done" ? "✓" : "▶"))),
    svg("g", { class: "end" },
      svg("rect", { x: LEFT + WIDTH / 2 - 34, y: y(graph.steps.length), width: 68, height: 26, rx: 13 }),
      svg("text", { x: LEFT + WIDTH / 2, y: y(graph.steps.length) + 17, "text-anchor": "middle" }, "end")));
}

function line(index, y) {
  const x = LEFT + WIDTH / 2, from = y(index) + BOX, to = y(index + 1);
  return [svg("path", { d: `M${x} ${from}V${to - 5}` }), svg("path", { class: "tip", d: `M${x - 4} ${to - 6}h8l-4 6z` })];
}

function arc(jump, y, x, isEnd) {
  const side = LEFT + WIDTH, from = y(jump.from) + BOX / 2 + 6, to = y(jump.to) + (jump.to > jump.from ? 13 : BOX / 2 - 8);
  const tip = isEnd ? LEFT + WIDTH / 2 + 34 : side;
  return [
    svg("path", { d: `M${side} ${from}H${x - 6}q6 0 6 ${to > from ? 6 : -6}V${to + (to > from ? -6 : 6)}q0 ${to > from ? 6 : -6} -6 ${to > from ? 6 : -6}H${tip + 6}` }),
    svg("path", { class: "tip", d: `M${tip + 7} ${to - 4}v8l-7 -4z` }),
    jump.if && caption(x + 6, from + 14, jump.if),
  ];
}

function caption(x, y, condition) {
  const bare = condition.replaceAll(/session\.[\w-]+\./g, "");
  return svg("text", { class: "if", x, y }, svg("title", {}, condition), short(bare, 20));
}

const short = (text, length) => (text.length > length ? `${text.slice(0, length - 1)}…` : text);
