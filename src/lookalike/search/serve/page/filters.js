// Filters made from the index's own columns: boxes to tick for texts, a range for numbers.

import { labels } from "./api.js";
import { button, find, make, number } from "./dom.js";
import { inWords, oneOf, read, sayable } from "./state.js";

const LABEL = "label"; // the class of an item is filtered like a column
const UNFOLDED = 3; // filters that stand open at first

const SHOWN = 50; // values of a column
const NATURAL = new Intl.Collator("en", { numeric: true, sensitivity: "base" });
const inOrder = (values) => [...values].sort((one, other) => NATURAL.compare(String(one.value ?? ""), String(other.value ?? "")));
const asValues = (found) => found.map(({ label, items }) => ({ value: label, items }));

const columnsOf = (index) => [
  ...index.columns.map((column) => ({ ...column, values: inOrder(column.values) })),
  ...(index.labels.length ? [{ name: LABEL, type: "text", values: asValues(index.labels), more: index.classes > index.labels.length }] : []),
].filter(({ name }) => sayable(name));

const own = (where, column, operators) => where.filter((condition) => {
  const parsed = read(condition);
  return parsed?.column === column && operators.includes(parsed.operator);
});

const without = (where, taken) => where.filter((condition) => !taken.includes(condition));

function ticks({ name, values, more = false }, where, change) {
  const mine = own(where, name, ["="]);
  const chosen = new Set(mine.flatMap((condition) => read(condition).values.map((value) => JSON.stringify(value))));
  const box = ({ value, items }) => {
    const input = make("input", { type: "checkbox", checked: chosen.has(JSON.stringify(value)) });
    input.addEventListener("change", () => {
      const key = JSON.stringify(value);
      if (input.checked) chosen.add(key);
      else chosen.delete(key);
      const rest = without(where, mine);
      change(chosen.size ? [...rest, oneOf(name, [...chosen].map((text) => JSON.parse(text)))] : rest);
    });
    input.dataset.key = JSON.stringify([name, value]);
    const text = value === null || value === "" ? "none" : String(value);
    return make("label", { class: "tick" }, input, make("span", {}, text), make("small", {}, items === null ? "" : number(items)));
  };
  const known = new Set(values.map(({ value }) => JSON.stringify(value)));
  const hidden = [...chosen].filter((key) => !known.has(key)).map((key) => ({ value: JSON.parse(key), items: null }));
  const list = make("div", { class: "ticks" }, ...[...hidden, ...values].map(box));
  return more ? make("div", {}, finder(name, hidden, list, box), list) : list;
}

/** Where there are more classes than boxes to tick, the server finds them by a part of their names. */
function finder(name, chosen, list, box) {
  const input = make("input", { type: "search", placeholder: "Find a class", "aria-label": `Find a ${name}`, autocomplete: "off" });
  input.dataset.key = JSON.stringify([name, "find"]);
  let asked = 0;
  input.addEventListener("input", async () => {
    asked += 1;
    const own = asked, found = await labels(input.value.trim(), 0, SHOWN).catch(() => null);
    if (found && own === asked) list.replaceChildren(...[...chosen, ...asValues(found.labels)].map(box));
  });
  return input;
}

function range({ name, least, most }, where, change) {
  const bounds = [["≥", ">=", least, "At least"], ["≤", "<=", most, "At most"]];
  return make("div", { class: "range" }, ...bounds.map(([, operator, placeholder, words]) => {
    const mine = own(where, name, [operator]);
    const value = mine.length ? read(mine[0]).values[0] : "";
    const input = make("input", { type: "number", step: "any", placeholder, value: String(value), "aria-label": `${words}, ${name}` });
    input.dataset.key = JSON.stringify([name, operator]);
    input.addEventListener("change", () => {
      const rest = without(where, mine);
      change(input.value === "" ? rest : [...rest, `${name}${operator}${Number(input.value)}`]);
    });
    return make("label", {}, words, input);
  }));
}

/** Draw the filters of an index as `where` sets them; `change` is told the new conditions. */
export function showFilters(index, where, change) {
  const form = find("filter-form");
  const open = new Set([...form.querySelectorAll("details")].filter((each) => each.open).map((each) => each.dataset.column));
  const focused = document.activeElement?.dataset?.key;
  const first = !form.children.length;
  const sections = columnsOf(index).map((column, place) => {
    const used = where.some((condition) => read(condition)?.column === column.name);
    const body = column.type === "number" ? range(column, where, change) : ticks(column, where, change);
    const shown = used || open.has(column.name) || (first && place < UNFOLDED);
    return make("details", { open: shown, data: { column: column.name } }, make("summary", {}, column.name), body);
  });
  form.replaceChildren(...sections);
  find("filters").hidden = !sections.length;
  if (focused) [...form.querySelectorAll("[data-key]")].find((each) => each.dataset.key === focused)?.focus();
}

/** What is filtered by at the moment, each with a button that ends it. */
export function showChips(where, change) {
  const chip = (condition) => {
    const words = inWords(condition);
    return make("li", {}, button(`${words} ✕`, () => change(without(where, [condition])), { "aria-label": `Remove the filter ${words}` }));
  };
  const inside = find("chips").contains(document.activeElement);
  find("chips").replaceChildren(...where.map(chip));
  if (inside) (find("chips").querySelector("button") ?? find("group")).focus();
  if (where.length > 1) find("chips").append(make("li", {}, button("Remove all", () => change([]), { class: "plain" })));
}

/** By which column hits are things; an index of things begins with its own, and photos are the other choice. */
export function showGroups(index, chosen) {
  const names = [...(index.labels.length ? [LABEL] : []), ...index.columns.map(({ name }) => name)].filter((name) => name !== index.thing);
  const option = (value, text) => make("option", { value, selected: value === chosen }, text);
  const first = index.thing ? [option("", index.thing), option("id", "nothing")] : [option("", "nothing")];
  find("group").replaceChildren(...first, ...names.map((name) => option(name, name)));
  find("group").value = chosen;
}
