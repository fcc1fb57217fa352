// The policy as cards: one for each operation, in the order in which they are applied.

import { call, Problem } from "./api.js";
import { $, el, openDialog } from "./dom.js";
import { breakable } from "./grid.js";
import { change, facts, state } from "./store.js";

const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);
const numberOf = (text) => (text.trim() === "" ? null : Number(text));

// Lists of cards: the policy's, and those of a composition, which are described transforms.
const policy = {
  cards: () => state.cards,
  set: (cards, key, rebuild) => change({ cards }, key, rebuild),
  element: () => $("cards"),
};

// Arguments with a value for each transform.
const PARALLEL = ["weights", "p", "counts"];

function inside(owner, at, name) {
  const own = () => owner.cards()[at].arguments;
  const described = ({ type, ...given }) => ({ op: type, arguments: given, on: true, p: 1 });
  // A list stands for the views of one group.
  const views = (transforms) => ({ op: "Views", isList: true, arguments: { transforms }, on: true, p: 1 });
  const transformOf = ({ op, isList, arguments: given }) => (isList ? given.transforms : { type: op, ...given });
  return {
    cards: () => own()[name].map((one) => (Array.isArray(one) ? views(one) : described(one))),
    set: (cards, key, rebuild, rearranged = (values) => values) => {
      const given = { ...own(), [name]: cards.map(transformOf) };
      for (const other of PARALLEL) {
        if (given[other]?.length === own()[name].length) given[other] = rearranged(given[other]);
      }
      update(owner, at, { arguments: given }, key, rebuild);
    },
    element: () => owner.element().children[at].querySelector(`:scope > .inside > [data-name="${name}"]`),
  };
}

// Where an element is among the cards, to find its like when they are made anew.
function pathTo(element) {
  const path = [];
  for (; element !== $("cards"); element = element.parentElement) {
    path.unshift([...element.parentElement.children].indexOf(element));
  }
  return path;
}

const elementAt = (path) => path.reduce((element, n) => element?.children[n], $("cards"));

export function renderCards() {
  const focused = $("cards").contains(document.activeElement) ? pathTo(document.activeElement) : null;
  const opened = [...$("cards").querySelectorAll("details[open]")].map(pathTo);
  $("cards").replaceChildren(...state.cards.map((card, at) => cardOf(policy, card, at)));
  for (const path of opened) {
    const details = elementAt(path);
    if (details?.matches("details")) details.open = true;
  }
  if (focused) (elementAt(focused) ?? $("cards").lastElementChild ?? $("add")).focus();
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
  const cards = list.cards();
  if (to < 0 || to >= cards.length || from === to) return;
  const moved = (values) => values.toSpliced(from, 1).toSpliced(to, 0, values[from]);
  list.set(moved(cards), null, true, moved);
  list.element().children[to].focus();
}

function splice(list, at, count, ...cards) {
  const spliced = (values) => values.toSpliced(at, count, ...cards.map(() => values[at] ?? 1));
  list.set(list.cards().toSpliced(at, count, ...cards), null, true, spliced);
}

// Formats come last, and before them what mixes images.
const lateness = ({ op }) => (facts.formats.has(op) ? 2 : facts.catalogue.get(op)?.group === "Mixing" ? 1 : 0);

export function addCard(card, list = policy) {
  const at = list.cards().findLastIndex((other) => lateness(other) <= lateness(card)) + 1;
  splice(list, at, 0, card);
  list.element().children[at].focus();
}

let dragged = null;

function cardOf(list, card, at) {
  const entry = facts.catalogue.get(card.op);
  const others = Object.keys(card.arguments).map((name) => ({ name, kind: "fixed", required: true }));
  const ownChance = card.p === 1 ? entry?.fields.find((field) => entry.has_p && field.name === "p") : undefined;
  // What no control has is shown if the policy has it.
  const isShown = (field) => field !== ownChance && (field.kind !== "fixed" || field.name in card.arguments);
  const fields = (entry?.fields ?? others).filter(isShown);
  // An operation inside another has no chance but its own; several views are made of all images.
  const hasChance = ownChance || (list === policy && card.op !== "MultiView");
  const argument = (field) => argumentOf(list, card, at, field);
  const button = (label, title, onclick) => el("button", { type: "button", title, ariaLabel: title, onclick }, label);
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
      list === policy ? isOn : null,
      el("strong", { title: entry?.summary ?? "" }, ...breakable(card.op)),
      button("↑", "Move up (Alt+Up)", () => move(list, at, at - 1)),
      button("↓", "Move down (Alt+Down)", () => move(list, at, at + 1)),
      button("+", "Duplicate", () => splice(list, at, 0, structuredClone(list.cards()[at]))),
      button("✕", "Delete", () => splice(list, at, 1)),
    ),
    hasChance ? probabilityOf(list, card, at, ownChance) : null,
    ...fields.slice(0, 3).map(argument),
    fields.length > 3 ? el("details", {}, el("summary", {}, "More"), ...fields.slice(3).map(argument)) : null,
    el("p", { className: "problem", role: "alert" }),
  );
  // Of cards within each other, the innermost answers; to one that is dragged, those of its own list.
  const on = (name, isMeant, action) =>
    item.addEventListener(name, (event) => {
      if (!isMeant(event)) return;
      event.stopPropagation();
      action(event);
    });
  const isHere = () => dragged?.list === list;
  on("keydown", ({ altKey, key }) => altKey && ["ArrowUp", "ArrowDown"].includes(key), (event) => {
    event.preventDefault();
    move(list, at, at + (event.key === "ArrowUp" ? -1 : 1));
  });
  on("dragstart", () => true, (event) => {
    // A slider is dragged, not its card.
    if (document.activeElement?.matches("#cards input")) event.preventDefault();
    else {
      dragged = { list, at };
      event.dataTransfer.setData("text/plain", card.op);
    }
  });
  on("dragend", () => true, () => (dragged = null));
  on("dragover", isHere, (event) => event.preventDefault());
  on("drop", isHere, (event) => {
    event.preventDefault();
    move(list, dragged.at, at);
  });
  return item;
}

function probabilityOf(list, card, at, own) {
  const field = { name: "probability", kind: "number", low: 0, high: 1, default: 1 };
  const value = own ? card.arguments.p ?? own.default : card.p;
  const set = (p) => update(list, at, own ? { arguments: { ...list.cards()[at].arguments, p } } : { p }, "p");
  return row(field, slider(field, value, set));
}

const isTransform = (one) => typeof one?.type === "string" || (Array.isArray(one) && one.every(isTransform));

function argumentOf(list, card, at, field) {
  const value = field.name in card.arguments ? card.arguments[field.name] : field.default;
  if (Array.isArray(value) && field.name === "transforms" && value.every(isTransform)) {
    return transformsOf(list, at, field.name);
  }
  if (card.op === "SomeOf" && field.name === "n") field = { ...field, high: card.arguments.transforms.length };
  const set = (given, rebuild = false) => {
    const changed = { ...list.cards()[at].arguments, [field.name]: given };
    if (!field.required && same(given, field.default)) delete changed[field.name];
    update(list, at, { arguments: changed }, field.name, rebuild);
  };
  if (field.kind === "weights" && value === null) field = { ...field, start: card.arguments.transforms.map(() => 1) };
  const control = controlOf(field, value, set);
  if (!field.optional || value === null || field.kind === "choice") return row(field, control);
  const unset = el("button", { type: "button", title: `No ${field.name}`, onclick: () => set(null, true) }, "✕");
  return row(field, el("span", { className: "optional" }, control, unset));
}

// -- sliders ----------------------------------------------------------------------------------------------------------

// Cards within each other, with their names.
function* walk(cards, path = "") {
  for (const [n, card] of cards.entries()) {
    const name = path ? `${path} › ${card.op}` : `${n + 1}. ${card.op}`;
    yield { name, card };
    const inner = card.arguments.transforms;
    if (Array.isArray(inner) && inner.every((one) => typeof one?.type === "string")) {
      yield* walk(inner.map(({ type, ...given }) => ({ op: type, arguments: given, on: true, p: 1 })), name);
    }
  }
}

// All sliders of the policy's cards, and of new cards of other operations: what a sweep may show.
export function sliders() {
  const found = [];
  const add = (name, card, isOwn) => {
    for (const field of facts.catalogue.get(card.op)?.fields ?? []) {
      const value = card.arguments[field.name] ?? field.default ?? field.start;
      const isPair = areNumbers(value, 2);
      if (field.low === null || field.high === null || !(isNumber(value) || isPair)) continue;
      found.push({ name: `${name}: ${field.name}`, card, field, isPair, isOwn });
    }
  };
  for (const { name, card } of walk(state.cards)) add(name, card, true);
  for (const entry of facts.catalogue.values()) add(entry.name, entry.card, false);
  return found;
}

function transformsOf(owner, at, name) {
  const list = inside(owner, at, name);
  const cards = list.cards().map((card, n) => cardOf(list, card, n));
  const add = el("button", { type: "button", onclick: () => openCatalogue(list) }, "Add to these");
  // A view is made of another, by duplicating it: all have one format.
  const { op, isList } = owner.cards()[at];
  const cells = el("ol", { className: "cards", "data-name": name }, ...cards);
  return el("div", { className: "inside" }, cells, isList || op === "MultiView" ? null : add);
}

const row = ({ name, help }, control) => {
  const isOne = control.matches("input, select");
  return el(isOne ? "label" : "div", { className: "row" }, el("span", { title: help || name }, ...breakable(name)), control);
};

const isNumber = (value) => typeof value === "number";
const areNumbers = (value, length) => Array.isArray(value) && value.length === length && value.every(isNumber);

function controlOf(field, value, set) {
  if (field.kind === "choice") return choiceOf(field, value, set);
  if (value === null && field.optional && field.start !== null) {
    const start = () => set(structuredClone(field.start), true);
    return el("span", { className: "none" }, "none", el("button", { type: "button", onclick: start }, "Set"));
  }
  if (typeof value === "boolean") {
    const onchange = (event) => set(event.target.checked);
    return el("input", { type: "checkbox", checked: value, ariaLabel: field.name, onchange });
  }
  if (isNumber(value)) return slider(field, value, set);
  if (areNumbers(value, 2) && field.is_range) return rangeOf(field, value, set);
  if (field.kind === "color" && areNumbers(value, 3)) {
    const digits = value.map((level) => level.toString(16).padStart(2, "0")).join("");
    const levels = (text) => [1, 3, 5].map((n) => parseInt(text.slice(n, n + 2), 16));
    const oninput = (event) => set(levels(event.target.value));
    return el("input", { type: "color", value: `#${digits}`, ariaLabel: field.name, oninput });
  }
  if (Array.isArray(value) && value.length && value.every(isNumber)) return several(field, value, set);
  return el("code", {}, JSON.stringify(value));
}

function choiceOf(field, value, set) {
  const choices = [...field.choices];
  let at = choices.findIndex(([, choice]) => same(choice, value));
  if (at < 0) at = choices.push([JSON.stringify(value), value]) - 1;
  const options = choices.map(([name], n) => el("option", { selected: n === at }, name));
  const onchange = (event) => set(choices[event.target.selectedIndex][1]);
  return el("select", { ariaLabel: field.name, onchange }, ...options);
}

// A slider for each of several numbers.
function several(field, values, set) {
  let now = values;
  const one = (value, n) => {
    const part = { ...field, name: `${field.name} ${n + 1}`, low: field.low ?? 0, high: field.high ?? 10 };
    return slider(part, value, (given) => set((now = now.with(n, given))));
  };
  return el("span", { className: "several" }, ...values.map(one));
}

// Two thumbs on one line, and boxes for exact numbers.
function rangeOf(field, value, set) {
  let now = value;
  const [low, high] = [Math.min(field.low ?? 0, ...value), Math.max(field.high ?? 1, ...value)];
  const step = field.step ?? stepOf((high - low) / 200);
  const boxes = [];
  const thumbs = [];
  const change = (n, given) => {
    if (given === null) return;
    const bounded = n ? Math.max(given, now[0]) : Math.min(given, now[1]);
    now = now.with(n, Number(bounded.toPrecision(6)));
    boxes[n].value = thumbs[n].value = now[n];
    set(now);
  };
  ["low", "high"].forEach((end, n) => {
    const ariaLabel = `${field.name}, ${end}`;
    const box = el("input", { type: "number", step: field.step ?? "any", value: value[n], ariaLabel });
    box.addEventListener("change", () => change(n, numberOf(box.value)));
    const thumb = el("input", { type: "range", min: low, max: high, step, value: value[n], ariaLabel });
    thumb.addEventListener("input", () => change(n, Number(thumb.value)));
    boxes.push(box);
    thumbs.push(thumb);
  });
  return el("span", { className: "pair" }, el("span", { className: "range" }, ...thumbs), ...boxes);
}

// 1, 2 or 5 times a power of ten, so that sliders stop at round numbers.
function stepOf(most) {
  const power = 10 ** Math.floor(Math.log10(most));
  return power * [5, 2, 1].find((times) => times * power <= 1.001 * most);
}

function slider(field, value, set) {
  const step = field.step ?? "any";
  const box = el("input", { type: "number", step, value: value ?? "", ariaLabel: field.name });
  box.addEventListener("change", () => set(numberOf(box.value)));
  if (field.low == null || field.high == null) return box;
  const fine = field.step ?? stepOf((field.high - field.low) / 200);
  const ends = { min: field.low, max: field.high, step: fine, value: value ?? field.low };
  const range = el("input", { type: "range", ...ends, ariaLabel: `${field.name}, slider` });
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
    const tile = el("button", properties, picture, el("span", {}, ...breakable(entry.name)));
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
