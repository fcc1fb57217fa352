// The policy as cards: one for each operation, in the order in which they are applied.

import { call, Problem } from "./api.js";
import { $, el, openDialog } from "./dom.js";
import { change, facts, state } from "./store.js";

const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);
const numberOf = (text) => (text.trim() === "" ? null : Number(text));

export function renderCards() {
  $("cards").replaceChildren(...state.cards.map(cardOf));
}

export function showProblem(error) {
  const text = error instanceof Problem ? error.message : error ? String(error) : "";
  for (const item of $("cards").children) item.querySelector(".problem").textContent = "";
  const item = error?.card == null ? null : $("cards").children[error.card];
  if (item) item.querySelector(".problem").textContent = text;
  $("problem").textContent = item ? "" : text;
}

function update(at, patch, key, rebuild = false) {
  const cards = state.cards.map((card, n) => (n === at ? { ...card, ...patch } : card));
  change({ cards }, key && `${at}-${key}`, rebuild);
}

function move(from, to) {
  if (to < 0 || to >= state.cards.length || from === to) return;
  const cards = [...state.cards];
  cards.splice(to, 0, ...cards.splice(from, 1));
  change({ cards }, null, true);
  $("cards").children[to].focus();
}

export function addCard(card) {
  change({ cards: [...state.cards, card] }, null, true);
  $("cards").lastElementChild.scrollIntoView({ block: "nearest" });
}

function cardOf(card, at) {
  const entry = facts.catalogue.get(card.op);
  const others = Object.keys(card.arguments).map((name) => ({ name, kind: "text", required: true }));
  const fields = entry?.fields.filter((field) => !(entry.has_p && field.name === "p")) ?? others;
  const argument = (field) => argumentOf(card, at, field);
  const button = (label, title, onclick) => el("button", { type: "button", title, ariaLabel: title, onclick }, label);
  const splice = (...given) => change({ cards: state.cards.toSpliced(at, ...given) }, null, true);
  const item = el(
    "li",
    { tabIndex: 0, draggable: true, className: card.on ? "" : "off", ariaLabel: `${at + 1}. ${card.op}` },
    el(
      "div",
      { className: "head" },
      el("input", {
        type: "checkbox",
        checked: card.on,
        ariaLabel: `${card.op} is applied`,
        onchange: (event) => update(at, { on: event.target.checked }, null, true),
      }),
      el("strong", { title: entry?.summary ?? "" }, card.op),
      button("↑", "Move up (Alt+Up)", () => move(at, at - 1)),
      button("↓", "Move down (Alt+Down)", () => move(at, at + 1)),
      button("+", "Duplicate", () => splice(0, structuredClone(state.cards[at]))),
      button("✕", "Delete", () => splice(1)),
    ),
    probabilityOf(card, at, entry),
    ...fields.slice(0, 3).map(argument),
    fields.length > 3 ? el("details", {}, el("summary", {}, "More"), ...fields.slice(3).map(argument)) : null,
    el("p", { className: "problem", role: "alert" }),
  );
  item.addEventListener("keydown", (event) => {
    if (!event.altKey || !["ArrowUp", "ArrowDown"].includes(event.key)) return;
    event.preventDefault();
    move(at, at + (event.key === "ArrowUp" ? -1 : 1));
  });
  item.addEventListener("dragstart", (event) => {
    // A slider is dragged, not its card.
    if (document.activeElement?.matches("#cards input")) event.preventDefault();
    else event.dataTransfer.setData("text/plain", String(at));
  });
  item.addEventListener("dragover", (event) => event.preventDefault());
  item.addEventListener("drop", (event) => {
    event.preventDefault();
    move(Number(event.dataTransfer.getData("text/plain")), at);
  });
  return item;
}

function probabilityOf(card, at, entry) {
  const own = entry?.has_p ? entry.fields.find((field) => field.name === "p") : null;
  const field = { name: "probability", kind: "number", low: 0, high: 1, default: 1 };
  const value = own ? card.arguments.p ?? own.default : card.p;
  const set = (p) => update(at, own ? { arguments: { ...cardAt(at).arguments, p } } : { p }, "p");
  return row(field, slider(field, value, set));
}

const cardAt = (at) => state.cards[at];

function argumentOf(card, at, field) {
  const value = field.name in card.arguments ? card.arguments[field.name] : field.default;
  const set = (given) => {
    const changed = { ...cardAt(at).arguments, [field.name]: given };
    if (!field.required && same(given, field.default)) delete changed[field.name];
    update(at, { arguments: changed }, field.name);
  };
  return row(field, controlOf(field, value, set));
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

function slider(field, value, set) {
  const step = field.kind === "integer" ? 1 : "any";
  const box = el("input", { type: "number", step, value: value ?? "", placeholder: field.optional ? "none" : "" });
  box.addEventListener("change", () => set(numberOf(box.value)));
  if (field.low == null || field.high == null) return box;
  const fine = field.kind === "integer" ? 1 : (field.high - field.low) / 200;
  const range = el("input", { type: "range", min: field.low, max: field.high, step: fine, value: value ?? field.low });
  range.addEventListener("input", () => {
    box.value = Number(Number(range.value).toPrecision(4));
    set(Number(box.value));
  });
  box.addEventListener("change", () => (range.value = box.value));
  return el("span", { className: "slider" }, range, box);
}

// -- the catalogue ----------------------------------------------------------------------------------------------------

export function openCatalogue() {
  const search = el("input", { type: "search", placeholder: "Search", ariaLabel: "Search operations" });
  const groups = new Map();
  for (const entry of facts.catalogue.values()) {
    if (!groups.has(entry.group)) groups.set(entry.group, []);
    const picture = el("img", { alt: "", width: 72, height: 72, loading: "lazy" });
    const add = () => {
      $("dialog").close();
      addCard(structuredClone(entry.card));
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
