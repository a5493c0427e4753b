// The page: who is on the line, which conversations there were, and the one that is looked at.

import * as api from "./api.js";
import { ConversationView } from "./conversation.js";
import { byId, clock, debounce, h, moment } from "./dom.js";
import { SettingsView } from "./settings.js";

const state = { view: null, settings: null, calls: [], cursor: null, rows: [] };
const personal = () => byId("personal").querySelector("input").checked;
const chosen = () => (location.hash.startsWith("#/c/") ? decodeURIComponent(location.hash.slice(4)) : null);
const STATES = { listening: "listening", thinking: "thinking", speaking: "speaking", held: "deciding", paused: "paused", yielding: "yielding", leaving: "saying goodbye", closed: "ending" };

async function start() {
  try {
    const told = await api.json("");
    byId("personal").hidden = !told.personal_data;
    showCalls(told.calls);
    await search();
    await open();
  } catch (fault) {
    if (fault.status === 401) askForKey(api.hasKey() ? "That key is not accepted." : "");
    else byId("welcome").textContent = fault.message;
    return;
  }
  if (!state.following) {
    state.following = true;
    api.follow(onLive, (text) => {
      const chip = byId("link");
      chip.textContent = text;
      chip.className = `chip ${text === "live" ? "live" : "warn"}`;
    });
  }
}

function askForKey(message) {
  const dialog = byId("key-dialog");
  byId("key-wrong").textContent = message;
  dialog.onclose = () => {
    api.useKey(new FormData(dialog.querySelector("form")).get("key"));
    dialog.querySelector("form").reset();
    start();
  };
  if (!dialog.open) dialog.showModal();
}

const reload = debounce(() => state.view?.load().catch(() => {}), 400);
const relist = debounce(() => search().catch(() => {}), 700);

function onLive(event, data) {
  if (event === "calls") {
    showCalls(data);
    relist();
  } else if (event === "record") {
    if (data.conversation === state.view?.id) {
      reload();
      if (data.kind === "turn_timeline") byId("news").textContent = "A turn has ended.";
      if (data.kind === "call_ended") byId("news").textContent = "The call has ended.";
    }
    if (["call_ended", "session_started", "session_ended"].includes(data.kind)) relist();
  }
}

function row(id, name, left, right, style) {
  return h("li", {}, h("a", { href: `#/c/${encodeURIComponent(id)}`, "aria-current": id === chosen() ? "page" : null },
    h("span", { class: "name" }, name), h("span", { class: "more" }, h("span", {}, left), h("span", { class: `chip ${style}` }, right))));
}

function showCalls(calls) {
  state.calls = calls;
  byId("live-count").textContent = calls.length;
  byId("live-none").hidden = calls.length > 0;
  byId("live").replaceChildren(...calls.map((call) => row(call.conversation, call.conversation, `${call.channel} · ${clock(call.seconds)}`, STATES[call.state] ?? call.state, "live")));
}

function parameters(cursor) {
  const asked = new URLSearchParams([...new FormData(byId("search"))].filter(([, value]) => value));
  if (cursor) asked.set("cursor", cursor);
  asked.set("limit", "30");
  return asked;
}

async function search(cursor = null) {
  const page = await api.json(`/conversations?${parameters(cursor)}`);
  state.rows = cursor ? [...state.rows, ...page.conversations] : page.conversations;
  state.cursor = page.next;
  byId("past").replaceChildren(...state.rows.map((one) => {
    const outcome = one.outcome ?? "open";
    // That the caller hung up is how most calls end, and no fault.
    const ended = outcome === "disconnected" && one.reason ? one.reason.replaceAll("_", " ") : outcome;
    return row(one.id, one.caller === one.id ? one.id : `${one.caller} · ${one.id}`, moment(one.updated_at) + (one.seconds ? ` · ${clock(one.seconds)}` : ""), ended, outcome === "disconnected" ? "" : outcome);
  }));
  byId("past-none").hidden = state.rows.length > 0;
  byId("more").hidden = page.next === null;
}

async function open() {
  const id = chosen(), isSettings = location.hash === "#/settings";
  document.body.classList.toggle("reading", id !== null || isSettings);
  byId("settings").hidden = !isSettings;
  if (isSettings) byId("to-settings").setAttribute("aria-current", "page");
  else byId("to-settings").removeAttribute("aria-current");
  for (const link of document.querySelectorAll(".rows a")) {
    if (id !== null && link.getAttribute("href") === `#/c/${encodeURIComponent(id)}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  state.view?.close();
  state.view = null;
  byId("conversation").hidden = id === null;
  byId("welcome").hidden = id !== null || isSettings;
  document.title = `${id ?? (isSettings ? "Settings" : "Inspector")} · ${id === null && !isSettings ? "Voice agent" : "Inspector"}`;
  if (isSettings) return openSettings();
  if (id === null) return;
  const view = (state.view = new ConversationView(id, personal, () => {
    location.hash = "#/";
    search();
  }));
  try {
    await view.load();
  } catch (fault) {
    byId("conversation").hidden = true;
    byId("welcome").hidden = false;
    byId("welcome").textContent = fault.message;
  }
}

async function openSettings() {
  state.settings ??= new SettingsView(() => askForKey(""));
  try {
    await state.settings.load();
  } catch (fault) {
    if (fault.status === 401) askForKey("");
    byId("settings").hidden = true;
    byId("welcome").hidden = false;
    byId("welcome").textContent = fault.message;
  }
}

addEventListener("hashchange", () => {
  open();
  byId("detail").focus({ preventScroll: true });
  scrollTo(0, 0);
});
byId("search").addEventListener("submit", (event) => event.preventDefault());
byId("search").addEventListener("input", debounce(() => search().catch(() => {}), 250));
byId("more").addEventListener("click", () => search(state.cursor));
byId("personal").addEventListener("change", open);
start();
