// What was said so far, put together from the messages of the line. No page in here.
//
// The agent's reply arrives ahead of its sound:
//   transcript{agent, final: false}   a message grows
//   transcript{agent, final: true}    a message is complete; a reply may have several
//   heard{text}                       this much of the reply has been played
//   transcript{agent, heard}          the reply is over: all of it, and what of it was heard

const MAX_ENTRIES = 200;

export class Transcript {
  /** Entries `{id, role, text, heard, final}`, oldest first; `heard` counts characters of an agent's text. */
  entries = [];
  #next = 1;
  #reply = null;
  #said = null;

  /** Take a message of the line; returns the entry that it changed, or null. */
  take(message) {
    if (message.type === "heard") return this.#heard(message.text.length);
    if (message.type !== "transcript") return null;
    return message.role === "user" ? this.#caller(message) : this.#agent(message);
  }

  /** The call is over; returns the reply that was cut off by that, or null. What was not heard by now never will be. */
  end() {
    const entry = this.#reply?.entry ?? null;
    if (entry) entry.final = true;
    this.#reply = this.#said = null;
    return entry;
  }

  #caller({ text, final }) {
    const entry = this.#said ?? this.#add("user");
    entry.text = text;
    entry.final = final;
    this.#said = final ? null : entry;
    return entry;
  }

  #agent({ text, final, heard }) {
    const over = heard !== undefined;
    // Only a phrase like "one moment" sounded: nothing was said that could be shown.
    if (over && !text.trim() && !this.#reply) return null;
    const reply = this.#reply ?? { entry: this.#add("agent"), messages: [], open: false };
    if (over) {
      reply.entry.text = text;
      reply.entry.heard = heard.trimEnd().length;
      reply.entry.final = true;
      this.#reply = null;
      return reply.entry;
    }
    if (reply.open) reply.messages.pop();
    reply.messages.push(text.trim());
    reply.open = !final;
    reply.entry.text = reply.messages.join(" ");
    this.#reply = reply;
    return reply.entry;
  }

  #heard(length) {
    if (!this.#reply) return null;
    const entry = this.#reply.entry;
    entry.heard = Math.max(entry.heard, length);
    return entry;
  }

  #add(role) {
    const entry = { id: this.#next++, role, text: "", heard: 0, final: false };
    this.entries.push(entry);
    if (this.entries.length > MAX_ENTRIES) this.entries.shift();
    return entry;
  }
}
