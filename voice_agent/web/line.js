// The service's side of placing a call, by HTTP.

import { refusalTrouble, unreachableTrouble } from "/web/trouble.js";

const ANSWER_MS = 15_000;

export class Line {
  #token;

  /** @param {string} token "" where the service asks for none */
  constructor(token) {
    this.#token = token;
  }

  /** Return `{name, language}` of the agent. Throws `Trouble`. */
  async agent() {
    return this.#ask("GET", "/agent");
  }

  /** Return the ICE servers for a peer connection. Throws `Trouble`. */
  async iceServers() {
    const config = await this.#ask("GET", "/webrtc/config");
    return config.ice_servers ?? config.iceServers ?? [];
  }

  /** Exchange an offer `{sdp, type, conversation?, resumes?}` for the answer. Throws `Trouble`. */
  async offer(offer) {
    return this.#ask("POST", "/offer", { ...offer, states: true });
  }

  /** End a call, also while the page is being closed. Never throws. */
  async hangUp(callId) {
    try {
      await fetch(`/call/${encodeURIComponent(callId)}`, { method: "DELETE", headers: this.#headers(), keepalive: true });
    } catch {
      return;
    }
  }

  #headers() {
    return this.#token ? { Authorization: `Bearer ${this.#token}` } : {};
  }

  async #ask(method, path, body) {
    let answer;
    try {
      answer = await fetch(path, {
        method,
        headers: { ...this.#headers(), ...(body ? { "Content-Type": "application/json" } : {}) },
        body: body && JSON.stringify(body),
        cache: "no-store",
        signal: AbortSignal.timeout(ANSWER_MS),
      });
    } catch {
      throw unreachableTrouble();
    }
    const told = await answer.json().catch(() => ({}));
    if (!answer.ok) throw refusalTrouble(answer.status, told);
    return told;
  }
}
