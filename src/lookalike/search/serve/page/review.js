// The page of a review: one state of the server, shown; every word is sent to it, and the answer is the next state.

import { ask, hasToken, Refusal, setToken, takeToken } from "./api.js";
import { find, make, number, plural } from "./dom.js";
import { lookAt, lookAtPair } from "./look.js";
import { gone, hideNotice, notice, toast, waiting } from "./notice.js";
import { thumbnail } from "./pictures.js";
import { listenToKeys } from "./review_keys.js";
import { chosen, chooseNothing, focusStrip, numberOf, openStrip, showStrips } from "./strips.js";

const MORE = 20;
let state = null;
let count = MORE;
let merging = null; // the group that waits for another one
let sending = false;

const address = () => `/v1/review?count=${count}`;

/** Say one word to the server; `focus`: the place of the strip that the keys go on from, or what finds it among the next. */
async function say(word, focus = null, done = "") {
  if (!state || state.read_only) return;
  if (sending) return toast("The last change is still being saved. Please try again.");
  sending = true;
  const content = { method: "POST", headers: { "Content-Type": "application/json" } };
  try {
    take(await ask(address(), { ...content, body: JSON.stringify({ version: state.version, ...word }) }), focus);
    if (done) toast(done, ...(word.do === "undo" ? [] : ["Undo", undo]));
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    toast(`Not kept: ${error.message}`);
    if ([0, 401, 429, 503].includes(error.status)) explain(error, () => say(word, focus, done));
    else await load(focus); // somebody else may have been here
  } finally {
    sending = false;
  }
}

async function load(focus = null, options = {}) {
  try {
    take(await ask(address()), focus, options);
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    explain(error, () => load(focus, options));
  }
}

/** Why nothing came of it; `again` says the same word once more, or loads. */
function explain(error, again) {
  if (error.status === 401) return askForToken(again);
  if (error.status === 0) return gone(again);
  if ([429, 503].includes(error.status)) return waiting(error.message, error.wait || 2, again);
  return notice("This cannot be shown", error.message, [["Try again", again]]);
}

function askForToken(again) {
  if (hasToken()) notice("That is not the token", "The server refused it. Check it and type it again.");
  find("token").hidden = false;
  find("token-field").focus();
  find("token").onsubmit = (event) => {
    event.preventDefault();
    setToken(find("token-field").value);
    find("token").hidden = true;
    again();
  };
}

function take(next, focus, options = {}) {
  state = next;
  find("review").dataset.version = state.version;
  merging = null;
  hideNotice();
  find("review").hidden = false;
  document.title = `${state.name} · review`;
  find("about").textContent = `${state.name}: ${plural(state.progress.photos, "photo")}, ${plural(state.progress.groups, "group")}`;
  find("undo").disabled = !state.progress.steps;
  showProgress(state.progress);
  showLevel();
  showQuestion(state.question);
  find("names").replaceChildren(...state.classes.map((name) => make("option", { value: name })));
  drawStrips();
  const shown = state.strips.filter((strip) => strip.number >= 0).length, left = state.progress.found;
  find("groups-note").textContent = left ? `${plural(left, "group")} without a name` : "Every group has a name";
  find("more").hidden = state.strips.length < count || shown >= state.progress.groups;
  const at = typeof focus === "function" ? focus(state.strips) : focus;
  if (at !== null && at >= 0) focusStrip(at, options);
}

const drawStrips = () => showStrips(state, merging, act);

function showProgress(progress) {
  const bar = find("settled");
  [bar.max, bar.value] = [progress.photos, progress.settled];
  find("settled-words").textContent = `${number(progress.settled)} of ${plural(progress.photos, "photo")} settled; ${plural(progress.named, "group")} named`;
  find("brought").textContent = progress.answers
    ? `${plural(progress.answers, "question")} answered: ${plural(progress.merged, "merge")} brought ${plural(progress.brought, "photo")} into their group; ${number(progress.expected)} of the answers were the expected ones.`
    : "No question answered yet.";
  find("offer").classList.toggle("due", progress.again);
  find("offer-words").textContent = progress.again
    ? "You have changed enough for a model to learn from. Fit it, then let it find the groups:" : "To learn from the groups as they are now, fit a model, then let it find the groups:";
  find("command").textContent = state.commands.join("\n");
  find("fitted").textContent = progress.fitted;
}

function showLevel() {
  const slider = find("level"), far = state.levels.map((level) => Math.abs(level.fineness - state.fineness));
  slider.max = far.length - 1;
  slider.value = far.indexOf(Math.min(...far));
  slider.disabled = state.read_only;
  sayLevel();
}

function sayLevel() {
  const words = `${plural(state.levels[find("level").value].groups, "group")} found`;
  find("level-words").textContent = words;
  find("level").setAttribute("aria-valuetext", words);
}

function showQuestion(question) {
  for (const id of ["pair", "words"]) find(id).hidden = !question;
  if (!question) find("worth").textContent = "Nothing is left to ask: no two groups look alike and are still open.";
  if (!question) return;
  const view = (photo) => make("button", { type: "button", class: "view", title: "View both large (v)", "aria-haspopup": "dialog", on: { click: () => act.look() } }, thumbnail(photo, photo.name));
  const side = (photo, label) => make("figure", {}, view(photo), make("figcaption", { title: photo.name }, label || "in no group"));
  find("pair").replaceChildren(side(question.left, question.left_label), side(question.right, question.right_label));
  find("worth").textContent = `${Math.round(100 * question.chance)}% likely to be the same; ${plural(question.photos, "photo depends", "photos depend")} on it. ${question.stop}`;
  for (const button of find("words").children) button.disabled = state.read_only;
}

const placeOf = (number) => state.strips.findIndex((each) => each.number === number);
const place = (strip) => placeOf(strip.number);
const what = (strip, photos) => (photos.length ? plural(photos.length, "photo") : strip.label || "these photos");
const undo = () => state?.progress.steps && say({ do: "undo" }, changed(state.strips), "Taken back.");

/** Finds the first strip that was not like this before. */
function changed(before) {
  const facts = (strip) => [strip.number, strip.label, strip.size, strip.state].join("\n"), known = new Set(before.map(facts));
  return (after) => after.findIndex((strip) => !known.has(facts(strip)));
}

/** About the chosen photos of a strip, else all of it; photos in no group must be chosen. */
function about(strip) {
  const photos = chosen(strip.number);
  if (!photos.length && strip.number < 0) {
    toast("Choose some of these photos first.");
    return null;
  }
  return photos.length ? { photos } : { group: strip.number };
}

function tell(word, strip, done, more = {}) {
  const subject = about(strip);
  if (!subject) return;
  const at = place(strip);
  chooseNothing();
  say({ do: word, ...subject, ...more }, at, done);
}

const act = {
  name: (strip, name) => name.trim() && tell("name", strip, `${what(strip, chosen(strip.number))}: ${name.trim()}`, { name }),
  split: (strip) => tell("split", strip, `${strip.label || "Photos"} divided`),
  out: (strip) => tell("out", strip, `${what(strip, chosen(strip.number))} taken out`),
  aside: (strip) => tell("aside", strip, `${what(strip, chosen(strip.number))}: not sure`),
  merge: (strip) => {
    if (strip.number < 0) return toast("Photos in no group have nothing to merge: choose some and name them.");
    if (merging === null) merging = strip.number;
    else if (merging === strip.number) merging = null;
    else return say({ do: "merge", group: merging, other: strip.number }, Math.min(place(strip), placeOf(merging)), `Merged with ${strip.label}`);
    drawStrips();
    focusStrip(place(strip));
    return merging === null ? toast("Nothing is merged.") : toast("Go to the other group and press m there, or its button Merge.");
  },
  look: (strip, photo) => {
    if (!strip) return state?.question && lookAtPair(state.question.left, state.question.right);
    const row = photo?.dataset.row ?? chosen(strip.number)[0] ?? strip.photos[0].row;
    openStrip(strip.number);
    drawStrips();
    return lookAt(find("strips").querySelector(`[data-row="${row}"]`));
  },
  guess: (strip, which) => (strip.names[which] ? act.name(strip, strip.names[which]) : toast("No such name is suggested here.")),
  answer: (word) => {
    find("look").close();
    return state.question && say({ do: word }, null, { same: "Same", different: "Different", unsure: "Not sure" }[word]);
  },
  undo,
  nothing: () => {
    merging = null;
    chooseNothing();
    if (state) drawStrips();
  },
  help: () => find("help").showModal(),
};

function wire() {
  find("undo").addEventListener("click", undo);
  find("help-open").addEventListener("click", act.help);
  find("level").addEventListener("input", sayLevel);
  find("level").addEventListener("change", () => say({ do: "level", fineness: state.levels[find("level").value].fineness }, null, "Groups of another level"));
  for (const words of ["words", "look-words"]) {
    find(words).addEventListener("click", (event) => {
      const button = event.target.closest("button");
      if (button) act.answer(button.dataset.word);
    });
  }
  find("copy").addEventListener("click", () => navigator.clipboard.writeText(find("command").textContent).then(() => toast("Copied."), () => toast("The browser does not allow it: copy the line by hand.")));
  find("more").addEventListener("click", () => { count += MORE; load(count - MORE); });
  listenToKeys(act, (element) => state?.strips.find((strip) => strip.number === numberOf(element)) ?? null);
}

takeToken();
wire();
load(0, { preventScroll: true });
