// Pictures in a grid. Nodes stay while a slider moves; only their addresses and texts change, so that nothing flickers:
// a browser shows the old picture until the new one is there.

import { $, el, openDialog } from "./dom.js";

export function drawGrid(container, pictures, columns) {
  container.classList.add("grid");
  container.style.setProperty("--columns", columns);
  while (container.children.length > pictures.length) container.lastElementChild.remove();
  pictures.forEach((picture, n) => fill(container.children[n] ?? container.appendChild(figure(container)), picture));
}

function figure(container) {
  const made = el("button", { type: "button", className: "figure" }, el("img", { alt: "" }), el("span"));
  made.addEventListener("click", () => zoom(container, [...container.children].indexOf(made)));
  return made;
}

function fill(made, picture) {
  const [image, text] = made.children;
  if (image.getAttribute("src") !== picture.url) image.src = picture.url;
  made.classList.toggle("original", Boolean(picture.name));
  const lines = picture.name ? [picture.name, ...(picture.label ? [picture.label] : [])] : picture.lines;
  const shown = [...(picture.title && !picture.name ? [picture.title] : []), ...lines];
  text.textContent = shown.join("\n") || "unchanged";
  const passes = picture.passes ? [`passes: ${picture.passes}`] : [];
  const size = picture.width ? [`${picture.width} x ${picture.height}`] : [];
  made.title = [...(picture.lines ?? []), ...passes, ...size, ...(picture.more ? [picture.more] : [])].join("\n");
  image.alt = shown.join(", ");
}

function zoom(container, at) {
  const image = el("img", { className: "zoomed", alt: "" });
  const text = el("p", { className: "lines" });
  const show = (to) => {
    at = (to + container.children.length) % container.children.length;
    const [small, lines] = container.children[at].children;
    image.src = small.src;
    image.alt = small.alt;
    text.textContent = container.children[at].title || lines.textContent;
  };
  show(at);
  const dialog = openDialog("Picture", image, text);
  dialog.onkeydown = (event) => {
    if (event.key === "ArrowRight") show(at + 1);
    if (event.key === "ArrowLeft") show(at - 1);
  };
  dialog.onclose = () => {
    dialog.onkeydown = null;
    container.children[at]?.focus();
  };
}

// Levels before (line) and after (area), of luma and of each color.
export function drawHistograms(canvas, { before, after }) {
  const style = getComputedStyle(canvas);
  const colors = { luma: style.color, red: "#d33", green: "#2a2", blue: "#36f" };
  const pen = canvas.getContext("2d");
  const [width, height] = [(canvas.width = 640), (canvas.height = 90)];
  const part = width / 4;
  Object.entries(colors).forEach(([name, color], n) => {
    const share = (levels) => levels.map((count) => count / Math.max(levels.reduce((a, b) => a + b, 0), 1));
    const [old, made] = [share(before[name]), share(after[name])];
    const top = Math.max(...old, ...made) || 1;
    const x = (bin) => n * part + 4 + (bin / 64) * (part - 8);
    const y = (value) => height - 2 - (value / top) * (height - 6);
    pen.fillStyle = pen.strokeStyle = color;
    pen.globalAlpha = 0.45;
    made.forEach((value, bin) => pen.fillRect(x(bin), y(value), (part - 8) / 64, height - 2 - y(value)));
    pen.globalAlpha = 1;
    pen.beginPath();
    old.forEach((value, bin) => pen.lineTo(x(bin), y(value)));
    pen.stroke();
  });
  canvas.setAttribute("aria-label", "Levels before (line) and after (area): luma, red, green, blue");
}

export const status = (text) => ($("status").textContent = text);
