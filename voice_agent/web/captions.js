// Shows a transcript: words not heard yet are grey, words that never were are struck through.

import { Transcript } from "/web/transcript.js";

const NEAR_END_PX = 80;

export class Captions {
  #log = document.getElementById("log");
  #empty = document.getElementById("captions-empty");
  #transcript = new Transcript();
  #shown = new Map();
  #atEnd = true;
  agent = "Agent";

  constructor() {
    this.#log.addEventListener("scroll", () => {
      this.#atEnd = this.#log.scrollHeight - this.#log.scrollTop - this.#log.clientHeight < NEAR_END_PX;
    });
    new ResizeObserver(() => this.#follow()).observe(this.#log);
  }

  clear() {
    this.#atEnd = true;
    this.#transcript = new Transcript();
    this.#shown.clear();
    this.#log.replaceChildren();
    this.#empty.hidden = false;
  }

  take(message) {
    const entry = this.#transcript.take(message);
    if (entry) this.#show(entry);
  }

  /** The call is over. */
  end() {
    const entry = this.#transcript.end();
    if (entry) this.#show(entry);
  }

  #show(entry) {
    const line = this.#shown.get(entry.id) ?? this.#add(entry);
    line.show(entry);
    this.#empty.hidden = true;
    this.#follow();
  }

  // Stays at the newest line, also when the log shrinks, until somebody scrolls back.
  #follow() {
    if (this.#atEnd) this.#log.scrollTop = this.#log.scrollHeight;
  }

  #add(entry) {
    const line = new Line(entry.role, entry.role === "user" ? "You" : this.agent);
    this.#shown.set(entry.id, line);
    const kept = new Set(this.#transcript.entries.map((each) => each.id));
    for (const [id, old] of this.#shown) {
      if (kept.has(id)) break;
      old.element.remove();
      this.#shown.delete(id);
    }
    this.#log.append(line.element);
    return line;
  }
}

class Line {
  element = document.createElement("p");
  #words = document.createElement("span");

  constructor(role, who) {
    this.element.className = role;
    const name = document.createElement("span");
    name.className = "who";
    name.textContent = who;
    this.#words.className = "words";
    this.element.append(name, " ", this.#words);
  }

  show({ role, text, heard, final }) {
    if (role === "user") {
      this.#words.textContent = text;
      this.element.classList.toggle("open", !final);
      return;
    }
    const words = [...text.matchAll(/\S+/g)];
    // Words that stand are kept as they are: a screen reader is told of new ones only.
    words.forEach((word, at) => {
      let span = this.#words.children[at];
      if (!span) {
        span = document.createElement("span");
        this.#words.append(at ? " " : "", span);
      }
      if (span.textContent !== word[0]) span.textContent = word[0];
      const was = word.index + word[0].length <= heard;
      span.className = was ? "heard" : final ? "lost" : "due";
    });
    while (this.#words.children.length > words.length) this.#words.lastElementChild.remove();
    if (final && words.length && heard < text.trimEnd().length && !this.element.querySelector(".note")) {
      const note = document.createElement("span");
      note.className = "note";
      note.textContent = " (the words struck through were not heard)";
      this.element.append(note);
    }
  }
}
