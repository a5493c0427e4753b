// What was said, by whom, when, and how much of it was heard.

import { clock, h } from "./dom.js";

const INTENTS = { "/session_start": "The call connects", "/silence": "Silence" };

// Returns the lines of a conversation: {role, from, to, element}.
export function lines(conversation, seek) {
  const found = [];
  const calls = new Map(conversation.calls.map((call) => [call.id, call]));
  let call = null;
  for (const turn of conversation.turns) {
    if (turn.call_id !== call && calls.has(turn.call_id)) {
      call = turn.call_id;
      const told = calls.get(call);
      if (conversation.calls.length > 1) found.push(note(`Call by ${told.channel}${told.resumed ? ", taken up again" : ""}, ${new Date(told.started_at).toLocaleString()}`));
    }
    const canPlay = Boolean(calls.get(turn.call_id)?.recording);
    if (turn.user?.kind === "intent") found.push(note(INTENTS[turn.user.text] ?? turn.user.text));
    else if (turn.user && turn.user.kind !== "line") found.push(said("caller", turn, turn.times.speech_start, turn.times.speech_end, [turn.user.text], canPlay && seek, how(turn)));
    for (const tool of turn.tools.filter((each) => !["listen", "hangup"].includes(each.tool))) found.push(note(`${tool.tool} ${tool.success ? "ran" : "failed"}`));
    if (turn.heard || turn.unheard) {
      const text = [turn.heard, turn.heard && turn.unheard ? " " : "", turn.unheard && h("s", {}, h("span", { class: "unseen" }, "not heard: "), turn.unheard)];
      found.push(said("agent", turn, turn.times.first_audio, turn.times.last_audio, text, canPlay && seek, turn.interrupted || turn.unheard ? "cut off" : ""));
    } else if (turn.status === "running") found.push(note("…"));
    if (turn.superseded) found.push(note("taken back: the caller went on"));
    else if (turn.status === "cancelled" && !turn.interrupted) found.push(note(`cancelled${turn.reason ? ` (${turn.reason})` : ""}`));
    else if (turn.status === "error") found.push(note("failed; the apology was said"));
    for (const each of conversation.notes.filter((one) => one.turn_id === turn.id)) found.push(note(`“${each.text}” while the agent spoke`));
  }
  return found;
}

function how(turn) {
  return turn.user.kind === "speech" ? "" : turn.user.kind === "dtmf" ? "keys" : "typed";
}

function said(role, turn, from, to, text, seek, remark) {
  const who = role === "caller" ? "Caller" : "Agent";
  const at = from === undefined ? "" : clock(from);
  const element = h("li", { class: role, "data-turn": turn.id, "data-role": role },
    h("div", { class: "who" }, h("b", {}, who),
      at && (seek ? h("button", { type: "button", onclick: () => seek(turn.call_id, from), "aria-label": `Play from ${at}` }, `▶ ${at}`) : h("span", { class: "mono" }, at)),
      remark && h("span", {}, remark)),
    h("p", { class: "text" }, text));
  return { role, call: turn.call_id, from, to, element };
}

const note = (text) => ({ role: "note", element: h("li", { class: "note" }, text) });
