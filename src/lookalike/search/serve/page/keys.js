// The keyboard: arrows move between the cards, Enter is the card's own button, the rest are letters.

import { find } from "./dom.js";

const typing = (element) => element.matches?.("input:not([type=checkbox]):not([type=file]), select, textarea");

/** The card that arrows go to from `place`: by rows and columns as they lie on the screen. */
function target(cards, place, key) {
  if (key === "Home") return 0;
  if (key === "End") return cards.length - 1;
  const top = cards[0].offsetTop;
  const across = cards.findIndex((each) => each.offsetTop > top);
  const width = across < 0 ? cards.length : across;
  const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -width, ArrowDown: width }[key];
  const next = place + step;
  if (next >= 0 && next < cards.length) return next;
  return key === "ArrowDown" && Math.floor(place / width) < Math.floor((cards.length - 1) / width) ? cards.length - 1 : place;
}

/** Only one card is a stop of the Tab key, together with its buttons. */
export function makeCurrent(card) {
  for (const each of find("cards").children) {
    for (const control of each.querySelectorAll("button")) control.tabIndex = each === card ? 0 : -1;
  }
}

export function focusCard(place, options = {}) {
  const card = find("cards").children[place];
  if (!card || card.matches(".skeleton")) return;
  makeCurrent(card);
  card.querySelector(".picture").focus(options);
}

/** `act` has mark(card, right), undo, escape. */
export function listenToKeys(act) {
  find("cards").addEventListener("focusin", (event) => makeCurrent(event.target.closest(".card")));
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || find("why").open) return;
    if (event.key === "Escape") return escape(event, act);
    if (typing(event.target)) return;
    if (event.key === "/") {
      event.preventDefault();
      find("find-field").focus();
      find("find-field").select();
    } else if (event.key === "u") act.undo();
    else onCards(event, act);
  });
}

function onCards(event, act) {
  const cards = [...find("cards").querySelectorAll(".card:not(.skeleton)")];
  if (!cards.length || find("results").hidden) return;
  const card = document.activeElement.closest?.(".card");
  const key = event.key;
  if (/^(Arrow|Home$|End$)/.test(key)) {
    const free = document.activeElement === document.body || document.activeElement === find("main");
    if (!card && !(free && key.startsWith("Arrow"))) return;
    event.preventDefault();
    focusCard(card ? target(cards, cards.indexOf(card), key) : 0);
  } else if (card && (key === "y" || key === "n")) {
    event.preventDefault();
    act.mark(card, key === "y");
  }
}

function escape(event, act) {
  if (typing(event.target)) {
    event.target.blur();
    if (!find("results").hidden) focusCard(0);
  } else act.escape();
}
