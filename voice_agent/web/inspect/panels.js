// Memory, records and prompts.

import { h, moment } from "./dom.js";

export function memoryPanel(memory) {
  if (!memory.length) return h("p", { class: "quiet" }, "Nothing has been written down.");
  return h("table", {},
    h("caption", { class: "unseen" }, "Memory"),
    h("thead", {}, h("tr", {}, ["Field", "Value", "Set by"].map((name) => h("th", { scope: "col" }, name)))),
    h("tbody", {}, memory.map((entry) => h("tr", { class: entry.current ? null : "gone", "data-field": `${entry.namespace}.${entry.key}` },
      h("td", {}, h("span", { class: "quiet" }, `${entry.namespace}.`), entry.key, entry.pii && [" ", h("span", { class: "chip warn" }, "personal")]),
      h("td", { class: "mono value" }, entry.value === null ? "–" : JSON.stringify(entry.value), !entry.current && " (forgotten)"),
      h("td", { class: "quiet" }, entry.source ?? "")))));
}

export function recordEntry(record, opened) {
  const known = ["conversation_id", "timestamp", "event_id", "sequence", "user_id", "deployment_environment", "session_id", "metadata"];
  const kind = Object.keys(record).find((key) => !known.includes(key)) ?? "record";
  const key = `record-${record.sequence}`;
  return h("details", { class: "entry", "data-sequence": record.sequence, open: opened.get(key), ontoggle: (event) => opened.set(key, event.target.open) },
    h("summary", {}, h("span", { class: "mono quiet" }, record.sequence), h("span", {}, kind.replaceAll("_", " ")), h("span", { class: "quiet" }, gist(kind, record[kind]))),
    h("pre", { tabindex: 0 }, JSON.stringify(record[kind], null, 2)));
}

function gist(kind, payload) {
  const text = payload?.text ?? payload?.tool ?? payload?.key ?? payload?.step ?? payload?.block ?? payload?.skill ?? payload?.outcome ?? payload?.status ?? "";
  return String(text).slice(0, 60);
}

export function promptsPanel(prompts, opened) {
  if (!prompts.enabled) return h("p", { class: "quiet" }, "Prompts are not kept: inspector.prompts is off.");
  if (!prompts.calls.length) return h("p", { class: "quiet" }, "No model was asked, or it is too long ago: the prompts of recent calls are kept in memory.");
  return h("div", {}, prompts.calls.map((call, index) => {
    const key = `prompt-${call.timestamp}-${index}`;
    const size = call.sections.reduce((sum, section) => sum + section.tokens, 0);
    return h("details", { class: "entry", "data-prompt": call.turn_id, open: opened.get(key), ontoggle: (event) => opened.set(key, event.target.open) },
      h("summary", {}, h("span", {}, `${index + 1}. ${call.purpose.replaceAll("_", " ")}`), h("span", { class: "quiet" }, `${call.model} · ${moment(call.timestamp)}${size ? ` · about ${size} tokens of instructions` : ""}`)),
      call.messages.map((message) => [h("h4", {}, message.name ? `${message.role}: ${message.name}` : message.role), message.content && h("pre", { tabindex: 0 }, message.content), asked(message.calls)]),
      call.tools.length > 0 && [h("h4", {}, "tools"), h("ul", {}, call.tools.map((tool) => h("li", {}, h("b", {}, tool.name), " ", tool.description)))],
      h("h4", {}, "reply"),
      call.reply ? [call.reply.text && h("pre", { tabindex: 0 }, call.reply.text), asked(call.reply.calls)] : h("p", { class: "quiet" }, "None: the call failed or was cancelled."));
  }));
}

const asked = (calls) => calls?.length > 0 && h("pre", { tabindex: 0 }, calls.map((call) => `${call.name} ${call.arguments_json}`).join("\n"));
