// What the page shows of a call's state: one word of CSS, one line for people.

const WORDS = {
  idle: "Ready",
  asking: "Waiting for the microphone",
  connecting: "Connecting",
  listening: "Listening",
  hearing: "Hearing you",
  thinking: "Thinking",
  speaking: "Speaking",
  paused: "Paused for you",
  reconnecting: "Reconnecting",
  ended: "Call ended",
};

/** States in which there is a call to hang up. */
const LIVE = new Set(["connecting", "listening", "hearing", "thinking", "speaking", "paused", "reconnecting"]);

export class State {
  #body = document.body;
  #line = document.getElementById("state");
  #muted = false;

  /** One of the keys of `WORDS`. */
  get name() {
    return this.#body.dataset.state;
  }

  get live() {
    return LIVE.has(this.name);
  }

  show(name, words = WORDS[name]) {
    if (!(name in WORDS)) return;
    this.#body.dataset.state = name;
    this.#body.dataset.live = String(LIVE.has(name));
    const muted = this.#muted && name === "listening";
    this.#line.textContent = muted ? "Your microphone is muted" : words;
  }

  mute(muted) {
    this.#muted = muted;
    this.#body.dataset.muted = String(muted);
    this.show(this.name);
  }
}
