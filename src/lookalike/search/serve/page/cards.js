// One hit, one card: its picture first, then what it is, how similar, and what can be done with it.

import { breakable, button, make } from "./dom.js";
import { icon } from "./icons.js";
import { markOf } from "./marks.js";
import { thumbnail } from "./pictures.js";

const COLUMNS = 3; // of an item's columns that a card shows
const PHOTOS = 4; // of a thing, beside its best one
export const nameOf = (item) => item.label ?? item.path ?? item.id;
/** What a hit is called: the name of its thing, or of its photo. */
export const titleOf = ({ item, thing }) => (thing === null ? nameOf(item) : String(thing));
export const ICONS = { sure: "right", maybe: "maybe", unknown: "unknown" };

/** A similarity as a share of the bar: cosines as they are; −‖a − b‖²/2, which is never above 0, from 1 downwards. */
const shareOf = (similarity, best) => Math.min(1, Math.max(0, best > 0 ? similarity : 1 + similarity));

export const badge = (verdict, meaning = null) => make("span", { class: `badge ${verdict}`, title: meaning }, icon(ICONS[verdict]), verdict);

function meter(similarity, best) {
  const fill = make("span", { class: "fill" });
  fill.style.width = `${shareOf(similarity, best) * 100}%`;
  return make("div", { class: "similarity" },
    make("span", { class: "track", "aria-hidden": "true" }, fill),
    make("span", { class: "value" }, make("span", { class: "unseen" }, "Similarity "), similarity.toFixed(3)));
}

/** Columns of an item; those of a thing with its label, and without the column that is its name. */
function facts(item, thing) {
  const known = Object.entries(item.columns ?? {}), named = thing === null ? known : [["label", item.label], ...known];
  const shown = named.filter(([, value]) => value !== null && value !== thing);
  return make("dl", { class: "facts" }, ...shown.slice(0, COLUMNS).map(([column, value]) =>
    make("div", {}, make("dt", {}, column), make("dd", {}, String(value)))));
}

/** A button with a drawing; on a phone its word stands below it, because nothing can hover there. */
function tool(name, word, drawing, action, properties = {}) {
  const element = button(icon(drawing), action, { class: `tool ${drawing}`, title: name, "aria-label": name, tabindex: "-1", ...properties });
  element.append(make("span", { class: "word", "aria-hidden": "true" }, word));
  return element;
}

/** A mark in words: what, by whom, when. */
function markedWords({ right, by, at }) {
  const when = at ? `, ${new Date(at).toLocaleDateString("en", { day: "numeric", month: "short", year: "numeric" })}` : "";
  return `Marked ${right ? "right" : "wrong"}${by ? ` by ${by}` : ""}${when}`;
}

/** The photos that speak for a thing beside the best one, which is the card's own. */
const otherPhotos = ({ photos = [] }) => (photos.length > 1 ? make("ul", { class: "photos" }, ...photos.slice(1, 1 + PHOTOS).map((photo) =>
  make("li", {}, thumbnail(photo.item, `Another photo of it, similarity ${photo.similarity.toFixed(3)}`)))) : null);

/** The hit that the verdict is about: the first of what the answer names (-1: it is not shown), without a name the first of all. */
const judgedPlace = ({ hits, label }) => (label === null ? 0 : hits.findIndex(({ item, thing }) => String(thing ?? item.label) === label));

/** `place` counts from 0; `act` has moreLike, add, mark and, where it can be asked, why; without `marks` the index takes no feedback. */
export function card(hit, place, answer, act, marks) {
  const { item, similarity } = hit;
  const name = titleOf(hit);
  const verdict = answer.verdict !== "unknown" && place === judgedPlace(answer) ? answer.verdict : null;
  const said = [`More like ${name}`, `hit ${place + 1}`, `similarity ${similarity.toFixed(3)}`, ...(verdict ? [verdict] : [])];
  const picture = button(thumbnail(item), () => act.moreLike(item), {
    class: "picture", "aria-label": said.join(", "), tabindex: place === 0 ? "0" : "-1",
    "aria-keyshortcuts": marks ? "Enter y n" : "Enter",
  });
  picture.append(make("span", { class: "hover", "aria-hidden": "true" }, "More like this"));
  const words = make("div", { class: "words" },
    make("h2", { class: "label" }, make("span", { title: name }, ...breakable(name)), verdict ? badge(verdict, answer.meaning) : null),
    meter(similarity, answer.hits[0].similarity),
    facts(item, hit.thing), otherPhotos(hit));
  const tools = make("div", { class: "tools", role: "group", "aria-label": `What to do with ${name}` });
  if (marks) {
    tools.append(tool(`${name} is right`, "Right", "right", () => act.mark(item, true), { "aria-pressed": "false", "aria-keyshortcuts": "y" }),
      tool(`${name} is wrong`, "Wrong", "wrong", () => act.mark(item, false), { "aria-pressed": "false", "aria-keyshortcuts": "n" }));
  }
  if (act.why) tools.append(tool(`Why ${name} was found`, "Why", "why", () => act.why(hit), { "aria-haspopup": "dialog" }));
  tools.append(make("span", { class: "gap" }),
    tool(`Add ${name} as an example`, "More", "plus", () => act.add(item, false)),
    tool(`Not like ${name}`, "Less", "minus", () => act.add(item, true)));
  words.append(make("p", { class: "mark fine", hidden: true }), tools);
  return make("li", { class: "card", data: { id: item.id, place } }, picture, words);
}

/** Show on the cards what is marked. */
export function showMarks(list, query) {
  for (const each of list.children) {
    const known = markOf(query, each.dataset.id), right = known?.right ?? null, words = each.querySelector(".mark");
    words.hidden = !known;
    words.textContent = known ? markedWords(known) : "";
    each.classList.toggle("is-right", right === true);
    each.classList.toggle("is-wrong", right === false);
    each.querySelector(".tool.right")?.setAttribute("aria-pressed", String(right === true));
    each.querySelector(".tool.wrong")?.setAttribute("aria-pressed", String(right === false));
  }
}

/** Grey cards where hits will be. */
export const skeletons = (count) => Array.from({ length: count }, () =>
  make("li", { class: "card skeleton", "aria-hidden": "true" }, make("span", { class: "picture" }),
    make("span", { class: "words" }, make("i"), make("i"))));
