// Groups as strips of photos: which photos are chosen, which strips are open, and where the keys are.

import { button, find, make, plural } from "./dom.js";
import { thumbnail } from "./pictures.js";

const FIRST = 8, LAST = 3; // photos of a strip that is not open
const WORDS = { found: "", aside: "not sure", named: "named", known: "known class", apart: "in no group" };
const picked = new Set(); // rows
const open = new Set(); // groups

export const numberOf = (element) => Number(element.closest(".strip")?.dataset.number ?? NaN);

/** The chosen photos of a group. */
export function chosen(number) {
  const strip = find("strips").querySelector(`[data-number="${number}"]`);
  return [...(strip?.querySelectorAll('.photo[aria-pressed="true"]') ?? [])].map((photo) => Number(photo.dataset.row));
}

/** All photos of a group are shown, once strips are drawn again. */
export const openStrip = (number) => open.add(number);

export function chooseNothing() {
  picked.clear();
  for (const photo of find("strips").querySelectorAll('[aria-pressed="true"]')) photo.setAttribute("aria-pressed", "false");
}

function photo(shown, place, strip) {
  const title = `${shown.name}, photo ${place + 1} of ${strip.size}`;
  const made = make("button", {
    type: "button", class: "photo", title: shown.name, "aria-label": title, "aria-pressed": String(picked.has(shown.row)), data: { row: shown.row, address: shown.thumbnail },
    tabindex: place ? "-1" : "0",
    on: { click: () => toggle(made, shown.row) },
  }, thumbnail(shown, ""));
  return made;
}

function toggle(made, row) {
  if (picked.has(row)) picked.delete(row);
  else picked.add(row);
  made.setAttribute("aria-pressed", String(picked.has(row)));
}

function photos(strip, again) {
  const all = strip.photos.map((shown, place) => photo(shown, place, strip));
  const hidden = strip.size - FIRST - LAST;
  if (open.has(strip.number) || hidden < 2) {
    const lacking = strip.size - all.length;
    return make("div", { class: "photos" }, ...all, lacking ? make("p", { class: "fine" }, `${plural(lacking, "more photo")} between the typical and the odd ones`) : null);
  }
  const rest = button(`+ ${hidden}`, () => { open.add(strip.number); again(); focusPhoto(strip.number, FIRST); }, { class: "rest", "aria-label": `Show ${plural(hidden, "more photo")} of ${strip.label || "these"}` });
  return make("div", { class: "photos" }, ...all.slice(0, FIRST), rest, ...all.slice(-LAST));
}

function naming(strip, act, locked) {
  if (locked) return null;
  const label = `Name of ${strip.label || "the chosen photos"}`;
  const field = make("input", { list: "names", "aria-label": label, placeholder: "Name", autocomplete: "off", maxlength: "100", spellcheck: "false", enterkeyhint: "done" });
  return make("form", { on: { submit: (event) => { event.preventDefault(); act.name(strip, field.value); } } }, field, make("button", { class: "small" }, "Name"));
}

function tools(strip, act, locked) {
  if (locked) return null;
  const tool = (name, action, key, words) => button(name, () => action(strip), { class: "small", "aria-label": `${words} ${strip.label || "the chosen photos"}`, "aria-keyshortcuts": key, title: `${words} (${key})` });
  return make("div", { class: "tools" },
    tool("View", act.look, "v", "View photos of"), tool("Merge", act.merge, "m", "Merge"), tool("Split", act.split, "s", "Split"), tool("Out", act.out, "x", "Take out"), tool("Not sure", act.aside, "0", "Not sure about"));
}

function strip(shown, merging, act, locked, again) {
  const guesses = locked ? [] : shown.names.map((name, place) => button(`${place + 1} ${name}`, () => act.guess(shown, place), { class: "small guess", "aria-label": `Name ${shown.label}: ${name}`, "aria-keyshortcuts": String(place + 1) }));
  const state = WORDS[shown.state];
  return make("li", { class: `strip${merging === shown.number ? " merging" : ""}${open.has(shown.number) ? " open" : ""}`, data: { number: shown.number }, "aria-label": `${shown.label || "In no group"}, ${plural(shown.size, "photo")}` },
    make("div", { class: "line" },
      make("h3", {}, shown.label || "In no group"), make("span", { class: "fine" }, plural(shown.size, "photo")),
      state && shown.label ? make("span", { class: `state ${shown.state}` }, state) : null,
      naming(shown, act, locked), ...guesses, tools(shown, act, locked)),
    photos(shown, again));
}

export function showStrips(state, merging, act) {
  const again = () => showStrips(state, merging, act);
  const inside = find("strips").contains(document.activeElement) ? numberOf(document.activeElement) : NaN;
  const at = state.strips.findIndex((shown) => shown.number === inside);
  find("strips").replaceChildren(...state.strips.map((shown) => strip(shown, merging, act, state.read_only, again)));
  if (at >= 0) focusStrip(at);
}

function focusPhoto(number, place) {
  find("strips").querySelectorAll(`[data-number="${number}"] .photo`)[place]?.focus();
}

/** The keys go on from this strip; past the last one, from the last. */
export function focusStrip(place, options = {}) {
  const strips = [...find("strips").children];
  strips[Math.min(place, strips.length - 1)]?.querySelector(".photo")?.focus(options);
}
