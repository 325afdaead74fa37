// The page before anything was searched: the index itself, and something to try.

import { nameOf } from "./cards.js";
import { button, find, make, number, plural } from "./dom.js";
import { thumbnail } from "./pictures.js";

const CLASSES = 24; // shown at first

function tile(item, title, note, action, words) {
  const picture = make("span", { class: "picture" }, thumbnail(item));
  const text = make("span", { class: "words" }, make("b", {}, title), note ? make("small", {}, note) : null);
  const element = button(picture, action, { class: "tile", "aria-label": words });
  element.append(text);
  return make("li", {}, element);
}

function showSample(index, act) {
  const item = index.sample;
  find("sample").hidden = !item;
  if (!item) return;
  const element = button(make("span", { class: "picture" }, thumbnail(item)), () => act.moreLike(item), {
    class: "try", "aria-label": `Try it with this picture: ${nameOf(item)}`,
  });
  element.append(make("span", { class: "words" }, make("small", {}, "No photo at hand?"), make("b", {}, "Try this one")));
  find("sample").replaceChildren(element);
}

/** Header and footer: what this index is. */
export function showFacts(index) {
  const size = `${plural(index.items, "item")}${index.classes ? ` in ${plural(index.classes, "class", "classes")}` : ""}`;
  find("about").replaceChildren(make("b", {}, index.name), ` ${size}`);
  document.title = `${index.name} · lookalike`;
  find("calibration").textContent = index.calibration?.meaning ?? "Not calibrated: hits come without a verdict.";
  for (const each of document.querySelectorAll(".marking")) each.hidden = index.read_only;
  find("class-names").replaceChildren(...index.labels.map(({ label }) => make("option", { value: label })));
}

function showClasses(labels, act) {
  find("classes").replaceChildren(...labels.map(({ label, items, example }) =>
    tile(example, label, plural(items, "item"), () => act.showClass(label, example), `Class ${label}, ${plural(items, "item")}`)));
}

export function showStart(index, act) {
  find("promise").textContent = index.items
    ? `It is compared with every item, and not kept${index.read_only ? "" : " unless you mark a hit"}.`
    : "This index is still empty: add pictures with “lookalike index”, then reload this page.";
  showSample(index, act);
  const shown = index.labels.length;
  find("classes").closest("section").hidden = !shown;
  find("classes-note").textContent = shown < index.classes ? `The ${number(shown)} largest of ${number(index.classes)}.` : "Click one to see its items.";
  showClasses(index.labels.slice(0, CLASSES), act);
  const more = find("more-classes");
  more.hidden = shown <= CLASSES;
  more.textContent = `Show ${number(shown - CLASSES)} more`;
  more.onclick = () => {
    more.hidden = true;
    showClasses(index.labels, act);
    find("classes").children[CLASSES].firstElementChild.focus();
  };
  find("newest").closest("section").hidden = !index.newest.length;
  find("newest").replaceChildren(...index.newest.map((item) =>
    tile(item, nameOf(item), "", () => act.moreLike(item), `More like ${nameOf(item)}`)));
}
