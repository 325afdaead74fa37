// The page before anything was searched: the index itself, and something to try.

import { labels } from "./api.js";
import { nameOf } from "./cards.js";
import { breakable, button, find, make, number, plural } from "./dom.js";
import { thumbnail } from "./pictures.js";
import { positive } from "./state.js";

const CLASSES = 24; // shown at first, and more with every "Show more"
const SUGGESTED = 20; // names below the field in the header
const PAUSE = 150; // milliseconds without a key, after which the server is asked
let asked = 0; // questions for classes: an old answer may come late
let wait = null;

function tile(item, title, note, action, words) {
  const picture = make("span", { class: "picture" }, thumbnail(item));
  const text = make("span", { class: "words" }, make("b", {}, ...breakable(title)), note ? make("small", {}, note) : null);
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
  showNames(index.labels);
}

const showNames = (found) => find("class-names").replaceChildren(...found.map(({ label }) => make("option", { value: label })));

/** Ask the server for classes once nobody types; what it says to an older question is dropped. */
function later(question, show) {
  clearTimeout(wait);
  asked += 1;
  const own = asked;
  return new Promise((done) => {
    wait = setTimeout(() => question().then((found) => own === asked && show(found), () => {}).finally(done), PAUSE);
  });
}

/** Names that go on from what stands in the field of the header. */
export const suggest = (text) => later(() => labels(text, 0, SUGGESTED), (found) => showNames(found.labels));

const classTile = (each, act) => {
  const size = plural(each.items, "item");
  return tile(each.example, each.label, size, () => act.showClass(each), `Class ${each.label}, ${size}`);
};

function showClasses({ found, labels: some }, text, act) {
  const list = find("classes"), more = find("more-classes");
  list.replaceChildren(...some.map((each) => classTile(each, act)));
  find("classes-note").textContent = text ? `${plural(found, "class has", "classes have")} “${text}” in the name.` : "Click one to see its items.";
  const left = () => {
    more.hidden = list.children.length >= found;
    more.textContent = `Show ${number(Math.min(CLASSES, found - list.children.length))} more of ${number(found - list.children.length)}`;
  };
  left();
  more.onclick = async () => {
    const first = list.children.length;
    const next = await labels(text, first, CLASSES).catch(() => ({ labels: [] }));
    list.append(...next.labels.map((each) => classTile(each, act)));
    left();
    list.children[first]?.firstElementChild.focus();
  };
}

/** The classes with a text in their names; `told`: the text comes from elsewhere. */
export function findClasses(text, act, told = false) {
  if (told) {
    find("class-find").value = text;
    find("classes-title").scrollIntoView();
  }
  return later(() => labels(text, 0, CLASSES), (found) => showClasses(found, text, act));
}

/** The search that was left: Esc is no loss. */
export function showReturn(state, sources, action) {
  find("return").hidden = !state;
  if (!state) return;
  const [example] = positive(state);
  const own = "photo" in example;
  const picture = own ? make("img", { alt: "", src: sources.photos.get(example.photo).url }) : thumbnail(sources.items.get(example.item));
  const element = button(make("span", { class: "picture" }, picture), action, { class: "try again" });
  element.append(make("span", { class: "words" }, make("small", {}, own ? "Your photo is still here" : "Your search is still here"), make("b", {}, "Back to the results")));
  find("return").replaceChildren(element);
}

export function showStart(index, act) {
  find("promise").textContent = index.items
    ? `It is compared with every item, and not kept${index.read_only ? "" : " unless you mark a hit"}. Several photos of one thing count together.`
    : "This index is still empty: add pictures with “lookalike index”, then reload this page.";
  showSample(index, act);
  find("classes").closest("section").hidden = !index.classes;
  find("class-find").hidden = index.classes <= CLASSES;
  showClasses({ found: index.classes, labels: index.labels.slice(0, CLASSES) }, "", act);
  find("newest").closest("section").hidden = !index.newest.length;
  find("newest").replaceChildren(...index.newest.map((item) =>
    tile(item, nameOf(item), "", () => act.moreLike(item), `More like ${nameOf(item)}`)));
}
