// Pictures in a grid. Nodes stay while a slider moves; only their addresses and texts change, so that nothing flickers:
// a browser shows the old picture until the new one is there.

import { $, el, openDialog } from "./dom.js";

// Without `columns`, as many as fit.
export function drawGrid(container, pictures, columns = null) {
  container.classList.add("grid");
  container.classList.toggle("flow", columns === null);
  container.style.setProperty("--columns", columns);
  while (container.children.length > pictures.length) container.lastElementChild.remove();
  pictures.forEach((picture, n) => fill(container.children[n] ?? container.appendChild(figure(container)), picture));
}

function figure(container) {
  const button = el("button", { type: "button", className: "figure" }, el("img", { alt: "" }));
  const caption = el("details", { className: "caption" }, el("summary"), el("p"));
  const made = el("div", {}, button, caption);
  button.addEventListener("click", () => zoom(container, [...container.children].indexOf(made)));
  return made;
}

// The first line stands below a picture; the others unfold. `picture.control`: an element to stand below.
function fill(cell, picture) {
  const [button, caption] = cell.children;
  const image = button.firstElementChild;
  cell.replaceChildren(button, caption, ...(picture.control ? [picture.control] : []));
  if (image.getAttribute("src") !== picture.url) image.src = picture.url;
  button.classList.toggle("original", Boolean(picture.name));
  const named = [picture.name ?? picture.title, picture.name ? picture.label : null].filter(Boolean);
  const lines = [...named, ...(picture.name ? [] : picture.lines)];
  if (!lines.length) lines.push("unchanged");
  const size = picture.width ? [`${picture.width} x ${picture.height}`] : [];
  button.title = button.ariaLabel = [...lines, ...size, ...(picture.more ? [picture.more] : [])].join("\n");
  const [first, ...others] = lines;
  if (caption.dataset.text === button.title) return;
  caption.dataset.text = button.title;
  caption.classList.toggle("single", !others.length);
  caption.firstElementChild.replaceChildren(...breakable(first), others.length ? ` +${others.length}` : "");
  caption.lastElementChild.replaceChildren(...breakable(others.join("\n")));
}

// Text that may break at the ends of words: RandomHorizontalFlip, cat/001.png.
export const breakable = (text) =>
  text.split(/(?<=[a-z0-9])(?=[A-Z])|(?<=[/_-])/).flatMap((part, n) => (n ? [el("wbr"), part] : [part]));

function zoom(container, at) {
  const image = el("img", { className: "zoomed", alt: "" });
  const text = el("p", { className: "lines" });
  const show = (to) => {
    at = (to + container.children.length) % container.children.length;
    const button = container.children[at].firstElementChild;
    image.src = button.firstElementChild.src;
    text.textContent = image.alt = button.title;
  };
  show(at);
  const dialog = openDialog("Picture", image, text);
  dialog.onkeydown = (event) => {
    if (event.key === "ArrowRight") show(at + 1);
    if (event.key === "ArrowLeft") show(at - 1);
  };
  dialog.onclose = () => container.children[at]?.firstElementChild.focus();
}

const PEN = "11px system-ui, sans-serif";

// Levels before (line) and after (area), of luma and of each color: shares of the pixels by level.
export function drawHistograms(canvas, { before, after }) {
  const style = getComputedStyle(canvas);
  const colors = { luma: style.color, red: "#d33", green: "#2a2", blue: "#36f" };
  const pen = canvas.getContext("2d");
  const [width, height] = [(canvas.width = Math.max(canvas.clientWidth, 480)), (canvas.height = 132)];
  const part = width / 4;
  const [top, bottom] = [36, height - 18];
  const text = (words, x, y, align = "left") => Object.assign(pen, { textAlign: align }).fillText(words, x, y);
  pen.font = PEN;
  pen.fillStyle = pen.strokeStyle = style.color;
  pen.fillRect(2, 6, 16, 1.5);
  text("before", 22, 11);
  pen.globalAlpha = 0.45;
  pen.fillRect(72, 2, 16, 9);
  pen.globalAlpha = 1;
  text("after: share of pixels by level", 92, 11);
  Object.entries(colors).forEach(([name, color], n) => {
    const share = (levels) => levels.map((count) => count / Math.max(levels.reduce((a, b) => a + b, 0), 1));
    const [old, made] = [share(before[name]), share(after[name])];
    const most = Math.max(...old, ...made) || 1;
    const [left, right] = [n * part + 34, (n + 1) * part - 8];
    const x = (bin) => left + (bin / 64) * (right - left);
    const y = (value) => bottom - (value / most) * (bottom - top);
    pen.fillStyle = pen.strokeStyle = style.color;
    pen.lineWidth = 1;
    pen.strokeRect(left, top, 0, bottom - top);
    pen.strokeRect(left, bottom, right - left, 0);
    text(name, left + 4, top - 6);
    text(`${(100 * most).toFixed(0)} %`, left - 4, top + 8, "right");
    text("0", left, height - 5);
    text("128", (left + right) / 2, height - 5, "center");
    text("255", right, height - 5, "right");
    pen.fillStyle = pen.strokeStyle = color;
    pen.globalAlpha = 0.45;
    made.forEach((value, bin) => pen.fillRect(x(bin), y(value), (right - left) / 64, bottom - y(value)));
    pen.globalAlpha = 1;
    pen.beginPath();
    old.forEach((value, bin) => pen.lineTo(x(bin), y(value)));
    pen.stroke();
  });
  canvas.setAttribute("aria-label", "Levels before (line) and after (area): luma, red, green, blue");
}

const COLORS = ["#3b7dd8", "#d9534f", "#2e9e5b", "#b8791f", "#8a5cc4", "#159aa5", "#c2478f", "#6f7d88"];

// `series`: points [x, y] by name, of one scale. `marked`: an x that a line stands at.
export function drawCurves(canvas, title, series, marked = null) {
  const names = Object.keys(series);
  const all = names.flatMap((name) => series[name]);
  const [xs, ys] = [0, 1].map((n) => all.map((point) => point[n]));
  const [left, right, low, high] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
  const pen = canvas.getContext("2d");
  const [width, height] = [(canvas.width = canvas.clientWidth || 640), (canvas.height = 170)];
  pen.font = PEN;
  const legend = Math.max(...names.map((name) => pen.measureText(name).width)) + 14;
  const x = (value) => 56 + ((value - left) / (right - left || 1)) * (width - 56 - legend);
  const y = (value) => height - 24 - ((value - low) / (high - low || 1)) * (height - 50);
  const text = (words, at, line, align = "left") => Object.assign(pen, { textAlign: align }).fillText(words, at, line);
  const short = (value) => String(Number(value.toPrecision(3)));
  pen.fillStyle = pen.strokeStyle = getComputedStyle(canvas).color;
  text(title, 4, 12);
  text(short(high), 50, 30, "right");
  text(short(low), 50, height - 24, "right");
  text(short(left), 56, height - 8);
  text(short(right), width - legend, height - 8, "right");
  if (marked !== null) pen.fillRect(x(marked), 24, 1, height - 48);
  const line = Math.min(13, (height - 30) / names.length);
  names.forEach((name, n) => {
    pen.strokeStyle = pen.fillStyle = COLORS[n % COLORS.length];
    pen.setLineDash(n < COLORS.length ? [] : [4, 3]);
    pen.lineWidth = 1.5;
    pen.beginPath();
    series[name].forEach(([a, b]) => pen.lineTo(x(a), y(b)));
    pen.stroke();
    text(name, width - legend + 10, 26 + n * line);
  });
  const ends = names.map((name) => `${name} ${short(series[name].at(-1)?.[1] ?? 0)}`).join(", ");
  canvas.setAttribute("aria-label", `${title}. At the end: ${ends}`);
}

export const status = (text) => ($("status").textContent = text);
