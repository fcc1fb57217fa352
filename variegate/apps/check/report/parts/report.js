"use strict";
(() => {
  const data = document.getElementById("rows");
  if (!data) return;
  const PAGE = 200;
  const { columns, rows, dropped, head } = JSON.parse(data.textContent);
  const body = document.querySelector("#findings tbody");
  const heads = [...document.querySelectorAll("#findings thead th")];
  const inputs = ["filter", "kind", "split"].map((id) => document.getElementById(id));
  const [filter, kind, split] = inputs;
  const shown = document.getElementById("shown");
  const more = document.getElementById("more");
  const order = new Intl.Collator("en", { numeric: true });
  const texts = rows.map((row) => row.filter((cell) => cell !== null).join(" ").toLowerCase());
  let sorted = rows.map((_, row) => row);
  let found = sorted;
  let drawn = 0;

  const at = Object.fromEntries(columns.map((column, place) => [column.key, place]));
  const reasons = new Map();
  const ofKind = new Map();
  rows.forEach((row, place) => {
    const [finding, file] = [row[at.finding], row[at.file]];
    if (file === null || row[at.split] !== "train") return;
    reasons.set(file, [...(reasons.get(file) ?? []), `${finding}: ${row[at.why]}`]);
    if (dropped[place]) ofKind.set(finding, [...(ofKind.get(finding) ?? []), file]);
  });
  const chosen = new Set();
  const list = document.getElementById("list");
  const save = document.getElementById("save");

  function tick(file) {
    const box = document.createElement("input");
    box.type = "checkbox";
    box.dataset.file = file;
    box.checked = chosen.has(file);
    box.ariaLabel = `Exclude ${file}`;
    return box;
  }

  // The drop list, as variegate clean writes it and --exclude reads it.
  function listText() {
    const line = (file) => `${file}\t${(reasons.get(file) ?? ["marked: by hand"]).join("; ").replace(/\s+/g, " ")}\n`;
    return `${head}: ${chosen.size} images\n` + [...chosen].sort(order.compare).map(line).join("");
  }

  function syncTicks() {
    document.querySelectorAll("input[data-file]").forEach((box) => (box.checked = chosen.has(box.dataset.file)));
    document.querySelectorAll("input[data-kind]").forEach((box) => {
      const files = ofKind.get(box.dataset.kind) ?? [];
      const number = files.filter((file) => chosen.has(file)).length;
      box.checked = number > 0 && number === files.length;
      box.indeterminate = number > 0 && number < files.length;
    });
    list.hidden = chosen.size === 0;
    document.getElementById("dropped").textContent = `${chosen.size.toLocaleString("en")} images to exclude`;
    document.getElementById("text").value = listText();
    URL.revokeObjectURL(save.href);
    save.href = URL.createObjectURL(new Blob([listText()], { type: "text/plain" }));
  }

  document.addEventListener("change", ({ target }) => {
    const files = target.dataset.kind ? ofKind.get(target.dataset.kind) ?? [] : target.dataset.file ? [target.dataset.file] : null;
    if (files === null) return;
    files.forEach((file) => (target.checked ? chosen.add(file) : chosen.delete(file)));
    syncTicks();
  });
  document.getElementById("clear").addEventListener("click", () => {
    chosen.clear();
    syncTicks();
  });
  document.documentElement.classList.add("scripted");

  function text(value, column) {
    if (value === null) return "";
    if (column.is_number) return Number.isInteger(value) ? value.toLocaleString("en") : String(Number(value.toPrecision(4)));
    return column.key === "finding" ? column.names[value] : value;
  }

  function draw() {
    const part = document.createDocumentFragment();
    for (const row of found.slice(drawn, drawn + PAGE)) {
      const line = document.createElement("tr");
      columns.forEach((column, place) => {
        const cell = document.createElement("td");
        const value = rows[row][place];
        cell.textContent = text(value, column);
        if (column.key === "finding" && rows[row][at.split] === "train" && rows[row][at.file] !== null) cell.prepend(tick(rows[row][at.file]));
        if (column.key === "file") cell.className = "file";
        if (column.key === "why") cell.className = "why";
        if (column.is_number) cell.className = "number";
        if (value !== null && ["split", "class", "measure", "group"].includes(column.key)) cell.dataset.title = column.title;
        line.append(cell);
      });
      part.append(line);
    }
    body.append(part);
    drawn = Math.min(drawn + PAGE, found.length);
    more.hidden = drawn === found.length;
    more.textContent = `Show ${Math.min(PAGE, found.length - drawn)} more`;
    const all = found.length === rows.length ? "" : ` of ${rows.length.toLocaleString("en")}`;
    shown.textContent = `${found.length.toLocaleString("en")}${all} findings`;
  }

  function refresh() {
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    const kindAt = columns.findIndex((column) => column.key === "finding");
    const splitAt = columns.findIndex((column) => column.key === "split");
    found = sorted.filter(
      (row) =>
        words.every((word) => texts[row].includes(word)) &&
        (!kind.value || rows[row][kindAt] === kind.value) &&
        (!split || !split.value || rows[row][splitAt] === split.value),
    );
    body.replaceChildren();
    drawn = 0;
    draw();
  }

  function sortBy(place) {
    const head = heads[place];
    const sign = head.getAttribute("aria-sort") === "ascending" ? -1 : 1;
    heads.forEach((other) => other.setAttribute("aria-sort", "none"));
    head.setAttribute("aria-sort", sign > 0 ? "ascending" : "descending");
    const { is_number } = columns[place];
    sorted = rows.map((_, row) => row).sort((left, right) => {
      const [a, b] = [rows[left][place], rows[right][place]];
      // What has no value stands at the end, whichever way.
      if (a === null || b === null) return (a === null) - (b === null) || left - right;
      return sign * (is_number ? a - b : order.compare(a, b)) || left - right;
    });
    refresh();
  }

  heads.forEach((head, place) => head.querySelector("button").addEventListener("click", () => sortBy(place)));
  inputs.forEach((input) => input?.addEventListener("input", refresh));
  document.querySelector(".filters").addEventListener("submit", (event) => event.preventDefault());
  more.addEventListener("click", draw);
  refresh();
})();
