// The views: a grid, one argument over its range, two policies, the strongest draws, and the policy as text.

import { Newest, Problem, call, numbered } from "./api.js";
import { sliders } from "./cards.js";
import { differences } from "./differences.js";
import { el } from "./dom.js";
import { drawCurves, drawGrid, drawHistograms, status } from "./grid.js";
import { change, facts, permalink, previousCards, state } from "./store.js";

export const asked = (cards = state.cards) => {
  const one = state.mode === "one";
  const images = one ? state.images.slice(0, 1) : state.images;
  return { cards, seed: state.seed, epoch: state.epoch, size: state.size, images, copies: state.copies };
};

// Several views of each copy make a row longer.
const columns = ({ originals, cells }) =>
  state.mode === "one" ? Math.min(cells.length + 1, 8) : cells.length / originals.length + 1;

// An original, then its copies, for each image.
function inRows(found) {
  const cells = found.cells.map(({ title, ...cell }) => ({ ...cell, more: title }));
  const copies = ({ index }) => cells.filter((cell) => cell.index === index);
  return found.originals.flatMap((original) => [original, ...copies(original)]);
}

const notShown = ({ bad }) => (bad.length ? `; not shown: ${bad.join("; ")}` : "");

function grid(view) {
  const newest = new Newest();
  const pictures = el("div");
  const histograms = el("canvas", { role: "img", className: "histograms" });
  const schedule = el("canvas", { role: "img", className: "curves" });
  view.replaceChildren(histograms, schedule, pictures);
  return () =>
    newest.run(async () => {
      const found = await call("grid", numbered(asked(), "grid"));
      drawGrid(pictures, inRows(found), columns(found));
      drawHistograms(histograms, found.histograms);
      facts.schedule = found.schedule;
      schedule.hidden = !found.schedule;
      if (found.schedule) drawSchedule(schedule, found.schedule);
      status(`${found.cells.length} pictures${notShown(found)}`);
    });
}

// Probability times magnitude of each operation, by epoch.
function drawSchedule(canvas, { epochs, curves }) {
  const end = (points, n) => points[n + 1]?.[0] ?? epochs;
  const stairs = (points) => points.flatMap(([epoch, value], n) => [[epoch, value], [end(points, n), value]]);
  const series = Object.entries(curves).map(([name, points]) => [name, stairs(points)]);
  drawCurves(canvas, "Probability times magnitude by epoch", Object.fromEntries(series), state.epoch);
}

const namesOf = (cards) => cards.filter(({ on }) => on).map(({ op }) => op).join(", ") || "nothing";

function compare(view) {
  const newest = new Newest();
  const before = structuredClone(previousCards() ?? state.cards);
  const keep = () => change({ other: structuredClone(state.cards) });
  const [first, second, list] = [el("div"), el("div"), el("ul", { className: "differences" })];
  const [headA, headB] = [el("h2"), el("h2")];
  view.replaceChildren(
    el("p", {}, "Both have the same seeds. ", el("button", { type: "button", onclick: keep }, "Keep B as A")),
    list,
    el("div", { className: "sides" }, el("div", {}, headA, first), el("div", {}, headB, second)),
  );
  return () =>
    newest.run(async () => {
      const other = state.other ?? before;
      const lines = differences(other, state.cards);
      headA.textContent = `A, ${state.other ? "kept" : "before the last change"}: ${namesOf(other)}`;
      headB.textContent = `B, now: ${namesOf(state.cards)}`;
      list.replaceChildren(...(lines.length ? lines : ["A and B are the same"]).map((line) => el("li", {}, line)));
      const kept = await call("grid", numbered(asked(other), "a")).catch((error) => {
        throw error instanceof Problem ? new Problem(`A: ${error.message}`) : error;
      });
      const tuned = await call("grid", numbered(asked(), "b"));
      facts.schedule = tuned.schedule;
      drawGrid(first, inRows(kept), columns(kept));
      drawGrid(second, inRows(tuned), columns(tuned));
      status(`${kept.cells.length + tuned.cells.length} pictures${notShown(tuned)}`);
    });
}

const STEPS = 7;

// Values over a slider, from one end to the other.
function valuesOf({ field, isPair }) {
  const { low, high, step } = field;
  const rounded = (value) => (step ? low + Math.round((value - low) / step) * step : Number(value.toPrecision(4)));
  const spread = Array.from({ length: STEPS }, (_, n) => rounded(low + (n / (STEPS - 1)) * (high - low)));
  return [...new Set(spread)].map((value) => (isPair ? [value, value] : value));
}

function sweep(view) {
  const newest = new Newest();
  const pictures = el("div");
  const choice = el("select", { ariaLabel: "Slider", onchange: () => draw() });
  let found = [];
  view.replaceChildren(el("p", {}, "A slider from one end to the other: ", choice), pictures);
  const list = () => {
    const chosen = choice.value;
    found = sliders();
    const group = (label, some) =>
      el("optgroup", { label }, ...some.map(({ name }) => el("option", { value: name, selected: name === chosen }, name)));
    const [own, others] = [true, false].map((isOwn) => found.filter((one) => one.isOwn === isOwn));
    choice.replaceChildren(...(own.length ? [group("Of the policy", own)] : []), group("Of other operations", others));
  };
  const draw = () => {
    list();
    return newest.run(async () => {
      const slider = found.find(({ name }) => name === choice.value);
      const values = valuesOf(slider);
      const { rows } = await call("sweep", { ...asked(), card: slider.card, argument: slider.field.name, values });
      drawGrid(pictures, rows.flat(), rows[0].length);
      status(`${slider.name} over its range, on ${rows.length} images`);
    });
  };
  return draw;
}

function strongest(view) {
  const newest = new Newest();
  const by = el("select", { ariaLabel: "Rank by", onchange: () => draw() });
  by.append(el("option", { value: "change" }, "the change"), el("option", { value: "left" }, "what is left of the photo"));
  const titles = { operations: "Each operation", combinations: "Each combination" };
  const sections = Object.keys(titles).map((name) => ({ name, pictures: el("div") }));
  view.replaceChildren(
    el("p", {}, "The strongest of 1,000 draws of the first image, ranked by ", by, ". Can you still tell what it shows?"),
    ...sections.flatMap(({ name, pictures }) => [el("h2", {}, titles[name]), pictures]),
  );
  const draw = () =>
    newest.run(async () => {
      const given = { ...asked(), image: state.images[0], draws: 1000, by: by.value };
      const found = await call("strongest", numbered(given, "strongest"));
      for (const { name, pictures } of sections) {
        const told = ({ title, change: levels, left }) => `${title}: ${levels} levels, ${Math.round(100 * left)} % left`;
        drawGrid(pictures, found[name].map((cell) => ({ ...cell, title: told(cell) })));
      }
      status("1,000 draws compared");
    });
  return draw;
}

export const TEXTS = { json: "policy.json", yaml: "policy.yaml", python: "policy.py", command: "augment.sh" };
const TITLES = { json: "JSON", yaml: "YAML", python: "Python", command: "Command line" };

export function asText() {
  const { cards, copies, seed, epoch } = state;
  return call("export", { cards, copies, seed, epoch });
}

function take(view) {
  const areas = Object.keys(TEXTS).map((name) => {
    const area = el("textarea", { readOnly: true, rows: name === "command" ? 2 : 10, ariaLabel: name });
    const copy = async () => {
      await navigator.clipboard.writeText(area.value).then(
        () => status(`${TITLES[name]} copied`),
        () => status("the browser does not let a page copy; select the text"),
      );
    };
    return { name, area, button: el("button", { type: "button", onclick: copy }, "Copy") };
  });
  const link = el("a", {}, "Link to this policy, seed and these images");
  view.replaceChildren(
    el("p", {}, link),
    ...areas.flatMap(({ name, area, button }) => [el("h2", {}, TITLES[name]), area, button]),
  );
  return async () => {
    const found = await asText();
    for (const { name, area } of areas) area.value = found[name];
    link.href = permalink();
    status("");
  };
}

export const VIEWS = { Grid: grid, Sweep: sweep, Compare: compare, Strongest: strongest, Export: take };
