// The views: a grid, one operation over its range, two policies, the strongest draws, and what is taken away.

import { Newest, Problem, blob, call, get, numbered } from "./api.js";
import { addCard, showProblem } from "./cards.js";
import { $, download, el, openDialog } from "./dom.js";
import { drawCurves, drawGrid, drawHistograms, status } from "./grid.js";
import { change, facts, permalink, state } from "./store.js";

const asked = (cards = state.cards) => {
  const one = state.mode === "one";
  const images = one ? state.images.slice(0, 1) : state.images;
  return { cards, seed: state.seed, epoch: state.epoch, size: state.size, images, copies: state.copies };
};

// Several views of each copy make a row longer.
const columns = ({ originals, cells }) =>
  state.mode === "one" ? Math.min(cells.length + 1, 8) : cells.length / originals.length + 1;

// An original, then its copies, for each image.
function inRows(found) {
  const copies = ({ index }) => found.cells.filter((cell) => cell.index === index);
  return found.originals.flatMap((original) => [original, ...copies(original)]);
}

const passesOf = ({ cost }) => `${cost.passes.toFixed(2)} passes per sample`;

function costOf({ cost }, began) {
  const ms = Math.round(performance.now() - began);
  return `drawn in ${Math.round(cost.draw_ms)} ms, here after ${ms} ms; ${passesOf({ cost })}`;
}

function grid(view) {
  const newest = new Newest();
  const pictures = el("div");
  const histograms = el("canvas", { role: "img", className: "histograms" });
  const schedule = el("canvas", { role: "img", className: "curves" });
  const sheet = () => blob("sheet", asked()).then((png) => download("contact-sheet.png", png), showProblem);
  const save = el("button", { type: "button", onclick: sheet }, "Save contact sheet");
  view.replaceChildren(histograms, schedule, pictures, save);
  return () =>
    newest.run(async () => {
      const began = performance.now();
      const found = await call("grid", numbered(asked(), "grid"));
      drawGrid(pictures, inRows(found), columns(found));
      drawHistograms(histograms, found.histograms);
      facts.schedule = found.schedule;
      schedule.hidden = !found.schedule;
      if (found.schedule) drawSchedule(schedule, found.schedule);
      const bad = found.bad.length ? `; not shown: ${found.bad.join("; ")}` : "";
      status(`${found.cells.length} pictures ${costOf(found, began)}${bad}`);
    });
}

// Probability times magnitude of each operation, by epoch.
function drawSchedule(canvas, { epochs, curves }) {
  const end = (points, n) => points[n + 1]?.[0] ?? epochs;
  const stairs = (points) => points.flatMap(([epoch, value], n) => [[epoch, value], [end(points, n), value]]);
  const series = Object.entries(curves).map(([name, points]) => [name, stairs(points)]);
  drawCurves(canvas, "Probability times magnitude by epoch", Object.fromEntries(series), state.epoch);
}

function compare(view) {
  const newest = new Newest();
  const [first, second] = [el("div"), el("div")];
  const keep = () => change({ other: structuredClone(state.cards) });
  const opened = structuredClone(state.cards);
  view.replaceChildren(
    el("p", {}, "A is kept while you tune B on the left; both have the same seeds. "),
    el("button", { type: "button", onclick: keep }, "Keep this policy as A"),
    el(
      "div",
      { className: "sides" },
      el("div", {}, el("h2", {}, "A"), first),
      el("div", {}, el("h2", {}, "B"), second),
    ),
  );
  return () =>
    newest.run(async () => {
      const began = performance.now();
      const kept = await call("grid", numbered(asked(state.other ?? opened), "a")).catch((error) => {
        throw error instanceof Problem ? new Problem(`A: ${error.message}`) : error;
      });
      const tuned = await call("grid", numbered(asked(), "b"));
      facts.schedule = tuned.schedule;
      drawGrid(first, inRows(kept), columns(kept));
      drawGrid(second, inRows(tuned), columns(tuned));
      status(`A: ${passesOf(kept)}; B: ${costOf(tuned, began)}`);
    });
}

function sweep(view) {
  const newest = new Newest();
  const names = [...facts.catalogue.values()].filter((entry) => entry.is_sweepable).map((entry) => entry.name);
  const wanted = state.cards.find((card) => names.includes(card.op))?.op ?? "Rotate";
  const options = names.map((name) => el("option", { selected: name === wanted }, name));
  const choice = el("select", { ariaLabel: "Operation", onchange: () => draw() }, ...options);
  const add = () => addCard(structuredClone(facts.catalogue.get(choice.value).card));
  const pictures = el("div");
  view.replaceChildren(choice, " ", el("button", { type: "button", onclick: add }, "Add to the policy"), pictures);
  const draw = () =>
    newest.run(async () => {
      const { op = choice.value, ...rest } = { ...asked(), steps: 7 };
      const { rows } = await call("sweep", { ...rest, op });
      drawGrid(pictures, rows.flat(), rows[0].length);
      status(`${choice.value} over its range, on ${rows.length} images`);
    });
  return draw;
}

function strongest(view) {
  const newest = new Newest();
  const pictures = el("div");
  const told = el("p");
  view.replaceChildren(told, pictures);
  return () =>
    newest.run(async () => {
      const given = { ...asked(), image: state.images[0], draws: 1000, keep: 24 };
      const { cells, quantiles } = await call("strongest", numbered(given, "strongest"));
      const [half, most, nearly] = quantiles.map(([, value]) => value.toFixed(1));
      told.textContent =
        `Of 1,000 draws of the first image, half change it by up to ${half} levels, 90 % by up to ${most}, ` +
        `99 % by up to ${nearly}. These change it most: could you still tell what it shows?`;
      drawGrid(pictures, cells.map((cell) => ({ ...cell, title: `${cell.change} levels, copy ${cell.copy}` })), 6);
      status("1,000 draws compared");
    });
}

function take(view) {
  const texts = ["json", "yaml", "python", "command"].map((name) => {
    const area = el("textarea", { readOnly: true, rows: name === "command" ? 2 : 10, ariaLabel: name });
    const file = { json: "policy.json", yaml: "policy.yaml", python: "policy.py", command: "augment.sh" }[name];
    const copy = async () => {
      await navigator.clipboard.writeText(area.value).then(
        () => status(`${name} copied`),
        () => status("the browser does not let a page copy; select the text"),
      );
    };
    return { name, area, buttons: [["Copy", copy], ["Download", () => download(file, area.value)]] };
  });
  const link = el("a", {}, "Link to this policy, seed and these images");
  view.replaceChildren(
    el("p", {}, link),
    ...texts.flatMap(({ name, area, buttons }) => [
      el("h2", {}, name === "command" ? "Command line" : name.toUpperCase().replace("PYTHON", "Python")),
      area,
      ...buttons.map(([label, onclick]) => el("button", { type: "button", onclick }, label)),
    ]),
  );
  return async () => {
    const { cards, copies, seed, epoch } = state;
    const found = await call("export", { cards, copies, seed, epoch });
    for (const { name, area } of texts) area.value = found[name];
    link.href = permalink();
    status(`policy ${found.hash}`);
  };
}

export const VIEWS = { Grid: grid, Sweep: sweep, Compare: compare, Strongest: strongest, Export: take };

// -- choosing images --------------------------------------------------------------------------------------------------

const SIDE = 112;
const PAGE = 100;

// Of 100,000 images only those in sight have nodes, and only their pages are asked for.
export function openImages() {
  const chosen = new Set(state.images);
  const told = el("span");
  const list = el("div", { className: "images" });
  const spacer = el("div");
  const pages = new Map();
  const apply = () => {
    $("dialog").close();
    change({ images: [...chosen].sort((a, b) => a - b) }, null, false);
  };
  const page = (number) => {
    if (!pages.has(number)) pages.set(number, get(`/api/images?first=${number * PAGE}&count=${PAGE}`));
    return pages.get(number);
  };
  const show = el("button", { type: "button", onclick: apply }, "Show these");
  const tell = () => {
    told.textContent = `${chosen.size} of ${facts.source.count.toLocaleString("en")} images`;
    show.disabled = chosen.size === 0;
  };
  const none = () => {
    chosen.clear();
    tell();
    fillIn();
  };

  async function fillIn() {
    const across = Math.max(Math.floor(list.clientWidth / SIDE), 1);
    spacer.style.setProperty("height", `${Math.ceil(facts.source.count / across) * SIDE}px`);
    const first = Math.floor(list.scrollTop / SIDE) * across;
    const end = Math.min(first + (Math.ceil(list.clientHeight / SIDE) + 1) * across, facts.source.count);
    const numbers = [];
    for (let n = Math.floor(first / PAGE); n * PAGE < end; n++) numbers.push(page(n));
    const found = await Promise.all(numbers).catch((error) => {
      pages.clear();
      told.textContent = error.message;
      return [];
    });
    const images = found.flatMap((one) => one.images);
    const tiles = images.filter(({ index }) => index >= first && index < end).map((image) => tileOf(image, across));
    spacer.replaceChildren(...tiles);
  }

  function tileOf({ index, name, url }, across) {
    const picture = el("img", { src: url, alt: name, width: 96, height: 96 });
    const tile = el("button", { type: "button", title: name, ariaPressed: String(chosen.has(index)) }, picture);
    tile.style.setProperty("top", `${Math.floor(index / across) * SIDE}px`);
    tile.style.setProperty("left", `${(index % across) * SIDE}px`);
    tile.addEventListener("click", () => {
      if (!chosen.delete(index)) chosen.add(index);
      tile.ariaPressed = String(chosen.has(index));
      tell();
    });
    return tile;
  }

  tell();
  list.append(spacer);
  list.addEventListener("scroll", fillIn);
  openDialog("Choose images", told, " ", show, " ", el("button", { type: "button", onclick: none }, "None"), list);
  fillIn();
}
