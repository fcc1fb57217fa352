// What changed between two lists of cards, in lines such as "Rotate.degrees: 30 → 45".

import { facts } from "./store.js";

const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);
const defaultOf = (op, argument) => facts.catalogue.get(op)?.fields.find(({ name }) => name === argument)?.default;
const described = ({ type, ...given }) => ({ op: type, arguments: given, on: true, p: 1 });
const areTransforms = (value) => Array.isArray(value) && value.every((one) => typeof one?.type === "string");

export function differences(before, after, path = "") {
  const kept = commonOps(before, after);
  const lines = [];
  const unmatched = (cards, side) => cards.filter((_, n) => !kept.some((pair) => pair[side] === n));
  for (const card of unmatched(before, 0)) lines.push(`${path}${card.op}: removed`);
  for (const card of unmatched(after, 1)) lines.push(`${path}${card.op}: added`);
  for (const [from, to] of kept) lines.push(...differencesOf(before[from], after[to], path));
  return lines;
}

function differencesOf(before, after, path) {
  const name = `${path}${after.op}`;
  const lines = [];
  if (before.on !== after.on) lines.push(`${name}: switched ${after.on ? "on" : "off"}`);
  if (before.p !== after.p) lines.push(`${name}, probability: ${before.p} → ${after.p}`);
  for (const argument of new Set([...Object.keys(before.arguments), ...Object.keys(after.arguments)])) {
    const [old, made] = [before, after].map((card) => card.arguments[argument] ?? defaultOf(card.op, argument) ?? null);
    if (same(old, made)) continue;
    if (areTransforms(old) && areTransforms(made)) {
      lines.push(...differences(old.map(described), made.map(described), `${name} › `));
    } else lines.push(`${name}.${argument}: ${JSON.stringify(old)} → ${JSON.stringify(made)}`);
  }
  return lines;
}

// Pairs of positions of the longest common sequence of operations.
function commonOps(before, after) {
  const lengths = Array.from({ length: before.length + 1 }, () => Array(after.length + 1).fill(0));
  for (let i = before.length - 1; i >= 0; i--) {
    for (let j = after.length - 1; j >= 0; j--) {
      const isSame = before[i].op === after[j].op;
      lengths[i][j] = isSame ? lengths[i + 1][j + 1] + 1 : Math.max(lengths[i + 1][j], lengths[i][j + 1]);
    }
  }
  const pairs = [];
  for (let i = 0, j = 0; i < before.length && j < after.length; ) {
    if (before[i].op === after[j].op) pairs.push([i++, j++]);
    else if (lengths[i + 1][j] >= lengths[i][j + 1]) i++;
    else j++;
  }
  return pairs;
}
