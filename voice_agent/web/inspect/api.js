// Talks to the service: the key, requests, and what happens live.

const KEY = "voice-agent-key";
const ROOT = "/v1/inspect";
const SETTINGS = "/agentic_workflow";

export class Refused extends Error {
  constructor(status, code, message, faults) {
    super(message);
    this.status = status;
    this.code = code;
    this.faults = faults;
  }
}

export const hasKey = () => sessionStorage.getItem(KEY) !== null;
export const useKey = (key) => sessionStorage.setItem(KEY, key);

function headers() {
  const key = sessionStorage.getItem(KEY);
  return key === null ? {} : { authorization: `Bearer ${key}` };
}

export async function request(path, options = {}, root = ROOT) {
  const response = await fetch(root + path, { ...options, headers: { ...headers(), ...options.headers }, cache: "no-store" });
  if (!response.ok) {
    const told = await response.json().catch(() => ({}));
    throw new Refused(response.status, told.code ?? "", told.message ?? `The service answered ${response.status}.`, told.faults);
  }
  return response;
}

export const settings = (path, options) =>
  request(path, options, SETTINGS).catch((fault) => {
    throw fault instanceof Refused ? fault : new Refused(0, "", "The service cannot be reached.");
  });
export const json = async (path) => (await request(path)).json();
export const bytes = async (path) => new Uint8Array(await (await request(path)).arrayBuffer());

// A recording plays straight from the service where no key is needed; else it is fetched whole, with the key.
export async function playable(path) {
  if (!hasKey()) return ROOT + path;
  return URL.createObjectURL(await (await request(path)).blob());
}

export async function save(path, name) {
  const url = URL.createObjectURL(await (await request(path)).blob());
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

// Calls `on(event, data)` for as long as the page lives; comes back by itself when the connection is lost.
export async function follow(on, state) {
  let pause = 500;
  for (;;) {
    try {
      const response = await request("/live", { headers: { accept: "text/event-stream" } });
      state("live");
      pause = 500;
      await read(response.body.getReader(), on);
    } catch (fault) {
      if (fault instanceof Refused && fault.status === 503) state("not live: too many viewers");
      else if (fault instanceof Refused && fault.status === 401) state("locked");
      else state("reconnecting");
    }
    await new Promise((done) => setTimeout(done, pause));
    pause = Math.min(pause * 2, 15_000);
  }
}

async function read(reader, on) {
  const decoder = new TextDecoder();
  let text = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    text += decoder.decode(value, { stream: true });
    const blocks = text.split("\n\n");
    text = blocks.pop();
    for (const block of blocks) {
      const lines = Object.fromEntries(block.split("\n").map((line) => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 2)]));
      if (lines.event) on(lines.event, JSON.parse(lines.data));
    }
  }
}
