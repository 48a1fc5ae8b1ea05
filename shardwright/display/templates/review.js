"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const place = "shardwright-review-" + data.id;
  const items = [...document.querySelectorAll(".item")];
  const known = new Map(data.keys.map((key, number) => [key, number]));
  const marks = new Map();

  const show = () => {
    document.getElementById("count").textContent = marks.size + " of " + items.length + " marked";
    for (const button of document.querySelectorAll("[data-save]")) button.disabled = !marks.size;
  };
  const put = (number, mark, store) => {
    const item = items[number];
    const valid = Object.hasOwn(data.rows[number], mark) || mark === "neither" || data.classes[mark] !== undefined;
    for (const input of item.querySelectorAll("input")) input.checked = valid && input.value === mark;
    const select = item.querySelector("select");
    if (select) select.value = valid && data.classes[mark] !== undefined ? mark : "";
    if (valid) { item.dataset.mark = mark; marks.set(data.keys[number], mark); }
    else { delete item.dataset.mark; marks.delete(data.keys[number]); }
    if (store) {
      // A browser that keeps nothing still marks.
      try { localStorage.setItem(place, JSON.stringify([...marks])); } catch (error) { /* full, or not allowed */ }
      show();
    }
  };
  let kept = [];
  try { kept = JSON.parse(localStorage.getItem(place)) || []; } catch (error) { /* not allowed, or damaged */ }
  if (Array.isArray(kept)) {
    for (const row of kept) if (Array.isArray(row) && known.has(row[0])) put(known.get(row[0]), String(row[1]), false);
  }
  show();

  const cell = (text) => /[",\r\n]|^\s|\s$/.test(text) ? '"' + text.replaceAll('"', '""') + '"' : text;
  const csv = (rows) => rows.map((row) => row.map(cell).join(",") + "\n").join("");
  const nameOf = (mark) => data.classes[mark] === undefined ? mark : data.classes[mark];
  const corrected = (key, mark) => data.classes[mark] === undefined ? data.rows[known.get(key)][mark] || []
    : [[key, data.classes[mark]]];
  const made = {
    corrections: () => ["corrections.csv", "text/csv",
      csv([data.header, ...[...marks].flatMap(([key, mark]) => corrected(key, mark))])],
    marks: () => ["marks.csv", "text/csv", csv([["image", "mark"], ...[...marks].map(([key, m]) => [key, nameOf(m)])])],
    json: () => ["marks.json", "application/json",
      JSON.stringify([...marks].map(([key, mark]) => ({image: key, mark: nameOf(mark)})), null, 1) + "\n"],
  };
  for (const button of document.querySelectorAll("[data-save]")) {
    button.addEventListener("click", () => {
      const [name, type, text] = made[button.dataset.save]();
      const link = document.createElement("a");
      link.href = URL.createObjectURL(new Blob([text], {type}));
      link.download = name;
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 60000);
    });
  }
  document.addEventListener("change", (event) => {
    const item = event.target.closest(".item");
    if (item) put(items.indexOf(item), event.target.value, true);
  });
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches("select")) return;
    const at = items.indexOf(document.activeElement && document.activeElement.closest(".item"));
    const step = {j: 1, k: -1}[event.key];
    if (step) { (items[at + step] || items[at] || items[0]).focus(); event.preventDefault(); return; }
    const choices = at < 0 ? [] : [...items[at].querySelectorAll("input")];
    const choice = choices[Number(event.key) - 1];
    if (choice || (at >= 0 && event.key === "0")) {
      put(at, choice ? choice.value : "", true);
      (choice && items[at + 1] || items[at]).focus();
      event.preventDefault();
    }
  });
})();
