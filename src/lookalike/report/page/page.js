"use strict";
// Tables that sort, lists that copy. No library, no request; names reach the page as text only.

function value(row, column) {
  const cell = row.cells[column];
  return cell.dataset.value === undefined ? cell.textContent : Number(cell.dataset.value);
}

function sort(head) {
  const table = head.closest("table"), body = table.tBodies[0], column = head.cellIndex;
  const rising = head.getAttribute("aria-sort") !== "ascending";
  const order = (a, b) => (typeof a === "number" ? a - b : a.localeCompare(b, undefined, { numeric: true }));
  const rows = [...body.rows].map((row) => [value(row, column), row]);
  rows.sort((a, b) => (rising ? order(a[0], b[0]) : order(b[0], a[0])));
  for (const other of head.parentElement.cells) other.setAttribute("aria-sort", "none");
  head.setAttribute("aria-sort", rising ? "ascending" : "descending");
  body.append(...rows.map(([, row]) => row));
}

for (const button of document.querySelectorAll(".sortable th button"))
  button.addEventListener("click", () => sort(button.closest("th")));

const find = document.getElementById("find-class");
if (find) {
  const table = document.querySelector("#classes .sortable.by-class");
  find.addEventListener("input", () => {
    const part = find.value.toLocaleLowerCase();
    for (const row of table.tBodies[0].rows)
      row.hidden = !row.cells[0].textContent.toLocaleLowerCase().includes(part);
  });
}

async function copy(button, text, otherwise) {
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "copied";
  } catch {  // the browser allows no clipboard here
    otherwise();
  }
}

for (const button of document.querySelectorAll(".copy"))
  button.addEventListener("click", () => {
    const source = button.previousElementSibling;
    getSelection().selectAllChildren(source);
    copy(button, source.textContent, () => { button.textContent = "selected"; });
  });

for (const button of document.querySelectorAll(".copy-all"))
  button.addEventListener("click", () => {
    const area = document.createElement("textarea");
    area.readOnly = true;
    area.value = [...document.querySelectorAll(button.dataset.copies)].map((element) => element.textContent).join("\n");
    copy(button, area.value, () => { button.replaceWith(area); area.focus(); area.select(); });
  });
