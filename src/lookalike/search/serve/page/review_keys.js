// The keyboard of a review: arrows move between strips and photos, letters say words about the strip they are in.

import { find } from "./dom.js";
import { focusStrip } from "./strips.js";

const typing = (element) => element.matches?.("input:not([type=range]), textarea");
const ANSWERS = { y: "same", n: "different", b: "unsure" };
const WORDS = { m: "merge", s: "split", x: "out", 0: "aside" };

/** `act` as in review.js; `stripOf(element)` is the group that an element belongs to. */
export function listenToKeys(act, stripOf) {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || find("help").open) return;
    if (find("look").open) return look(event, act);
    const element = document.activeElement, key = event.key;
    if (key === "Escape") {
      const inside = element.closest?.(".strip")?.querySelector(".photo");
      act.nothing();
      if (typing(element)) inside?.focus();
    } else if (!typing(element)) press(event, key, element, act, stripOf);
  });
}

/** Over large photos: those of the question are answered as ever. */
function look(event, act) {
  if (Object.hasOwn(ANSWERS, event.key) && !find("look-words").hidden) act.answer(ANSWERS[event.key]);
}

function press(event, key, element, act, stripOf) {
  const strip = element.closest?.(".strip") ? stripOf(element) : null;
  const is = (names) => Object.hasOwn(names, key);
  if (key === "?") act.help();
  else if (key === "u") act.undo();
  else if (key === "v") act.look(strip, element.closest(".photo"));
  else if (is(ANSWERS)) act.answer(ANSWERS[key]);
  else if (key.startsWith("Arrow")) return move(event, key, element);
  else if (strip && key === "Enter" && element.matches(".photo")) element.closest(".strip").querySelector("input")?.focus();
  else if (strip && is(WORDS)) act[WORDS[key]](strip);
  else if (strip && /^[1-3]$/.test(key)) act.guess(strip, Number(key) - 1);
  else return undefined;
  return event.preventDefault();
}

function move(event, key, element) {
  if (element.matches("input, button:not(.photo):not(.rest)")) return;
  const strips = [...find("strips").children], at = strips.indexOf(element.closest(".strip"));
  event.preventDefault();
  if (at < 0) return focusStrip(0);
  if (key === "ArrowUp" || key === "ArrowDown") return focusStrip(Math.max(0, at + (key === "ArrowDown" ? 1 : -1)));
  const photos = [...strips[at].querySelectorAll(".photo, .rest")], place = photos.indexOf(element);
  return photos[Math.min(photos.length - 1, Math.max(0, place + (key === "ArrowRight" ? 1 : -1)))]?.focus();
}
