// The answer: its verdict, its hits, or what to do where there are none.

import { badge, card, showMarks, skeletons } from "./cards.js";
import { button, find, make, plural } from "./dom.js";

/** The words of the answer, without the verdict, which stands beside them. */
function headline({ verdict, words, hits }) {
  const said = verdict && hits.length ? words.replace(`${verdict}: `, "") : "";
  return said.charAt(0).toUpperCase() + said.slice(1);
}

/** The chance that a sure label is right, as `in_percent` has it everywhere else; else the meaning says it. */
const chanceWords = ({ verdict, chance }) =>
  (verdict === "sure" && typeof chance === "number" ? `${Math.min(99, Math.round(100 * chance))}% chance` : "");

function showVerdict(answer) {
  const element = find("verdict");
  const { verdict, meaning, hits } = answer;
  element.hidden = !hits.length || !(verdict || meaning);
  element.className = `verdict ${verdict ?? "none"}`;
  element.replaceChildren(
    ...(verdict ? [badge(verdict), make("b", {}, headline(answer))] : []),
    ...(chanceWords(answer) ? [make("span", { class: "chance" }, chanceWords(answer))] : []), make("span", {}, meaning ?? ""));
}

/** How many and how fast; a screen reader also says the verdict here, because only this place is announced. */
function showSummary(answer, state, index) {
  const time = Object.values(answer.milliseconds ?? {}).reduce((sum, part) => sum + part, 0);
  const column = state.group || index.thing;
  const things = column && column !== "id";
  const found = things ? `${plural(answer.hits.length, "thing")} by ${column}` : plural(answer.hits.length, "hit");
  const words = `${found} among ${plural(answer.items, "item")} in ${time < 10 ? time.toFixed(1) : Math.round(time)} ms`;
  const said = answer.verdict && answer.hits.length ? `. ${answer.verdict}: ${headline(answer)}. ${answer.meaning}` : "";
  find("summary").replaceChildren(words, make("span", { class: "unseen" }, said));
}

function showEmpty(state, act) {
  const filtered = state.where.length > 0;
  find("empty").replaceChildren(
    make("h2", {}, "Nothing was found"),
    make("p", {}, filtered ? "No item matches these filters. Remove some of them." : "The index holds nothing to compare with. Add pictures with “lookalike index”."),
    filtered ? button("Remove all filters", () => act.where([]), { class: "primary" }) : button("Back to the start", act.home));
  find("empty").hidden = false;
}

/** Before the answer is there. */
export function showBusy(count) {
  find("empty").hidden = true;
  find("bar").hidden = false;
  find("answers").setAttribute("aria-busy", "true");
  find("progress").hidden = false;
  find("summary").textContent = "Searching…";
  if (!find("cards").querySelector(".card:not(.skeleton)")) {
    find("verdict").hidden = true;
    find("cards").replaceChildren(...skeletons(Math.min(count, 12)));
  }
}

export function endBusy(words = "") {
  find("answers").setAttribute("aria-busy", "false");
  find("summary").textContent = words;
  find("progress").hidden = true;
}

export function showNothing() {
  endBusy();
  for (const id of ["cards", "chips"]) find(id).replaceChildren();
  for (const id of ["verdict", "bar", "more", "empty"]) find(id).hidden = true;
}

export function showAnswer(answer, state, index, act) {
  const may = index.why && state.examples.length === 1 ? act : { ...act, why: null };
  endBusy();
  showVerdict(answer);
  showSummary(answer, state, index);
  find("cards").replaceChildren(...answer.hits.map((hit, place) => card(hit, place, answer, may, !index.read_only)));
  showMarks(find("cards"), answer.query);
  find("empty").hidden = answer.hits.length > 0;
  if (!answer.hits.length) showEmpty(state, act);
  find("more").hidden = answer.hits.length < state.k || state.k >= Math.min(index.limits.k, index.items);
}
