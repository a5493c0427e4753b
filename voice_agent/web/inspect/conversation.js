// One conversation: its head, timeline, transcript and panels. Reads it anew when something of it happens.

import * as api from "./api.js";
import { byId, clock, h, moment } from "./dom.js";
import { flowPanel } from "./flow.js";
import { memoryPanel, promptsPanel, recordEntry } from "./panels.js";
import { CallTimeline } from "./timeline.js";
import { lines } from "./transcript.js";
import { turnsPanel } from "./waterfall.js";

const TABS = ["Flow", "Memory", "Turns", "Prompts", "Events"];
const PAGE = 200;

export class ConversationView {
  // `personal()` tells whether personal data is to be shown; `onDeleted()` is called when the conversation has gone.
  constructor(id, personal, onDeleted) {
    this.id = id;
    this.personal = personal;
    this.onDeleted = onDeleted;
    this.opened = new Map();
    this.tab = "Flow";
    this.call = null;
    this.peaks = new Uint8Array();
    this.lines = [];
    this.records = [];
    this.timeline = new CallTimeline((seconds) => this.seek(this.call?.id, seconds));
    this.audio = h("audio", { controls: true, preload: "metadata", "aria-label": "Recording of the call" });
    this.audio.addEventListener("timeupdate", () => this.follow());
    this.build();
  }

  path(rest = "", query = {}) {
    const asked = new URLSearchParams(this.personal() ? { ...query, personal: "show" } : query).toString();
    return `/conversations/${encodeURIComponent(this.id)}${rest}${asked ? `?${asked}` : ""}`;
  }

  build() {
    this.head = h("div", { class: "head" });
    this.talk = h("ol", { class: "talk", "aria-label": "Transcript" });
    this.panel = h("div", { role: "tabpanel", id: "panel", tabindex: 0 });
    this.callChoice = h("select", { "aria-label": "Call", onchange: () => this.choose(this.callChoice.value) });
    this.playerRow = h("div", { class: "player" });
    this.zoom = h("select", { "aria-label": "Zoom", onchange: () => this.timeline.zoomTo(Number(this.zoom.value)) },
      [1, 2, 4, 8, 16].map((times) => h("option", { value: times }, `${times}×`)));
    this.timelineCard = h("section", { class: "card", "aria-labelledby": "time-title" },
      h("h3", { id: "time-title" }, "Timeline"), this.timeline.root, this.playerRow,
      h("ul", { class: "legend" }, [["caller", "Caller"], ["agent", "Agent, as heard"], ["pause", "Agent paused"], ["onset", "Interruption"]].map(([style, words]) => h("li", {}, h("i", { class: style }), words))));
    this.tabs = h("div", { class: "tabs", role: "tablist", "aria-label": "Details" }, TABS.map((name) => h("button", {
      type: "button", role: "tab", id: `tab-${name}`, "aria-controls": "panel", "aria-selected": name === this.tab, tabindex: name === this.tab ? 0 : -1,
      onclick: () => this.select(name), onkeydown: (event) => this.arrow(event, name),
    }, name)));
    byId("conversation").replaceChildren(this.head, this.timelineCard, h("div", { class: "columns" },
      h("section", { class: "card", "aria-labelledby": "talk-title" }, h("h3", { id: "talk-title" }, "Transcript"), this.talk),
      h("section", { class: "card", "aria-label": "Details" }, this.tabs, this.panel)));
  }

  async load() {
    const told = await api.json(this.path());
    if (this.closed) return;
    this.told = told;
    const current = told.calls.find((call) => call.id === this.call?.id) ?? told.calls.at(-1) ?? null;
    const hasEnded = current && !current.live && this.call?.live;
    const isOther = current?.id !== this.call?.id;
    this.call = current;
    this.showHead();
    this.showTalk();
    await this.showCall(isOther || hasEnded);
    await this.showPanel(true);
  }

  showHead() {
    const { told } = this;
    const last = told.calls.at(-1);
    const state = told.live ? "live" : told.outcome ?? "open";
    const download = (rest, name) => () => api.save(this.path(rest), name).catch(this.fail);
    this.head.replaceChildren(
      h("a", { class: "button back", href: "#/" }, "← All"),
      h("h2", {}, told.id),
      h("span", { class: `chip ${state === "disconnected" ? "" : state}` }, state),
      h("span", { class: "grow" }),
      h("button", { type: "button", onclick: download("/export", `${told.id}.json`) }, "Export"),
      h("button", { type: "button", class: "danger", disabled: told.live, onclick: () => this.remove() }, "Delete"),
      h("div", { class: "facts" },
        told.caller !== told.id && h("span", {}, `Caller ${told.caller}`),
        h("span", {}, moment(told.started_at)),
        last && h("span", {}, `${told.calls.length > 1 ? `${told.calls.length} calls, the last ` : ""}by ${last.channel}${last.seconds ? `, ${clock(last.seconds)} long` : ""}`),
        last?.reason && h("span", {}, last.reason.replaceAll("_", " ")),
        h("span", {}, `${told.turns.length} turns`),
        !told.complete && h("span", {}, "only the newest records are shown"),
        h("span", {}, told.personal_data ? "Personal data is shown" : "Personal data is hidden; recordings hold what was said")));
  }

  showTalk() {
    const isAtEnd = window.innerHeight + window.scrollY >= document.body.scrollHeight - 80;
    this.lines = lines(this.told, (call, seconds) => this.seek(call, seconds, true));
    this.talk.replaceChildren(...this.lines.map((line) => line.element));
    if (this.told.live && isAtEnd && !this.isFirst) window.scrollTo({ top: document.body.scrollHeight });
    this.follow();
  }

  async showCall(isOther) {
    const { call, told } = this;
    this.timelineCard.hidden = !call;
    if (!call) return;
    this.callChoice.replaceChildren(...told.calls.map((each, index) => h("option", { value: each.id, selected: each.id === call.id }, `Call ${index + 1}`)));
    const isPlayable = Boolean(call.recording) && !call.live;
    const path = `/calls/${encodeURIComponent(call.id)}`;
    if (call.recording && (isOther || call.live)) this.peaks = await api.bytes(this.path(`${path}/peaks`)).catch(() => new Uint8Array());
    else if (!call.recording) this.peaks = new Uint8Array();
    if (isOther) {
      if (isPlayable) this.audio.src = await api.playable(this.path(`${path}/recording`)).catch(() => "");
      else this.audio.removeAttribute("src");
    }
    const remarks = call.live ? "The call is going on." : call.recording ? (call.recording_whole === false ? "The recording ended before the call." : "") : "This call was not recorded, or its recording was deleted.";
    const wanted = [
      told.calls.length > 1 && this.callChoice, isPlayable && this.audio,
      isPlayable && h("button", { type: "button", onclick: () => api.save(this.path(`${path}/recording`), call.recording).catch(this.fail) }, "Save audio"),
      remarks && h("span", { class: "quiet" }, remarks), h("span", { class: "grow" }), h("label", {}, "Zoom", this.zoom),
    ].filter(Boolean);
    // An element that plays must stay where it is: moving it stops it.
    if (!(isPlayable && this.playerRow.contains(this.audio)) || isOther) this.playerRow.replaceChildren(...wanted);
    this.timeline.show(call, told.turns.filter((turn) => turn.call_id === call.id), this.peaks);
  }

  choose(id) {
    this.call = this.told.calls.find((call) => call.id === id);
    this.showCall(true).catch(this.fail);
  }

  async seek(callId, seconds, play = false) {
    if (callId && callId !== this.call?.id) {
      this.call = this.told.calls.find((call) => call.id === callId);
      await this.showCall(true);
    }
    if (this.audio.hasAttribute("src")) {
      this.audio.currentTime = seconds;
      if (play) this.audio.play().catch(() => {});
    }
    this.timeline.moveTo(seconds);
    this.mark(seconds);
  }

  follow() {
    if (!this.audio.hasAttribute("src")) return;
    this.timeline.moveTo(this.audio.currentTime);
    this.mark(this.audio.currentTime);
  }

  mark(seconds) {
    for (const line of this.lines) {
      const isNow = line.from !== undefined && line.call === this.call?.id && seconds > 0 && seconds >= line.from && seconds <= (line.to ?? line.from);
      line.element.classList.toggle("now", isNow);
    }
  }

  select(name) {
    this.tab = name;
    for (const tab of this.tabs.children) {
      const isIt = tab.id === `tab-${name}`;
      tab.setAttribute("aria-selected", isIt);
      tab.tabIndex = isIt ? 0 : -1;
    }
    this.showPanel(false).catch(this.fail);
  }

  arrow(event, name) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const next = TABS[(TABS.indexOf(name) + step + TABS.length) % TABS.length];
    this.select(next);
    byId(`tab-${next}`).focus();
  }

  async showPanel(isNews) {
    const { told, tab } = this;
    this.panel.setAttribute("aria-labelledby", `tab-${tab}`);
    let content;
    if (tab === "Flow") content = flowPanel(told.flow, this.opened);
    else if (tab === "Memory") content = memoryPanel(told.memory);
    else if (tab === "Turns") content = turnsPanel(told.turns);
    else if (tab === "Prompts") content = promptsPanel(await api.json(this.path("/prompts")), this.opened);
    else content = await this.recordsPanel(isNews);
    if (this.tab === tab && !this.closed) this.panel.replaceChildren(content);
  }

  async recordsPanel(isNews) {
    // What was withheld of a running turn is told when it ends, so the newest are read again.
    const kept = isNews ? this.records.slice(0, -30) : this.records;
    let after = kept.at(-1)?.sequence ?? -1;
    if (isNews || !kept.length) {
      const page = await api.json(this.path("/events", { after, limit: PAGE }));
      this.records = [...kept, ...page.records];
      this.next = page.next;
    }
    const list = h("div", {}, this.records.map((record) => recordEntry(record, this.opened)));
    const more = this.next !== null && h("button", { type: "button", onclick: async () => {
      const page = await api.json(this.path("/events", { after: this.next, limit: PAGE }));
      this.records.push(...page.records);
      this.next = page.next;
      await this.showPanel(false);
    } }, "Show more");
    return h("div", {}, list, more);
  }

  remove() {
    const dialog = byId("delete-dialog");
    dialog.onclose = async () => {
      if (dialog.returnValue !== "delete") return;
      try {
        await api.request(`/conversations/${encodeURIComponent(this.id)}`, { method: "DELETE" });
        this.onDeleted();
      } catch (fault) {
        this.fail(fault);
      }
    };
    dialog.returnValue = "";
    dialog.showModal();
  }

  fail = (fault) => {
    byId("news").textContent = fault.message;
    this.head.append(h("p", { class: "bad", role: "alert" }, fault.message));
  };

  close() {
    this.closed = true;
    this.audio.pause();
  }
}
