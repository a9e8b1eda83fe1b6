"use strict";
const words = document.body.dataset;
const make = (tag, className, text) => Object.assign(document.createElement(tag), { className, textContent: text });

// Commands are copied with a button; without this script they are text like any other.
for (const code of document.querySelectorAll("code.cmd")) {
  const button = make("button", "copy", words.copy);
  button.type = "button";
  button.ariaLabel = words.copy + ": " + code.textContent;
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(code.textContent);
    } catch {
      getSelection().selectAllChildren(code);
      document.execCommand("copy");
    }
    button.textContent = words.copied;
    setTimeout(() => { button.textContent = words.copy; }, 1500);
  });
  code.after(button);
}

// The state of the page, kept in its address as #~q=text&s=table:column:direction.
const state = new URLSearchParams(location.hash.startsWith("#~") ? location.hash.slice(2) : "");
const keep = () => {
  const told = state.toString();
  history.replaceState(null, "", told ? "#~" + told : location.pathname + location.search);
};

// Sorting: baselines stay on top, rows without a value go last, a third click gives the order of the matrix again.
const tables = new Map();
const order = (id, column, direction) => {
  const { body, rows, heads } = tables.get(id);
  const value = (row) => row.cells[column]?.dataset.s;
  const sign = direction === "descending" ? -1 : 1;
  const sorted = [...rows].sort((a, b) => {
    const [x, y] = [value(a), value(b)];
    if (x === undefined || y === undefined) return (x === undefined) - (y === undefined);
    return sign * (x - y);
  });
  const free = direction === "none";
  body.append(...(free ? tables.get(id).all : sorted));
  heads.forEach((head, index) => head.setAttribute("aria-sort", index === column && !free ? direction : "none"));
};
for (const table of document.querySelectorAll("table[data-sortable]")) {
  const id = table.dataset.sortable, body = table.tBodies[0], heads = [...table.tHead.rows[0].cells];
  const all = [...body.rows], rows = all.filter((row) => "row" in row.dataset);
  tables.set(id, { body, rows, heads, all });
  if (rows.length < 2) continue;
  heads.forEach((head, column) => {
    if (!rows.some((row) => row.cells[column]?.dataset.s)) return;
    const button = make("button", "sort", "");
    button.type = "button";
    button.ariaLabel = words.sort + ": " + (head.querySelector("a") ?? head).textContent.trim();
    head.setAttribute("aria-sort", "none");
    button.addEventListener("click", () => {
      const next = { none: "ascending", ascending: "descending", descending: "none" }[head.getAttribute("aria-sort") ?? "none"];
      order(id, column, next);
      if (next === "none") state.delete("s");
      else state.set("s", [encodeURIComponent(id), column, next].join(":"));
      keep();
    });
    head.insertBefore(button, head.querySelector(".unit"));
  });
}

// Filtering: rows, sentences and cards whose text holds every word; the count is announced.
const input = document.querySelector("#filter");
const targets = [...document.querySelectorAll("[data-row], .told li, .trouble, .proof, details.block")]
  .map((item) => [item, item.textContent.toLowerCase()]);
const filter = (text) => {
  const wanted = text.toLowerCase().split(/\s+/).filter(Boolean);
  let shown = 0;
  for (const [item, told] of targets) {
    item.hidden = !wanted.every((word) => told.includes(word));
    shown += item.hidden ? 0 : "row" in item.dataset;
  }
  // A baseline stays where it holds every word itself, or where one of its rows does.
  for (const { all } of tables.values()) {
    let base = null;
    for (const row of all) {
      if ("row" in row.dataset) {
        if (base && !row.hidden) base.hidden = false;
      } else {
        base = row;
        base.hidden = !wanted.every((word) => base.textContent.toLowerCase().includes(word));
      }
    }
  }
  document.querySelector("#filtered").textContent = wanted.length ? words.shown + ": " + shown : "";
};
if (input) {
  document.querySelector("#tools").hidden = false;
  input.value = state.get("q") ?? "";
  input.addEventListener("input", () => {
    filter(input.value);
    if (input.value) state.set("q", input.value);
    else state.delete("q");
    keep();
  });
  if (input.value) filter(input.value);
}
// The address may come from anywhere: what names no table, no column that sorts or no direction is left alone.
const sorting = (told) => {
  const [table, column, direction] = told.split(":");
  let id;
  try { id = decodeURIComponent(table); } catch { return; }
  const head = tables.get(id)?.heads[Number(column)];
  if (head?.querySelector("button.sort") && ["ascending", "descending"].includes(direction)) order(id, Number(column), direction);
};
sorting(state.get("s") ?? "");

// Everything that the page knows, as files: the JSON that is inside it, and its raw values as CSV.
const download = (name, type, write) => {
  const item = document.createElement("li"), button = make("button", "chip", name);
  button.type = "button";
  button.addEventListener("click", () => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([write()], { type }));
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  });
  item.append(button);
  document.querySelector("#downloads").append(item);
};
const data = () => document.querySelector("#data").textContent;
const cell = (text) => '"' + String(text).replace(/^[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]/, "'$&").replaceAll('"', '""') + '"';
const lines = (head, rows) => [head, ...rows].map((row) => row.join(",")).join("\n") + "\n";
download("data.json", "application/json", data);
if ("whole" in document.querySelector("#data").dataset) {
  download("figures.csv", "text/csv", () => {
    const { cells, units } = JSON.parse(data());
    const head = ["cell", "status", "group", "metric", "unit", "median", "mad", "n", "absent", "ratio", "low", "high", "outcome"];
    return lines(head, cells.flatMap((one) => Object.keys({ ...one.values, ...one.absent }).sort().map((metric) => {
      const seen = one.values[metric], row = one.comparisons[metric], ratio = row?.ratio;
      return [cell(one.id), one.status, one.group, metric, units[metric], seen?.median, seen?.mad, seen?.n,
        seen ? "" : one.absent[metric].why, ratio?.point, ratio?.low, ratio?.high, row?.outcome];
    })));
  });
  download("raw-values.csv", "text/csv", () => lines(["cell", "metric", "value"], JSON.parse(data()).cells.flatMap((one) =>
    Object.entries(one.values).flatMap(([metric, told]) => told.values.map((value) => [cell(one.id), metric, value])))));
}

addEventListener("beforeprint", () => {
  for (const fold of document.querySelectorAll("details")) fold.open = true;
});
