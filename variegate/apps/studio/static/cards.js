// The policy as cards: one for each operation, in the order in which they are applied.

import { call, Problem } from "./api.js";
import { $, el, openDialog } from "./dom.js";
import { change, facts, state } from "./store.js";

const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);
const numberOf = (text) => (text.trim() === "" ? null : Number(text));

// Lists of cards: the policy's, and those of a composition, which are described transforms.
const policy = {
  cards: () => state.cards,
  set: (cards, key, rebuild) => change({ cards }, key, rebuild),
  element: () => $("cards"),
};

function inside(owner, at, name) {
  const own = () => owner.cards()[at];
  const transforms = (cards) => cards.map(({ op, arguments: given }) => ({ type: op, ...given }));
  return {
    isInside: true,
    cards: () => own().arguments[name].map(({ type, ...given }) => ({ op: type, arguments: given, on: true, p: 1 })),
    set: (cards, key, rebuild) =>
      update(owner, at, { arguments: { ...own().arguments, [name]: transforms(cards) } }, key, rebuild),
    element: () => owner.element().children[at].querySelector(`:scope > .inside > [data-name="${name}"]`),
  };
}

export function renderCards() {
  $("cards").replaceChildren(...state.cards.map((card, at) => cardOf(policy, card, at)));
}

export function showProblem(error) {
  const text = error instanceof Problem ? error.message : error ? String(error) : "";
  for (const problem of $("cards").querySelectorAll(".problem")) problem.textContent = "";
  const item = error?.card == null ? null : $("cards").children[error.card];
  if (item) item.querySelector(":scope > .problem").textContent = text;
  $("problem").textContent = item ? "" : text;
}

function update(list, at, patch, key, rebuild = false) {
  const cards = list.cards().map((card, n) => (n === at ? { ...card, ...patch } : card));
  list.set(cards, key && `${at}-${key}`, rebuild);
}

function move(list, from, to) {
  const cards = [...list.cards()];
  if (to < 0 || to >= cards.length || from === to) return;
  cards.splice(to, 0, ...cards.splice(from, 1));
  list.set(cards, null, true);
  list.element().children[to].focus();
}

// Formats, which the catalogue leaves out, come last, and before them what mixes images.
const lateness = ({ op }) => (!facts.catalogue.has(op) ? 2 : facts.catalogue.get(op).group === "Mixing" ? 1 : 0);

export function addCard(card, list = policy) {
  const cards = list.cards();
  const at = cards.findLastIndex((other) => list.isInside || lateness(other) <= lateness(card)) + 1;
  list.set(cards.toSpliced(at, 0, card), null, true);
  list.element().children[at].scrollIntoView({ block: "nearest" });
}

let dragged = null;

function cardOf(list, card, at) {
  const entry = facts.catalogue.get(card.op);
  const others = Object.keys(card.arguments).map((name) => ({ name, kind: "text", required: true }));
  const fields = entry?.fields.filter((field) => !(entry.has_p && field.name === "p")) ?? others;
  const argument = (field) => argumentOf(list, card, at, field);
  const button = (label, title, onclick) => el("button", { type: "button", title, ariaLabel: title, onclick }, label);
  const splice = (...given) => list.set(list.cards().toSpliced(at, ...given), null, true);
  const isOn = el("input", {
    type: "checkbox",
    checked: card.on,
    ariaLabel: `${card.op} is applied`,
    onchange: (event) => update(list, at, { on: event.target.checked }, null, true),
  });
  const item = el(
    "li",
    { tabIndex: 0, draggable: true, className: card.on ? "" : "off", ariaLabel: `${at + 1}. ${card.op}` },
    el(
      "div",
      { className: "head" },
      list.isInside ? null : isOn,
      el("strong", { title: entry?.summary ?? "" }, card.op),
      button("↑", "Move up (Alt+Up)", () => move(list, at, at - 1)),
      button("↓", "Move down (Alt+Down)", () => move(list, at, at + 1)),
      button("+", "Duplicate", () => splice(0, structuredClone(list.cards()[at]))),
      button("✕", "Delete", () => splice(1)),
    ),
    list.isInside && !entry?.has_p ? null : probabilityOf(list, card, at, entry),
    ...fields.slice(0, 3).map(argument),
    fields.length > 3 ? el("details", {}, el("summary", {}, "More"), ...fields.slice(3).map(argument)) : null,
    el("p", { className: "problem", role: "alert" }),
  );
  // Of cards within each other, the innermost answers.
  const on = (name, action) =>
    item.addEventListener(name, (event) => {
      event.stopPropagation();
      action(event);
    });
  on("keydown", (event) => {
    if (!event.altKey || !["ArrowUp", "ArrowDown"].includes(event.key)) return;
    event.preventDefault();
    move(list, at, at + (event.key === "ArrowUp" ? -1 : 1));
  });
  on("dragstart", (event) => {
    // A slider is dragged, not its card.
    if (document.activeElement?.matches("#cards input")) event.preventDefault();
    else {
      dragged = { list, at };
      event.dataTransfer.setData("text/plain", card.op);
    }
  });
  on("dragover", (event) => dragged?.list === list && event.preventDefault());
  on("drop", (event) => {
    event.preventDefault();
    if (dragged?.list === list) move(list, dragged.at, at);
  });
  return item;
}

function probabilityOf(list, card, at, entry) {
  const own = entry?.has_p ? entry.fields.find((field) => field.name === "p") : null;
  const field = { name: "probability", kind: "number", low: 0, high: 1, default: 1 };
  const value = own ? card.arguments.p ?? own.default : card.p;
  const set = (p) => update(list, at, own ? { arguments: { ...list.cards()[at].arguments, p } } : { p }, "p");
  return row(field, slider(field, value, set));
}

function argumentOf(list, card, at, field) {
  const value = field.name in card.arguments ? card.arguments[field.name] : field.default;
  if (Array.isArray(value) && field.name === "transforms" && value.every((one) => typeof one?.type === "string")) {
    return transformsOf(list, at, field.name);
  }
  const set = (given) => {
    const changed = { ...list.cards()[at].arguments, [field.name]: given };
    if (!field.required && same(given, field.default)) delete changed[field.name];
    update(list, at, { arguments: changed }, field.name);
  };
  return row(field, controlOf(field, value, set));
}

function transformsOf(owner, at, name) {
  const list = inside(owner, at, name);
  const cards = list.cards().map((card, n) => cardOf(list, card, n));
  return el(
    "div",
    { className: "inside" },
    el("ol", { className: "cards", "data-name": name }, ...cards),
    el("button", { type: "button", onclick: () => openCatalogue(list) }, "Add to these"),
  );
}

const row = ({ name, help }, control) =>
  el("label", { className: "row" }, el("span", { title: help || name }, name), control);

function controlOf(field, value, set) {
  const isNumber = typeof value === "number" || value === null;
  if (field.kind === "choice") {
    const options = field.choices.map((choice) => el("option", { selected: choice === value }, String(choice)));
    return el("select", { onchange: (event) => set(field.choices[event.target.selectedIndex]) }, ...options);
  }
  if (field.kind === "flag") {
    return el("input", { type: "checkbox", checked: Boolean(value), onchange: (event) => set(event.target.checked) });
  }
  if ((field.kind === "number" || field.kind === "integer") && isNumber) return slider(field, value, set);
  if (field.kind === "color" && Array.isArray(value) && value.every(Number.isInteger)) {
    const digits = value.map((level) => level.toString(16).padStart(2, "0")).join("");
    const levels = (text) => [1, 3, 5].map((n) => parseInt(text.slice(n, n + 2), 16));
    return el("input", { type: "color", value: `#${digits}`, oninput: (event) => set(levels(event.target.value)) });
  }
  if (field.kind === "pair" && Array.isArray(value)) {
    const box = (n) =>
      el("input", {
        type: "number",
        step: "any",
        value: value[n],
        ariaLabel: `${field.name}, ${n ? "high" : "low"}`,
        onchange: (event) => set((value = value.map((old, m) => (m === n ? Number(event.target.value) : old)))),
      });
    return el("span", { className: "pair" }, box(0), box(1));
  }
  return el("input", {
    type: "text",
    value: JSON.stringify(value),
    onchange: (event) => {
      try {
        set(JSON.parse(event.target.value));
      } catch {
        set(event.target.value);
      }
    },
  });
}

// 1, 2 or 5 times a power of ten, so that sliders stop at round numbers.
function stepOf(most) {
  const power = 10 ** Math.floor(Math.log10(most));
  return power * [5, 2, 1].find((times) => times * power <= 1.001 * most);
}

function slider(field, value, set) {
  const step = field.kind === "integer" ? 1 : "any";
  const box = el("input", { type: "number", step, value: value ?? "", placeholder: field.optional ? "none" : "" });
  box.addEventListener("change", () => set(numberOf(box.value)));
  if (field.low == null || field.high == null) return box;
  const fine = field.kind === "integer" ? 1 : stepOf((field.high - field.low) / 200);
  const range = el("input", { type: "range", min: field.low, max: field.high, step: fine, value: value ?? field.low });
  range.addEventListener("input", () => {
    box.value = Number(Number(range.value).toPrecision(4));
    set(Number(box.value));
  });
  box.addEventListener("change", () => (range.value = box.value));
  return el("span", { className: "slider" }, range, box);
}

// -- the catalogue ----------------------------------------------------------------------------------------------------

export function openCatalogue(list = policy) {
  const search = el("input", { type: "search", placeholder: "Search", ariaLabel: "Search operations" });
  const groups = new Map();
  for (const entry of facts.catalogue.values()) {
    if (!groups.has(entry.group)) groups.set(entry.group, []);
    const picture = el("img", { alt: "", width: 72, height: 72, loading: "lazy" });
    const add = () => {
      $("dialog").close();
      addCard(structuredClone(entry.card), list);
    };
    const properties = { type: "button", title: entry.summary, className: "tile", onclick: add };
    const tile = el("button", properties, picture, entry.name);
    groups.get(entry.group).push({ entry, tile, picture });
  }
  const sections = [...groups].map(([name, tiles]) => {
    const list = el("div", { className: "tiles" }, ...tiles.map(({ tile }) => tile));
    return { tiles, section: el("section", {}, el("h3", {}, name), list) };
  });
  search.addEventListener("input", () => {
    const wanted = search.value.toLowerCase();
    for (const { tiles, section } of sections) {
      for (const { entry, tile } of tiles) {
        tile.hidden = !`${entry.name} ${entry.summary}`.toLowerCase().includes(wanted);
      }
      section.hidden = tiles.every(({ tile }) => tile.hidden);
    }
  });
  openDialog("Add an operation", search, ...sections.map(({ section }) => section));
  search.focus();
  call("catalogue", { image: state.images[0], size: 224 }).then(({ thumbnails }) => {
    for (const { tiles } of sections) {
      for (const { entry, picture } of tiles) if (thumbnails[entry.name]) picture.src = thumbnails[entry.name];
    }
  }, showProblem);
}
