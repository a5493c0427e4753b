// How loud the microphone and the agent are, measured and drawn once per frame of the page.

const FLOOR_DB = -60;
const WINDOW = 512;
const METER_MS = 250;
const AUDIBLE = 0.35;

export class Level {
  #orb = document.getElementById("orb");
  #meter = document.getElementById("level");
  #context = null;
  #own = null;
  #agent = null;
  #frame = 0;
  #measured = 0;
  #audible = false;

  /**
   * @param {MediaStream | null} microphone null for a caller who types
   * @param {() => boolean} muted
   */
  start(microphone, muted) {
    this.#context ??= new AudioContext();
    this.#own = microphone ? this.#probe(microphone) : null;
    cancelAnimationFrame(this.#frame);
    const draw = (now) => {
      this.#frame = requestAnimationFrame(draw);
      const own = this.#own && !muted() ? this.#own() : 0;
      const agent = this.#agent ? this.#agent() : 0;
      this.#show(own, agent);
      if (!this.#audible && agent > AUDIBLE) {
        this.#audible = true;
        performance.mark("call-audible");
      }
      if (now - this.#measured > METER_MS) {
        this.#measured = now;
        this.#meter.setAttribute("aria-valuenow", String(Math.round(own * 100)));
      }
    };
    this.#frame = requestAnimationFrame(draw);
  }

  /** The agent's sound has come, or has come anew. */
  hear(stream) {
    if (this.#context) this.#agent = this.#probe(stream);
  }

  stop() {
    cancelAnimationFrame(this.#frame);
    this.#context?.close();
    this.#context = this.#own = this.#agent = null;
    this.#audible = false;
    this.#show(0, 0);
    this.#meter.setAttribute("aria-valuenow", "0");
  }

  #show(own, agent) {
    for (const element of [this.#orb, this.#meter]) element.style.setProperty("--own", own.toFixed(3));
    this.#orb.style.setProperty("--agent", agent.toFixed(3));
  }

  /** Return a function that measures `stream` now: 0 for `FLOOR_DB` and below, 1 for full scale. */
  #probe(stream) {
    const analyser = this.#context.createAnalyser();
    analyser.fftSize = WINDOW;
    this.#context.createMediaStreamSource(stream).connect(analyser);
    const samples = new Float32Array(WINDOW);
    return () => {
      analyser.getFloatTimeDomainData(samples);
      let power = 0;
      for (const sample of samples) power += sample * sample;
      const db = 10 * Math.log10(power / WINDOW + 1e-12);
      return Math.min(1, Math.max(0, 1 - db / FLOOR_DB));
    };
  }
}
