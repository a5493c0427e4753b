// One call, from the first ring to its end, across as many connections as the network takes.
//
//   connecting ─▶ talking ─▶ over
//       ▲            │  connection gone, or another network
//       └────────────┘  the same conversation, within the service's resume window

import { Connection } from "/web/connection.js";
import { Trouble, lostTrouble } from "/web/trouble.js";

/** How long a dropped call is tried to be taken up again; the service keeps it for 30 s. */
const RESUME_MS = 25_000;
const WEAK_MS = 3000;
const RETRY_MS = [0, 500, 1000, 2000, 3000];

/** Events: `state` (detail: name), `message`, `track` (detail: MediaStream), `over` (detail: Trouble or null). */
export class Call extends EventTarget {
  #line;
  #servers;
  #track;
  #connection = null;
  #weak = 0;
  #over = false;
  #resuming = false;
  #leave = new AbortController();

  /** @param {Promise<RTCIceServer[]>} servers */
  constructor(line, servers, track) {
    super();
    this.#line = line;
    this.#servers = servers;
    this.#track = track;
  }

  /** Place the call. Throws `Trouble` when it does not come about. */
  async start() {
    performance.mark("call-start");
    this.#tell("state", "connecting");
    const { signal } = this.#leave;
    addEventListener("pagehide", () => this.hangUp(), { signal });
    addEventListener("online", () => this.#resume(), { signal });
    try {
      await this.#connect({});
    } catch (fault) {
      this.#end();
      throw fault;
    }
    performance.mark("call-connected");
  }

  say(text) {
    this.#connection?.send({ type: "text", text });
  }

  press(digit) {
    this.#connection?.send({ type: "dtmf", digit });
  }

  /** Tell the service that the caller is silent on purpose: it does not ask whether somebody is there. */
  mute(muted) {
    this.#connection?.send({ type: "mute", muted });
  }

  async useTrack(track) {
    this.#track = track;
    await this.#connection?.replaceTrack(track);
  }

  hangUp() {
    if (this.#over) return;
    const connection = this.#connection;
    this.#connection = null;
    this.#end();
    // Told before the connection closes: a caller who hangs up is not one who was cut off and may come back.
    if (connection?.callId) this.#line.hangUp(connection.callId).then(() => connection.close());
    else connection?.close();
    this.#tell("over", null);
  }

  async #connect(known) {
    const connection = new Connection(this.#line, await this.#servers);
    if (this.#over) return connection.close();
    this.#connection = connection;
    connection.addEventListener("message", (event) => this.#received(event.detail));
    connection.addEventListener("track", (event) => this.#tell("track", event.detail));
    connection.addEventListener("weak", () => {
      clearTimeout(this.#weak);
      this.#weak = setTimeout(() => this.#resume(), WEAK_MS);
    });
    connection.addEventListener("lost", () => this.#resume());
    await connection.open(this.#track, known);
    clearTimeout(this.#weak);
  }

  #received(message) {
    if (message.type === "state") this.#tell("state", message.state);
    else if (message.type === "hangup") this.#finish(null);
    this.#tell("message", message);
  }

  async #resume() {
    const dropped = this.#connection;
    if (this.#over || this.#resuming || !dropped?.callId) return;
    this.#resuming = true;
    clearTimeout(this.#weak);
    dropped.close();
    this.#tell("state", "reconnecting");
    const known = { conversation: dropped.conversation, resumes: dropped.callId };
    const until = performance.now() + RESUME_MS;
    let trouble = lostTrouble();
    for (let tries = 0; performance.now() < until && !this.#over; tries++) {
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS[Math.min(tries, RETRY_MS.length - 1)]));
      try {
        if (!this.#over) await this.#connect(known);
        this.#resuming = false;
        return;
      } catch (fault) {
        this.#connection?.close();
        this.#connection = dropped;
        if (!(fault instanceof Trouble)) throw fault;
        if (!fault.retry && fault.code !== "conversation_busy" && fault.code !== "no_media") {
          trouble = fault;
          break;
        }
      }
    }
    this.#resuming = false;
    if (!this.#over) this.#finish(trouble);
  }

  #finish(trouble) {
    if (this.#over) return;
    this.#end();
    this.#tell("over", trouble);
  }

  #end() {
    this.#over = true;
    clearTimeout(this.#weak);
    this.#leave.abort();
    this.#connection?.close();
    this.#connection = null;
  }

  #tell(type, detail) {
    this.dispatchEvent(new CustomEvent(type, { detail }));
  }
}
