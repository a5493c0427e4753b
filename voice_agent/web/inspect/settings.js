// The settings of workflows: which is selected, what each is set to, and what changed last.

import * as api from "./api.js";
import { byId, h, moment } from "./dom.js";
import { Field, nameOf, shown } from "./form.js";

// One configuration. What is not saved yet stays when others are saved, or another page is looked at.
class Configuration {
  constructor(view, told) {
    this.view = view;
    this.name = told.name;
    const scheme = told.scheme, required = new Set(scheme.required ?? []);
    this.fields = Object.entries(scheme.properties ?? {}).map(([name, property]) =>
      new Field(`${told.name}-${name}`, name, property, { root: scheme, isRequired: required.has(name), onChange: () => this.showState() }));
    this.chip = h("span", { class: "chip" });
    this.mark = h("span", { class: "chip warn", hidden: true }, "unsaved changes");
    this.save = h("button", { type: "submit" });
    this.undo = h("button", { type: "button", onclick: () => this.discard() }, "Discard changes");
    this.problem = h("p", { class: "bad", role: "alert" });
    this.news = h("p", { class: "good", role: "status" });
    const title = `title-${told.name}`;
    this.element = h("form", { class: "card configuration", novalidate: true, "aria-labelledby": title, "data-configuration": told.name, onsubmit: (event) => { event.preventDefault(); this.put(); } },
      h("div", { class: "head" }, h("h3", { id: title }, told.name), this.chip, this.mark),
      scheme.description && h("p", { class: "hint" }, scheme.description),
      this.fields.map((field) => field.element),
      this.problem,
      h("div", { class: "actions" }, this.save, this.undo, this.news));
    this.keep(told.value);
  }

  get isChanged() {
    return this.fields.some((field) => field.isChanged);
  }

  get isSelected() {
    return this.view.selected === this.name;
  }

  keep(value) {
    for (const field of this.fields) field.keep(value[field.name]);
    this.showState();
  }

  discard() {
    for (const field of this.fields) field.write(field.kept);
    this.problem.textContent = "";
    this.showState();
    this.news.textContent = "The changes were discarded.";
    (this.fields[0]?.input ?? this.save).focus();
  }

  showState() {
    const { isChanged, isSelected } = this;
    this.chip.textContent = isSelected ? "in use" : "not in use";
    this.chip.className = `chip ${isSelected ? "active" : ""}`;
    this.mark.hidden = this.undo.hidden = !isChanged;
    this.save.textContent = isSelected ? "Save" : this.fields.length ? "Save and use" : "Use";
    this.save.hidden = isSelected && !this.fields.length;
    // It keeps the focus: a button that is switched off would lose it.
    this.save.setAttribute("aria-disabled", String(isSelected && !isChanged));
    if (isChanged) this.news.textContent = "";
    this.view.showState();
  }

  async put() {
    if (this.isBusy || this.save.getAttribute("aria-disabled") === "true") return;
    const unreadable = this.fields.filter((field) => field.unreadable);
    for (const field of this.fields) field.fault(field.unreadable);
    if (unreadable.length) {
      this.refuse(unreadable);
      return;
    }
    this.isBusy = true;
    this.view.saves += 1;
    this.problem.textContent = this.news.textContent = "";
    try {
      const body = Object.fromEntries(this.fields.map((field) => [field.name, field.read()]).filter(([, value]) => value !== undefined));
      const told = await (await api.settings(`/settings/${encodeURIComponent(this.name)}`, { method: "PUT", body: JSON.stringify(body), headers: { "content-type": "application/json" } })).json();
      this.view.saves += 1;
      this.view.selected = told.name;
      this.keep(told.value);
      this.news.textContent = "Saved. The next turns use it.";
      await this.view.saved();
    } catch (fault) {
      this.tell(fault);
    } finally {
      this.isBusy = false;
    }
  }

  tell(fault) {
    if (fault.status === 422 && fault.faults?.length) {
      const known = new Map(this.fields.map((field) => [field.name, field]));
      const rest = [];
      for (const { field, message } of fault.faults) {
        const place = known.get(field.split(".")[0]);
        // A place within a field is named, the field itself is where the words stand.
        if (place) place.fault(field.includes(".") ? `${field}: ${message}.` : `${message}.`);
        else rest.push(`${field ? `${field}: ` : ""}${message}.`);
      }
      this.refuse(this.fields.filter((field) => !field.problem.hidden), rest);
    } else if (fault.status === 401) {
      this.problem.textContent = "Nothing has changed: the service asks for its key. Then save again.";
      this.view.onLocked();
    } else {
      this.problem.textContent = fault.message.startsWith("Nothing has changed") ? fault.message : `Nothing has changed: ${fault.message}`;
    }
  }

  refuse(fields, rest = []) {
    const which = fields.map((field) => nameOf(field.name)).join(", ");
    this.problem.textContent = ["Nothing has changed.", which && `Look at: ${which}.`, ...rest].filter(Boolean).join(" ");
    fields[0]?.input.focus();
  }
}

export class SettingsView {
  // `onLocked` asks for the key.
  constructor(onLocked) {
    this.onLocked = onLocked;
    this.configurations = [];
    this.saves = 0;
    this.forms = h("div", { class: "forms" });
    this.log = h("div", {});
    byId("settings").replaceChildren(
      h("div", { class: "head" }, h("a", { class: "button back", href: "#/" }, "← All"), h("h2", {}, "Settings"),
        h("p", { class: "facts" }, "How the model is led through a turn. What is saved here goes before agent.yml; a skill's own workflow goes before both.")),
      this.forms,
      h("section", { class: "card", "aria-labelledby": "changes-title" }, h("h3", { id: "changes-title" }, "What changed last"), this.log));
    addEventListener("beforeunload", (event) => {
      if (this.isChanged) event.preventDefault();
    });
  }

  get isChanged() {
    return this.configurations.some((one) => one.isChanged);
  }

  async load() {
    const saves = this.saves;
    const told = await (await api.settings("/settings")).json();
    // What was asked for before a save began may be older than the save.
    if (saves !== this.saves) return;
    this.selected = told.selected_configuration;
    const shape = JSON.stringify(told.settings.map((one) => [one.name, one.scheme]));
    if (shape === this.shape) {
      // Elements stay where they are: who is typing in one keeps the focus, and what is not saved.
      const values = new Map(told.settings.map((one) => [one.name, one.value]));
      for (const one of this.configurations) if (!one.isChanged) one.keep(values.get(one.name));
    } else {
      this.shape = shape;
      this.configurations = told.settings.map((one) => new Configuration(this, one)).sort((a, b) => b.isSelected - a.isSelected);
      this.forms.replaceChildren(...this.configurations.map((one) => one.element));
    }
    for (const one of this.configurations) one.showState();
    await this.showChanges();
  }

  async saved() {
    for (const one of this.configurations) one.showState();
    await this.showChanges();
  }

  showState() {
    byId("unsaved").hidden = !this.isChanged;
  }

  async showChanges() {
    let content;
    try {
      const told = await (await api.settings("/setting_changes")).json();
      if (!told.kept) content = h("p", { class: "quiet" }, "Changes are not recorded by this store.");
      else if (!told.changes.length) content = h("p", { class: "quiet" }, "Nothing was ever changed here: agent.yml decides.");
      else content = h("ol", { class: "changes" }, told.changes.map(entry));
    } catch (fault) {
      content = h("p", { class: "bad" }, fault.message);
    }
    this.log.replaceChildren(content);
  }
}

function entry(change) {
  const from = (value) => [h("del", {}, h("span", { class: "unseen" }, "from "), value), h("span", { "aria-hidden": "true" }, " → ")];
  const lines = [
    change.selected && h("li", {}, "In use: ", change.selected.from && from(change.selected.from), h("ins", {}, h("span", { class: "unseen" }, "to "), change.selected.to)),
    ...change.fields.map((one) => h("li", {}, h("span", { class: "quiet" }, `${one.name}.`), one.field, ": ",
      one.from !== null && from(shown(one.from)), h("ins", {}, h("span", { class: "unseen" }, "to "), shown(one.to)))),
  ].filter(Boolean);
  return h("li", {},
    h("p", { class: "when" }, h("time", { datetime: change.at }, moment(change.at)), h("span", { class: "chip" }, change.who)),
    lines.length ? h("ul", {}, lines) : h("p", { class: "quiet" }, "Saved as it was."));
}
