// A form out of a JSON schema: one field for each property, which knows its value, its fault and whether it was changed.

import { h } from "./dom.js";

const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);
const LONG = 60;

// What a property is, with references followed and "or null" taken off.
export function shapeOf(property, root) {
  let shape = property, isNullable = false;
  for (let depth = 0; depth < 8; depth += 1) {
    const inner = shape.allOf?.length === 1 ? shape.allOf[0] : shape.$ref ? root.$defs?.[shape.$ref.split("/").at(-1)] : null;
    const options = shape.anyOf ?? [];
    const others = options.filter((option) => option.type !== "null");
    if (inner) shape = { ...inner, ...shape, $ref: undefined, allOf: undefined };
    else if (others.length === 1) {
      isNullable ||= options.length > 1;
      shape = { ...others[0], ...shape, anyOf: undefined };
    } else break;
  }
  const choices = shape.enum ?? (shape.const === undefined ? null : [shape.const]);
  const kind = choices ? "choice" : ["integer", "number", "boolean"].includes(shape.type) ? shape.type : shape.type === "string" ? "text" : "json";
  return { ...shape, kind, choices, isNullable };
}

export const nameOf = (name) => name.charAt(0).toUpperCase() + name.slice(1).replaceAll("_", " ");
export const shown = (value) => (value === undefined || value === null ? "nothing" : typeof value === "string" ? `“${value}”` : JSON.stringify(value));

// Names of values stand between double backticks in descriptions.
const prose = (text) => text.split("``").map((part, index) => (index % 2 ? h("code", {}, part) : part));

export class Field {
  // `id` is unique on the page; `onChange` is called with every change.
  constructor(id, name, property, { root, isRequired, onChange }) {
    this.name = name;
    this.shape = shapeOf(property, root);
    this.isRequired = isRequired;
    this.mark = h("span", { class: "chip warn", hidden: true }, "unsaved");
    this.was = h("p", { class: "hint", id: `${id}-was`, hidden: true });
    this.problem = h("p", { class: "bad", id: `${id}-problem`, hidden: true });
    this.input = this.control(id);
    this.input.addEventListener("input", () => {
      this.fault("");
      this.showState();
      onChange();
    });
    const described = property.description ?? this.shape.description;
    this.element = h("div", { class: "field", "data-field": name },
      h("div", { class: "caption" },
        h("label", { for: id }, nameOf(name)), h("code", { class: "quiet" }, name),
        isRequired && h("span", { class: "chip" }, "required"), this.mark),
      described && h("p", { class: "hint", id: `${id}-what` }, prose(described)),
      this.input,
      h("p", { class: "hint", id: `${id}-limits` }, this.limits()),
      this.was, this.problem);
  }

  control(id) {
    const { kind, choices, isNullable, minimum, exclusiveMinimum, maximum, exclusiveMaximum, maxLength } = this.shape;
    const common = { id, name: this.name, "aria-describedby": `${id}-what ${id}-limits ${id}-was ${id}-problem`, required: this.isRequired && kind !== "boolean" };
    if (kind === "choice") {
      const none = isNullable || !this.isRequired ? [h("option", { value: "" }, isNullable ? "nothing" : "default")] : [];
      return h("select", common, none, choices.map((choice) => h("option", { value: JSON.stringify(choice) }, String(choice))));
    }
    if (kind === "boolean") return h("select", common, isNullable && h("option", { value: "" }, "nothing"), h("option", { value: "true" }, "yes"), h("option", { value: "false" }, "no"));
    if (kind === "integer" || kind === "number") {
      return h("input", { ...common, type: "number", step: kind === "integer" ? 1 : "any", min: minimum ?? exclusiveMinimum, max: maximum ?? exclusiveMaximum, autocomplete: "off" });
    }
    return h("textarea", { ...common, class: kind === "json" ? "mono" : null, rows: kind === "json" || (this.shape.default ?? "").length > LONG || !maxLength || maxLength > LONG ? 3 : 1, maxlength: kind === "text" ? maxLength : null, spellcheck: kind === "text" });
  }

  limits() {
    const { kind, minimum, exclusiveMinimum, maximum, exclusiveMaximum, minLength, maxLength } = this.shape;
    const told = [
      kind === "integer" && "A whole number", kind === "number" && "A number", kind === "json" && "Written as JSON",
      minimum !== undefined && maximum !== undefined ? `from ${minimum} to ${maximum}` : minimum !== undefined ? `at least ${minimum}` : maximum !== undefined && `at most ${maximum}`,
      exclusiveMinimum !== undefined && `more than ${exclusiveMinimum}`, exclusiveMaximum !== undefined && `less than ${exclusiveMaximum}`,
      minLength && `at least ${minLength} characters`, maxLength && `at most ${maxLength} characters`,
    ].filter(Boolean).join(", ");
    const preset = this.isRequired || this.shape.default === undefined ? "" : `Default: ${shown(this.shape.default)}`;
    return [told && `${told.charAt(0).toUpperCase()}${told.slice(1)}.`, preset].filter(Boolean).join(" ");
  }

  // The value that is kept; what the page shows is compared with it.
  keep(value) {
    this.kept = value;
    this.write(value);
  }

  write(value) {
    const { kind } = this.shape;
    if (value === undefined || value === null) this.input.value = "";
    else if (kind === "choice") this.input.value = JSON.stringify(value);
    else this.input.value = kind === "json" ? JSON.stringify(value, null, 2) : String(value);
    this.fault("");
    this.showState();
  }

  // What is written; undefined leaves it out, so that the default counts.
  read() {
    const { kind, isNullable } = this.shape, text = this.input.value;
    if (text === "" && (kind !== "text" || isNullable)) return isNullable ? null : undefined;
    if (kind === "text") return text;
    if (kind === "integer" || kind === "number") return Number(text);
    try {
      return JSON.parse(text);
    } catch {
      return text;
    }
  }

  // What this page can tell by itself; all else is for the service to say.
  get unreadable() {
    if (this.input.validity.badInput) return "This is not a number.";
    if (this.shape.kind !== "json" || this.input.value === "") return "";
    try {
      JSON.parse(this.input.value);
      return "";
    } catch {
      return "This is not valid JSON.";
    }
  }

  get isChanged() {
    const value = this.read();
    return this.input.validity.badInput || !same(value === undefined ? this.shape.default : value, this.kept === undefined ? this.shape.default : this.kept);
  }

  showState() {
    this.mark.hidden = this.was.hidden = !this.isChanged;
    this.was.textContent = this.isChanged ? `Saved: ${shown(this.kept)}` : "";
  }

  fault(message) {
    this.problem.textContent = message;
    this.problem.hidden = !message;
    if (message) this.input.setAttribute("aria-invalid", "true");
    else this.input.removeAttribute("aria-invalid");
  }
}
