// The page: settings, views, and one redraw for whatever changes.

import { Problem, blob, get } from "./api.js";
import { openCatalogue, renderCards, showProblem } from "./cards.js";
import { $, download, el } from "./dom.js";
import { status } from "./grid.js";
import { openImages } from "./images.js";
import { openPaste, startFrom } from "./paste.js";
import { canRedo, canUndo, change, facts, fromAddress, redo, restore, state, subscribe, undo } from "./store.js";
import { RUNS } from "./runs.js";
import { TEXTS, VIEWS, asText, asked } from "./views.js";

const SIZES = [64, 128, 224, 320, 512];
const THEMES = ["auto", "light", "dark"];
let draw = () => {};
let shown = "Grid";
let otherCopies; // in the mode that is not shown

const PATIENCE_MS = 200;
let pending = 0;

// What takes longer than a blink says that it is loading.
async function redraw() {
  pending += 1;
  const waiting = setTimeout(() => {
    $("view").ariaBusy = "true";
    status("Loading …");
  }, PATIENCE_MS);
  try {
    await draw();
    showEpochs();
    showProblem(null);
  } catch (error) {
    showProblem(error);
    status("not redrawn");
  } finally {
    clearTimeout(waiting);
    pending -= 1;
    if (!pending) $("view").ariaBusy = "false";
  }
}

function showView(name) {
  shown = name;
  for (const tab of $("tabs").children) {
    tab.ariaSelected = String(tab.textContent === name);
    tab.tabIndex = tab.textContent === name ? 0 : -1;
  }
  $("view").setAttribute("aria-label", name);
  document.body.classList.toggle("earlier", Object.values(RUNS).some(([title]) => title === name));
  draw = VIEWS[name]($("view"));
  redraw();
}

function showSettings() {
  $("seed").value = state.seed;
  $("epoch").value = $("epochs").value = state.epoch;
  $("size").selectedIndex = Math.max(SIZES.indexOf(state.size), 0);
  $("mode").value = state.mode;
  $("copies").value = state.copies;
  $("undo").disabled = !canUndo();
  $("redo").disabled = !canRedo();
}

function showEpochs() {
  $("epochs").hidden = !facts.schedule;
  $("epochs").max = (facts.schedule?.epochs ?? 1) - 1;
  $("epochs").value = state.epoch;
}

function showTheme(name) {
  document.documentElement.dataset.theme = name;
  localStorage.setItem("variegate-studio-theme", name);
  $("theme").textContent = `Theme: ${name}`;
}

const DOWNLOADS = {
  "Policy as JSON": "json",
  "Policy as YAML": "yaml",
  "Policy as Python": "python",
  "Command line": "command",
};

function showDownloads() {
  const text = (name) => async () => download(TEXTS[name], (await asText())[name]);
  const sheet = async () => download("contact-sheet.png", await blob("sheet", asked()));
  const items = [...Object.entries(DOWNLOADS).map(([label, name]) => [label, text(name)]), ["Contact sheet", sheet]];
  const run = (action) => () => {
    $("download").open = false;
    action().catch(showProblem);
  };
  $("downloads").replaceChildren(
    ...items.map(([label, action]) => el("button", { type: "button", onclick: run(action) }, label)),
  );
}

function wire() {
  const on = (id, event, action) => $(id).addEventListener(event, action);
  const set = (id, name, read) =>
    on(id, "input", () => {
      const value = read($(id));
      if (value !== undefined) change({ [name]: value }, id);
      else showProblem(new Problem(`${id}: accepted: a whole number from ${$(id).min} to ${$(id).max}`));
    });
  const whole = (input) => (input.validity.valid && input.value !== "" ? Number(input.value) : undefined);
  set("seed", "seed", whole);
  set("epoch", "epoch", whole);
  set("epochs", "epoch", whole);
  set("copies", "copies", whole);
  set("mode", "mode", (input) => input.value);
  set("size", "size", (input) => SIZES[input.selectedIndex]);
  on("mode", "change", () => {
    const copies = otherCopies;
    otherCopies = state.copies;
    change({ copies }, "mode");
  });
  on("reseed", "click", () => change({ seed: (state.seed + 1) % 2 ** 32 }, "reseed"));
  on("undo", "click", undo);
  on("redo", "click", redo);
  on("add", "click", () => openCatalogue());
  on("choose", "click", openImages);
  on("paste", "click", openPaste);
  on("theme", "click", () => showTheme(THEMES[(THEMES.indexOf(document.documentElement.dataset.theme) + 1) % 3]));
  on("settings", "submit", (event) => event.preventDefault());
  on("start", "submit", (event) => {
    event.preventDefault();
    startFrom($("policy").value).catch(showProblem);
  });
  on("tabs", "keydown", (event) => {
    const names = Object.keys(VIEWS);
    const to = names.indexOf(shown) + { ArrowRight: 1, ArrowLeft: names.length - 1 }[event.key];
    if (Number.isNaN(to)) return;
    showView(names[to % names.length]);
    $("tabs").children[to % names.length].focus();
  });
  window.addEventListener("hashchange", () => {
    const found = fromAddress();
    if (found) change(found, null, true);
  });
  document.addEventListener("keydown", (event) => {
    if (!(event.ctrlKey || event.metaKey) || event.key.toLowerCase() !== "z") return;
    if (event.target.matches("input[type=text], input[type=search], textarea")) return;
    event.preventDefault();
    (event.shiftKey ? redo : undo)();
  });
}

async function start() {
  showTheme(localStorage.getItem("variegate-studio-theme") ?? "auto");
  const told = await get("/api/state");
  facts.source = told.source;
  facts.formats = new Set(told.formats);
  facts.catalogue = new Map(told.catalogue.map((entry) => [entry.name, entry]));
  const count = Math.min(4, told.source.count);
  const images = Array.from({ length: count }, (_, n) => Math.floor((n * told.source.count) / count));
  restore({ ...state, cards: told.cards, size: told.size, images });
  $("source").textContent = `${told.source.name}, ${told.source.count.toLocaleString("en")} images`;
  $("source").title = told.source.notes.join("\n");
  $("policies").replaceChildren(...told.policies.map((name) => el("option", { value: name })));
  otherCopies = state.mode === "one" ? 5 : 63;
  if (state.size !== null && !SIZES.includes(state.size)) SIZES.push(state.size);
  SIZES.sort((a, b) => a - b).push(null);
  $("size").replaceChildren(...SIZES.map((side) => el("option", {}, side === null ? "full" : `${side} px`)));
  const tab = (name) => el("button", { type: "button", role: "tab", onclick: () => showView(name) }, name);
  facts.views = told.views;
  for (const [name, [title, view]] of Object.entries(RUNS)) if (name in told.views) VIEWS[title] = view;
  $("tabs").replaceChildren(...Object.keys(VIEWS).map(tab));
  showDownloads();
  wire();
  subscribe((rebuild) => {
    if (rebuild) renderCards();
    showSettings();
    redraw();
  });
  renderCards();
  showSettings();
  const opened = Object.keys(RUNS).find((name) => name in told.views);
  showView(opened ? RUNS[opened][0] : "Grid");
}

start().catch(showProblem);
