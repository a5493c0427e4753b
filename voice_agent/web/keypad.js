// Twelve keys, on the page and on the keyboard.

const KEYS = [
  ["1", ""], ["2", "ABC"], ["3", "DEF"],
  ["4", "GHI"], ["5", "JKL"], ["6", "MNO"],
  ["7", "PQRS"], ["8", "TUV"], ["9", "WXYZ"],
  ["*", ""], ["0", "+"], ["#", ""],
];
const NAMES = { "*": "Star", "#": "Hash" };
const SHOWN = 24;
const FLASH_MS = 150;

export class Keypad extends EventTarget {
  #panel = document.getElementById("keypad");
  #toggle = document.getElementById("keypad-toggle");
  #digits = document.getElementById("digits");
  #buttons = new Map();
  enabled = false;

  constructor() {
    super();
    document.getElementById("keys").append(...KEYS.map(([key, letters]) => this.#button(key, letters)));
    this.#toggle.addEventListener("click", () => this.open(this.#panel.hidden));
    document.addEventListener("keydown", (event) => this.#typed(event));
  }

  open(open) {
    this.#panel.hidden = !open;
    this.#toggle.setAttribute("aria-expanded", String(open));
    document.body.dataset.keypad = String(open);
  }

  clear() {
    this.#digits.textContent = "";
    this.open(false);
  }

  #press(key) {
    if (!this.enabled) return;
    this.#digits.textContent = (this.#digits.textContent + key).slice(-SHOWN);
    this.dispatchEvent(new CustomEvent("key", { detail: key }));
    const button = this.#buttons.get(key);
    button.classList.add("pressed");
    setTimeout(() => button.classList.remove("pressed"), FLASH_MS);
  }

  #typed(event) {
    if (event.key === "Escape" && !this.#panel.hidden) {
      this.open(false);
      this.#toggle.focus();
      return;
    }
    const writing = event.target.closest?.("input, select, textarea, dialog");
    if (writing || event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
    if (this.#buttons.has(event.key)) this.#press(event.key);
  }

  #button(key, letters) {
    const button = document.createElement("button");
    button.type = "button";
    button.dataset.key = key;
    const digit = document.createElement("span");
    digit.textContent = key;
    button.append(digit);
    if (NAMES[key]) button.setAttribute("aria-label", NAMES[key]);
    if (letters) {
      const small = document.createElement("small");
      small.textContent = letters;
      small.setAttribute("aria-hidden", "true");
      button.append(small);
    }
    button.addEventListener("click", () => this.#press(key));
    this.#buttons.set(key, button);
    return button;
  }
}
