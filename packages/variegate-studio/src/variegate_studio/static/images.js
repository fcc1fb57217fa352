// Choosing images: searched by name and class, sorted, or drawn at random.

import { get } from "./api.js";
import { $, el, openDialog } from "./dom.js";
import { change, facts, state } from "./store.js";

const SIDE = 112;
const PAGE = 100;
const RANDOM = 8;
const ORDERS = { source: "order of the source", name: "by name", class: "by class" };

// Of 100,000 images only those in sight have elements, and only their pages are requested.
export function openImages() {
  const chosen = new Set(state.images);
  const count = el("span", { role: "status" });
  const list = el("div", { className: "images" });
  const spacer = el("div");
  const search = el("input", { type: "search", placeholder: "Name", ariaLabel: "Name of images" });
  const classes = [["", "all classes"], ...facts.source.classes.map((name) => [name, name])];
  const options = (pairs) => pairs.map(([value, text]) => el("option", { value }, text));
  const label = el("select", { ariaLabel: "Class" }, ...options(classes));
  const order = el("select", { ariaLabel: "Order" }, ...options(Object.entries(ORDERS)));
  const show = el("button", { type: "button", onclick: () => apply() }, "Show these");
  const button = (text, onclick) => el("button", { type: "button", onclick }, text);
  let pages = new Map();
  let tiles = new Map(); // by their position in the list
  let found = facts.source.count;

  const query = (more) => {
    const wanted = { text: search.value, label: label.value, order: order.value, ...more };
    return get(`/api/images?${new URLSearchParams(wanted)}`);
  };
  const apply = () => {
    $("dialog").close();
    change({ images: [...chosen].sort((a, b) => a - b) });
  };
  const tell = () => {
    const of = found === facts.source.count ? "" : ` of ${found.toLocaleString("en")} found`;
    count.textContent = `${chosen.size} chosen${of} of ${facts.source.count.toLocaleString("en")} images`;
    show.disabled = chosen.size === 0;
    for (const tile of tiles.values()) tile.ariaPressed = String(chosen.has(tile.index));
  };
  const fail = (error) => (count.textContent = error.message);
  const page = (number) => {
    if (!pages.has(number)) pages.set(number, query({ first: number * PAGE, count: PAGE }));
    return pages.get(number);
  };
  const restart = () => {
    for (const position of [...tiles.keys()]) drop(position);
    pages = new Map();
    list.scrollTop = 0;
    fillIn().catch(fail);
  };
  const none = () => {
    chosen.clear();
    tell();
  };
  const draw = async () => {
    const seed = Math.floor(Math.random() * 2 ** 31);
    const drawn = await query({ order: "random", seed, count: RANDOM });
    chosen.clear();
    for (const { index } of drawn.images) chosen.add(index);
    tell();
  };

  // A thumbnail that was scrolled past is not waited for.
  function drop(position) {
    const tile = tiles.get(position);
    tiles.delete(position);
    tile.firstElementChild.src = "data:,";
    tile.remove();
  }

  async function fillIn() {
    const current = pages;
    ({ count: found } = await page(0));
    if (current !== pages) return;
    const across = Math.max(Math.floor(list.clientWidth / SIDE), 1);
    spacer.style.setProperty("height", `${Math.ceil(found / across) * SIDE}px`);
    const first = Math.floor(list.scrollTop / SIDE) * across;
    const end = Math.min(first + (Math.ceil(list.clientHeight / SIDE) + 1) * across, found);
    const isFocused = (position) => tiles.get(position) === document.activeElement;
    for (const position of [...tiles.keys()]) {
      if ((position < first || position >= end) && !isFocused(position)) drop(position);
    }
    const numbers = [];
    for (let n = Math.floor(first / PAGE); n * PAGE < end; n++) numbers.push(n);
    const answers = await Promise.all(numbers.map(page));
    if (current !== pages) return;
    answers.forEach(({ images }, n) =>
      images.forEach((image, m) => {
        const position = numbers[n] * PAGE + m;
        if (position >= first && position < end && !tiles.has(position)) put(position, image, across);
      }),
    );
    tell();
  }

  function put(position, { index, name, label: named, url }, across) {
    const picture = el("img", { src: url, alt: name, width: 96, height: 96 });
    const title = named === null ? name : `${name} (${named})`;
    const tile = el("button", { type: "button", title, ariaPressed: String(chosen.has(index)) }, picture);
    tile.index = index;
    tile.style.setProperty("top", `${Math.floor(position / across) * SIDE}px`);
    tile.style.setProperty("left", `${(position % across) * SIDE}px`);
    tile.addEventListener("click", () => {
      if (!chosen.delete(index)) chosen.add(index);
      tell();
    });
    tiles.set(position, tile);
    spacer.append(tile);
  }

  for (const [control, event] of [[search, "input"], [label, "change"], [order, "change"]]) {
    control.addEventListener(event, restart);
  }
  label.hidden = classes.length < 3;
  list.append(spacer);
  list.addEventListener("scroll", () => fillIn().catch(fail));
  const random = button(`${RANDOM} at random`, () => draw().catch(fail));
  const controls = el("div", { className: "controls" }, search, label, order, random, button("None", none), show);
  openDialog("Choose images", controls, count, list);
  search.focus();
  fillIn().catch(fail);
}
