// A policy from text: a name, a description, or code of another library, with what became of its transforms.

import { call } from "./api.js";
import { $, el, openDialog } from "./dom.js";
import { change, state } from "./store.js";

const ACCEPTED = "JSON or YAML of a policy, or Python of torchvision, Albumentations or timm, which is not run";
const KINDS = ["refused", "close", "the same"];

export async function startFrom(text) {
  if (text.trim() === "") return;
  const { cards, report } = await call("policy", { text });
  $("dialog").close();
  change({ cards, epoch: 0 }, null, true);
  if (report) openReport(report, text);
}

export function openPaste() {
  const area = el("textarea", { rows: 14, ariaLabel: ACCEPTED, placeholder: ACCEPTED });
  const problem = el("p", { className: "problem", role: "alert" });
  const load = () => startFrom(area.value).catch((error) => (problem.textContent = error.message));
  openDialog("Start from text", area, problem, el("button", { type: "button", onclick: load }, "Load"));
  area.focus();
}

function openReport(report, text) {
  const count = (kind) => `${report.filter(([, , one]) => one === kind).length} ${kind}`;
  const rows = new Map();
  for (const kind of KINDS) {
    for (const [place, how] of report.filter(([, , one]) => one === kind)) {
      const cells = [kind, place, how].map((words) => el("td", {}, words));
      rows.set(place, el("tr", { className: kind }, ...cells));
    }
  }
  openDialog(
    "Converted",
    el("p", {}, KINDS.map(count).join(", ")),
    el("table", {}, el("tbody", {}, ...rows.values())),
  );
  if (report.some(([, , kind]) => kind === "close")) showCounterparts(rows, text);
}

// Draws of one image by the other library, where it is installed, above those that stand for them.
async function showCounterparts(rows, text) {
  const wait = el("p", { role: "status" }, "Drawing what is close");
  $("dialog-body").append(wait);
  try {
    const { counterparts } = await call("counterparts", { text, image: state.images[0], size: state.size ?? 512 });
    wait.remove();
    for (const [place, { ours, theirs, why }] of Object.entries(counterparts)) {
      const cell = rows.get(place).lastElementChild;
      if (why) cell.append(el("p", {}, why));
      if (theirs.length) cell.append(picturesOf("Drawn by the library", theirs));
      cell.append(picturesOf("Drawn here", ours));
    }
  } catch (error) {
    wait.textContent = error.message;
  }
}

const picturesOf = (who, pictures) =>
  el(
    "figure",
    { className: "draws" },
    el("figcaption", {}, `${who}, changed by ${pictures.map(({ title }) => title).join(", ")}`),
    ...pictures.map(({ url, title }) => el("img", { src: url, alt: `${who}: ${title}` })),
  );
