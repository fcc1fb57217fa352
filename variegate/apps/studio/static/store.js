// What the page shows: kept in the address and per source in the browser, with undo.

export const state = {
  ...{ cards: [], seed: 0, epoch: 0, size: 224 },
  ...{ images: [0], copies: 5, mode: "rows", other: null },
};
// `schedule`: of the policy that the grid showed last.
export const facts = { catalogue: new Map(), source: null, schedule: null, views: {} };

const MOST_STEPS = 200;
const MERGED_MS = 1000; // changes of one control within this time are undone together
const listeners = [];
let past = [];
let future = [];
let last = { key: null, time: 0 };
let saving;

export const subscribe = (listener) => listeners.push(listener);
export const canUndo = () => past.length > 0;
export const canRedo = () => future.length > 0;

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
    localStorage.setItem(storageKey(), JSON.stringify(state));
  } catch {
    // A full or forbidden storage loses nothing but this convenience.
  }
}

const storageKey = () => `variegate-studio:${facts.source.name}`;

// The address wins over what the browser kept, and that over the command's policy.
export function restore(given) {
  for (const text of [fromHash(), localStorage.getItem(storageKey()), JSON.stringify(given)]) {
    try {
      const found = JSON.parse(text);
      if (!isState(found)) continue;
      Object.assign(state, found);
      state.images = found.images?.filter((index) => index < facts.source.count) ?? [];
      if (!state.images.length) state.images = given.images;
      return;
    } catch {
      // An address that was cut off, or of another version: the next one.
    }
  }
}

// Links may come from anybody.
function isState(found) {
  const isObject = (value) => typeof value === "object" && value !== null;
  const isCard = (card) => typeof card?.op === "string" && isObject(card.arguments);
  const numbers = [found?.seed, found?.epoch, found?.copies];
  return Array.isArray(found?.cards) && found.cards.every(isCard) && numbers.every(Number.isInteger);
}

function fromHash() {
  try {
    return decodeURIComponent(escape(atob(location.hash.slice(1).replace(/-/g, "+").replace(/_/g, "/"))));
  } catch {
    return null;
  }
}
