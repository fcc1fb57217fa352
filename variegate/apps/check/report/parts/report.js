"use strict";
(() => {
  const data = document.getElementById("rows");
  if (!data) return;
  const PAGE = 200;
  const { columns, rows } = JSON.parse(data.textContent);
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
