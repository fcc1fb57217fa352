// Views of earlier work: outputs of augment, findings of check.

import { blob, call } from "./api.js";
import { download, el } from "./dom.js";
import { drawGrid, status } from "./grid.js";
import { facts } from "./store.js";

const COUNT = 48;

// A choice of what is shown, and pages of it. `show` draws what the call `name` answers.
function paged(view, name, label, choices, show, ...more) {
  let first = 0;
  let count = 0;
  const options = choices.map(([value, text]) => el("option", { value }, text));
  const turn = (by) => {
    if (first + by * COUNT < count) first = Math.max(first + by * COUNT, 0);
    draw();
  };
  const choice = el("select", { ariaLabel: label, onchange: () => turn(-Infinity) }, ...options);
  const button = (text, by) => el("button", { type: "button", onclick: () => turn(by) }, text);
  const [previous, next] = [button("Previous", -1), button("Next", 1)];
  const pictures = el("div");
  view.replaceChildren(choice, " ", previous, " ", next, ...more, pictures);
  const draw = async () => {
    const found = await call(name, { [label]: choice.value, first, count: COUNT });
    count = found.count;
    previous.hidden = first === 0;
    next.hidden = first + COUNT >= count;
    show(pictures, found);
    status(count ? `${first + 1} to ${first + found.rows.length} of ${count}` : "none");
  };
  return draw;
}

function run(view) {
  const operations = facts.views.run.map(([name, count]) => [name, `${name} (${count})`]);
  const note = el("p", {}, "A click shows the command that makes an output again.");
  const show = (pictures, { rows }) => drawGrid(pictures, rows.map((row) => ({ ...row, more: row.replay })));
  return paged(view, "run", "operation", [["", "all operations"], ...operations], show, note);
}

// Marks stay in the browser until they are written.
function findings(view) {
  const key = `variegate-studio-marks:${facts.source.name}:${facts.source.count}`;
  const marks = new Set(JSON.parse(localStorage.getItem(key) ?? "[]"));
  const save = el("button", { type: "button" });
  const command = el("p");
  const meaning = el("p");
  const keep = () => {
    localStorage.setItem(key, JSON.stringify([...marks]));
    save.textContent = `Write marks (${marks.size})`;
    save.disabled = marks.size === 0;
  };
  const mark = (index, isMarked) => {
    if (isMarked) marks.add(index);
    else marks.delete(index);
    keep();
  };
  const markAll = (isMarked) => () => {
    for (const box of view.querySelectorAll(".grid input")) if (box.checked !== isMarked) box.click();
  };
  save.onclick = async () => {
    const chosen = [...marks].sort((a, b) => a - b);
    download("marked.parquet", await blob("findings", { marks: chosen }));
  };
  const controlOf = ({ index, title }) => {
    const onchange = (event) => mark(index, event.target.checked);
    const given = { type: "checkbox", checked: marks.has(index), ariaLabel: `drop ${title}`, onchange };
    return el("label", { className: "mark" }, el("input", given), " drop");
  };
  let shown = [];
  const markCopies = () => {
    const groups = new Set();
    const boxes = [...view.querySelectorAll(".grid input")];
    shown.forEach(({ group }, n) => {
      if (groups.has(group) && !boxes[n].checked) boxes[n].click();
      if (group !== null) groups.add(group);
    });
  };
  const show = (pictures, { rows, command: told }) => {
    shown = rows;
    const chosen = facts.views.findings.find(({ name }) => name === view.querySelector("select").value);
    meaning.textContent = chosen ? `An image that ${chosen.meaning}.` : "Nothing was found.";
    command.textContent = `A copy without the marked images: ${told}`;
    drawGrid(pictures, rows.map((row) => ({ ...row, control: controlOf(row) })));
  };
  keep();
  const kinds = facts.views.findings.map(({ name, count }) => [name, `${name} (${count})`]);
  const button = (text, onclick) => [" ", el("button", { type: "button", onclick }, text)];
  const buttons = [...button("Mark all shown", markAll(true)), ...button("All but the first of a group", markCopies)];
  buttons.push(...button("Unmark all shown", markAll(false)), " ", save);
  return paged(view, "findings", "kind", kinds, show, ...buttons, meaning, command);
}

export const RUNS = {
  run: ["Run", run],
  findings: ["Findings", findings],
};
