// The caller's microphone: opened with echo cancellation, muted and changed without a new call.

import { insecureTrouble, microphoneTrouble } from "/web/trouble.js";

const CLEAN = { echoCancellation: true, noiseSuppression: true, autoGainControl: true, channelCount: 1 };

export class Microphone {
  #stream = null;
  #silence = null;
  #muted = false;

  /** The audio track that the call sends, or null. */
  get track() {
    return this.#stream?.getAudioTracks()[0] ?? null;
  }

  get stream() {
    return this.#silence ? null : this.#stream;
  }

  get muted() {
    return this.#muted;
  }

  set muted(muted) {
    this.#muted = muted;
    if (this.track) this.track.enabled = !muted;
  }

  /** Open the microphone, `deviceId` if it is there. Throws `Trouble`. */
  async open(deviceId = "") {
    if (!navigator.mediaDevices?.getUserMedia) throw insecureTrouble();
    let stream;
    try {
      stream = await this.#ask(deviceId);
    } catch (fault) {
      throw microphoneTrouble(fault);
    }
    this.close();
    this.#stream = stream;
    this.muted = this.#muted;
    return this.track;
  }

  async #ask(deviceId) {
    const chosen = deviceId ? { deviceId: { exact: deviceId } } : {};
    try {
      return await navigator.mediaDevices.getUserMedia({ audio: { ...CLEAN, ...chosen } });
    } catch (fault) {
      // The one that was chosen last time may have been unplugged.
      if (!deviceId || fault.name !== "OverconstrainedError") throw fault;
      return navigator.mediaDevices.getUserMedia({ audio: CLEAN });
    }
  }

  /** Send silence instead: for a caller who types. */
  openSilence() {
    this.close();
    this.#silence = new AudioContext();
    this.#stream = this.#silence.createMediaStreamDestination().stream;
    return this.track;
  }

  close() {
    for (const track of this.#stream?.getTracks() ?? []) track.stop();
    this.#silence?.close();
    this.#stream = this.#silence = null;
  }
}
