// One WebRTC connection to the service: sound both ways, and messages beside it.

import { mediaTrouble } from "/web/trouble.js";

const CHANNEL = "voice-agent";
const GATHER_MS = 1500;
const CONNECT_MS = 15_000;

/** Events: `message` (detail: the message), `track` (detail: MediaStream), `weak`, `lost`. */
export class Connection extends EventTarget {
  #line;
  #peer;
  #channel;
  #sender;
  #waiting = [];
  #closed = false;
  callId = "";
  conversation = "";

  constructor(line, iceServers) {
    super();
    this.#line = line;
    this.#peer = new RTCPeerConnection({ iceServers, bundlePolicy: "max-bundle" });
    this.#channel = this.#peer.createDataChannel(CHANNEL);
    this.#channel.addEventListener("open", () => this.#flush());
    this.#channel.addEventListener("message", (event) => this.#received(event.data));
    this.#channel.addEventListener("close", () => this.#tell("lost"));
    this.#peer.addEventListener("track", (event) => {
      const stream = event.streams[0] ?? new MediaStream([event.track]);
      this.#tell("track", stream);
    });
    this.#peer.addEventListener("connectionstatechange", () => this.#changed());
  }

  /** Connect; `known` may name the `conversation` to go on with and the call that this `resumes`. Throws `Trouble`. */
  async open(track, known) {
    this.#sender = this.#peer.addTrack(track, new MediaStream([track]));
    await this.#peer.setLocalDescription(await this.#peer.createOffer());
    await this.#gathered();
    const { sdp, type } = this.#peer.localDescription;
    const answer = await this.#line.offer({ sdp, type, ...known });
    this.callId = answer.call_id;
    this.conversation = answer.conversation;
    if (this.#closed) {
      this.#line.hangUp(this.callId);
      return;
    }
    await this.#peer.setRemoteDescription({ sdp: answer.sdp, type: answer.type });
    await this.#connected();
  }

  /** Send a message; those before the connection is up wait for it. */
  send(message) {
    if (this.#channel.readyState === "open") this.#channel.send(JSON.stringify(message));
    else if (this.#channel.readyState === "connecting") this.#waiting.push(message);
  }

  async replaceTrack(track) {
    await this.#sender?.replaceTrack(track);
  }

  close() {
    this.#closed = true;
    this.#peer.close();
  }

  #flush() {
    for (const message of this.#waiting.splice(0)) this.send(message);
  }

  #received(data) {
    let message;
    try {
      message = JSON.parse(data);
    } catch {
      return;
    }
    this.#tell("message", message);
  }

  #tell(type, detail) {
    if (!this.#closed) this.dispatchEvent(new CustomEvent(type, { detail }));
  }

  #changed() {
    const state = this.#peer.connectionState;
    if (state === "disconnected") this.#tell("weak");
    else if (state === "failed") this.#tell("lost");
  }

  // Addresses of this machine are there at once; what STUN and TURN servers add may take its time.
  #gathered() {
    if (this.#peer.iceGatheringState === "complete") return undefined;
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, GATHER_MS);
      this.#peer.addEventListener("icegatheringstatechange", () => {
        if (this.#peer.iceGatheringState !== "complete") return;
        clearTimeout(timer);
        resolve();
      });
    });
  }

  #connected() {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(mediaTrouble()), CONNECT_MS);
      const look = () => {
        const state = this.#peer.connectionState;
        if (state === "connected" || state === "failed" || state === "closed") {
          clearTimeout(timer);
          this.#peer.removeEventListener("connectionstatechange", look);
          if (state === "failed") reject(mediaTrouble());
          else resolve();
        }
      };
      this.#peer.addEventListener("connectionstatechange", look);
      look();
    });
  }
}
