// What the page shows: kept in the address and per source in the browser, with undo.

export const state = {
  ...{ cards: [], seed: 0, epoch: 0, size: 224 },
  ...{ images: [0], copies: 5, mode: "rows", other: null },
};
// `schedule`: of the policy that the grid showed last.
export const facts = { catalogue: new Map(), formats: new Set(), source: null, schedule: null, views: {} };

const MOST_STEPS = 200;
const MERGED_MS = 1000; // changes of one control within this time are undone together
const listeners = [];
let past = [];
let future = [];
let last = { key: null, time: 0 };
let saving;
let given = ""; // the command's policy and size, as text

export const subscribe = (listener) => listeners.push(listener);
export const canUndo = () => past.length > 0;
export const canRedo = () => future.length > 0;

// The policy before the last change of it; null if it was never changed.
export const previousCards = () => {
  const now = JSON.stringify(state.cards);
  return past.findLast(({ cards }) => JSON.stringify(cards) !== now)?.cards ?? null;
};

// `key` names the control. `rebuild`: cards were added, moved or removed.
export function change(patch, key = null, rebuild = false) {
  const now = Date.now();
  if (key === null || key !== last.key || now - last.time > MERGED_MS) {
    past = [...past.slice(-MOST_STEPS), structuredClone(state)];
    future = [];
  }
  last = { key, time: now };
  Object.assign(state, patch);
  tell(rebuild);
}

export function undo() {
  step(past, future);
}

export function redo() {
  step(future, past);
}

function step(from, to) {
  if (!from.length) return;
  to.push(structuredClone(state));
  Object.assign(state, from.pop());
  last = { key: null, time: 0 };
  tell(true);
}

function tell(rebuild) {
  for (const listener of listeners) listener(rebuild);
  clearTimeout(saving);
  saving = setTimeout(save, 300);
}

export function permalink() {
  const bytes = unescape(encodeURIComponent(JSON.stringify(state)));
  return "#" + btoa(bytes).replace(/\+/g, "-").replace(/\//g, "_");
}

function save() {
  history.replaceState(null, "", permalink());
  try {
    localStorage.setItem(storageKey(), JSON.stringify({ given, kept: state }));
  } catch {
    // A full or forbidden storage loses nothing but this convenience.
  }
}

const storageKey = () => `variegate-studio:${facts.source.key}`;

// The address wins over what the browser kept for the same command, and that over the command's policy.
export function restore(start) {
  given = JSON.stringify([start.cards, start.size]);
  Object.assign(state, start, fromAddress() ?? fromStorage());
}

function fromStorage() {
  const found = JSON.parse(localStorage.getItem(storageKey()) ?? "{}");
  return found.given === given ? checked(found.kept) : null;
}

// Null for an address that was cut off, or of another version.
export function fromAddress() {
  try {
    const bytes = atob(location.hash.slice(1).replace(/-/g, "+").replace(/_/g, "/"));
    return checked(JSON.parse(decodeURIComponent(escape(bytes))));
  } catch {
    return null;
  }
}

// Links may come from anybody, and images may have gone.
function checked(found) {
  const isObject = (value) => typeof value === "object" && value !== null;
  const isCard = (card) => typeof card?.op === "string" && isObject(card.arguments);
  const numbers = [found?.seed, found?.epoch, found?.copies];
  if (!Array.isArray(found?.cards) || !found.cards.every(isCard) || !numbers.every(Number.isInteger)) return null;
  const images = (found.images ?? []).filter((index) => index < facts.source.count);
  return { ...found, images: images.length ? images : [0] };
}
