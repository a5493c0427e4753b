// Which microphone and which speaker: the choices there are, remembered for the next call.

const KEYS = { input: "voice-agent.input", output: "voice-agent.output" };
const KINDS = { input: "audioinput", output: "audiooutput" };
const NAMES = { input: "Default microphone", output: "Default speaker" };

export class Devices extends EventTarget {
  #selects = { input: document.getElementById("input"), output: document.getElementById("output") };

  constructor() {
    super();
    document.getElementById("output-choice").hidden = !("setSinkId" in HTMLMediaElement.prototype);
    for (const [which, select] of Object.entries(this.#selects)) {
      select.addEventListener("change", () => {
        store(KEYS[which], select.value);
        this.dispatchEvent(new CustomEvent(which, { detail: select.value }));
      });
    }
    navigator.mediaDevices?.addEventListener("devicechange", () => this.refresh());
    this.refresh();
  }

  /** Id of the chosen device, "" for the default. */
  chosen(which) {
    return load(KEYS[which]);
  }

  /** Read the devices anew. They have names only once the microphone was allowed. */
  async refresh() {
    const all = (await navigator.mediaDevices?.enumerateDevices().catch(() => [])) ?? [];
    for (const [which, select] of Object.entries(this.#selects)) {
      const found = all.filter((device) => device.kind === KINDS[which] && device.deviceId && device.deviceId !== "default");
      const options = found.map((device, at) => option(device.deviceId, device.label || `${NAMES[which]} ${at + 2}`));
      select.replaceChildren(option("", NAMES[which]), ...options);
      const chosen = this.chosen(which);
      select.value = found.some((device) => device.deviceId === chosen) ? chosen : "";
    }
  }
}

function option(value, label) {
  const element = document.createElement("option");
  element.value = value;
  element.textContent = label;
  return element;
}

function store(key, value) {
  try {
    localStorage.setItem(key, value);
  } catch {
    return;
  }
}

function load(key) {
  try {
    return localStorage.getItem(key) ?? "";
  } catch {
    return "";
  }
}
