// The call page: brings the parts together and answers the buttons.

import { Call } from "/web/call.js";
import { Captions } from "/web/captions.js";
import { Devices } from "/web/devices.js";
import { takeInvitation } from "/web/invitation.js";
import { Keypad } from "/web/keypad.js";
import { Level } from "/web/level.js";
import { Line } from "/web/line.js";
import { Microphone } from "/web/microphone.js";
import { State } from "/web/state.js";
import { Trouble, insecureTrouble } from "/web/trouble.js";

const element = (id) => document.getElementById(id);
const line = new Line(takeInvitation());
const state = new State();
const captions = new Captions();
const keypad = new Keypad();
const level = new Level();
const microphone = new Microphone();
const devices = new Devices();
const voice = element("voice");
let call = null;
let typing = false;

/** Place a call. `byTyping`: without a microphone. */
async function dial(byTyping) {
  if (call || state.name === "asking") return;
  showTrouble(null);
  captions.clear();
  keypad.clear();
  typing = byTyping;
  document.body.dataset.typing = String(typing);
  try {
    // Asked for at once, so that the answer is there when the microphone is.
    const servers = line.iceServers();
    servers.catch(() => undefined);
    state.show(typing ? "connecting" : "asking");
    const track = typing ? microphone.openSilence() : await microphone.open(devices.chosen("input"));
    devices.refresh();
    call = new Call(line, servers, track);
    listen(call);
    level.start(microphone.stream, () => microphone.muted);
    keypad.enabled = true;
    await call.start();
    element(typing ? "words" : "hang-up").focus();
  } catch (fault) {
    over(fault);
  }
}

function listen(placed) {
  placed.addEventListener("state", (event) => state.show(event.detail));
  placed.addEventListener("message", (event) => captions.take(event.detail));
  placed.addEventListener("track", (event) => play(event.detail));
  placed.addEventListener("over", (event) => over(event.detail));
}

async function play(stream) {
  voice.srcObject = stream;
  level.hear(stream);
  const output = devices.chosen("output");
  if (output && voice.setSinkId) await voice.setSinkId(output).catch(() => undefined);
  await voice.play().catch(() => undefined);
}

/** The call is over; `fault` says why where it did not end by itself. */
function over(fault) {
  const hadFocus = element("controls").contains(document.activeElement);
  call = null;
  captions.end();
  level.stop();
  microphone.close();
  microphone.muted = false;
  showMuted();
  keypad.enabled = false;
  keypad.open(false);
  voice.srcObject = null;
  state.show(fault ? "idle" : "ended", fault ? "Not connected" : undefined);
  showTrouble(fault);
  element("call").querySelector("span").textContent = "Call again";
  if (hadFocus) element("call").focus();
}

function showTrouble(fault) {
  const told = fault && !(fault instanceof Trouble) ? new Trouble("Something went wrong.", "Load the page again.") : fault;
  if (told !== fault) console.error(fault);
  element("trouble").hidden = !told;
  element("trouble").dataset.code = told?.code ?? "";
  element("trouble-what").textContent = told?.message ?? "";
  element("trouble-remedy").textContent = told?.remedy ?? "";
  element("trouble-typing").hidden = !told?.typing;
}

function showMuted() {
  element("mute").setAttribute("aria-pressed", String(microphone.muted));
  state.mute(microphone.muted);
}

element("call").addEventListener("click", () => dial(false));
element("trouble-typing").addEventListener("click", () => dial(true));
element("hang-up").addEventListener("click", () => call?.hangUp());
element("mute").addEventListener("click", () => {
  microphone.muted = !microphone.muted;
  call?.mute(microphone.muted);
  showMuted();
});
element("say").addEventListener("submit", (event) => {
  event.preventDefault();
  const words = element("words").value.trim();
  if (!call || !words) return;
  call.say(words);
  element("words").value = "";
});
keypad.addEventListener("key", (event) => call?.press(event.detail));
element("settings-open").addEventListener("click", () => {
  devices.refresh();
  element("settings").showModal();
});
devices.addEventListener("output", (event) => voice.setSinkId?.(event.detail).catch(() => undefined));
devices.addEventListener("input", async (event) => {
  if (!call || typing) return;
  try {
    await call.useTrack(await microphone.open(event.detail));
    level.start(microphone.stream, () => microphone.muted);
  } catch (fault) {
    showTrouble(fault);
  }
});

state.show("idle");
if (!navigator.mediaDevices?.getUserMedia) showTrouble(insecureTrouble());
else {
  line.agent().then(
    ({ name, inspector }) => {
      // Told only to whoever may look: never to a caller who came by an invitation.
      element("inspector").hidden = !inspector;
      if (!name) return;
      captions.agent = name;
      element("agent").textContent = name;
      document.title = `Call ${name}`;
    },
    (fault) => showTrouble(fault),
  );
}
