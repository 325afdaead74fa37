// The page: one state, shown; every action changes it and asks the server again.

import { ask, hasToken, itemOf, labels, Refusal, search, setToken, takeToken } from "./api.js";
import { nameOf, showMarks } from "./cards.js";
import { find } from "./dom.js";
import { showChips, showFilters, showGroups } from "./filters.js";
import { listen, sendable } from "./intake.js";
import { focusCard, listenToKeys } from "./keys.js";
import { recall, setMark, sign, signature, undo } from "./marks.js";
import { gone, hideNotice, notice, toast, waiting } from "./notice.js";
import { beginBox, forget, showQuery } from "./query.js";
import { endBusy, showAnswer, showBusy, showNothing } from "./results.js";
import { fetchItems, hasPhotos, keepPhoto, queryFields, remember, searchFields, sources } from "./sources.js";
import { findClasses, showFacts, showReturn, showStart, suggest } from "./start.js";
import { asAddress, FIRST, fromAddress, nothing, oneOf, positive } from "./state.js";
import { showWhy } from "./why.js";

const NEED = "One example has to say what it looks like.";
let index = null;
let state = nothing();
let answer = null;
let left = null; // the search that Esc or the name of the page has left
let request = new AbortController();

/** Change what is asked, remember it in the history, and ask; `focus` is the card that the keys go on from. */
function go(change, { focus = 0 } = {}) {
  if (state.examples.length) left = state;
  state = { ...state, ...change };
  history.pushState(state, "", asAddress(state));
  return show(focus);
}

function showView(asking) {
  find("start").hidden = asking || !index;
  find("results").hidden = !asking;
}

async function show(focus = null) {
  request.abort();
  request = new AbortController();
  hideNotice();
  const asking = positive(state).length > 0;
  const inside = find("results").contains(document.activeElement);
  showView(asking);
  if (asking) return run(request.signal, focus);
  answer = null;
  document.title = `${index.name} · lookalike`;
  showNothing();
  forget();
  showReturn(left && hasPhotos(left) ? left : null, sources, () => go(left));
  if (inside) find("main").focus();
  return undefined;
}

async function run(signal, focus) {
  showBusy(state.k);
  try {
    await fetchItems(state);
    if (signal.aborted) return;
    showAsked();
    const result = await search(await searchFields(state, index.limits.k), signal);
    if (signal.aborted) return;
    remember(result.hits.map((hit) => hit.item));
    answer = result;
    showAnswer(answer, state, index, act);
    recall(answer.query).then(drawMarks, () => {}); // without them the hits are still right
    if (focus !== null) focusCard(focus, { preventScroll: focus === 0 });
  } catch (error) {
    if (error.name !== "AbortError" && !signal.aborted) explain(error, () => show(focus));
  }
}

function showAsked() {
  const [first] = positive(state);
  document.title = `Like ${"item" in first ? nameOf(sources.items.get(first.item)) : "a photo"} · ${index.name}`;
  showQuery(state, sources, act);
  showFilters(index, state.where, act.where);
  showChips(state.where, act.where);
  showGroups(index, state.group);
}

/** Say what happened and what to do. */
function explain(error, again) {
  if (!(error instanceof Refusal)) throw error;
  endBusy("Waiting for the server…");
  if (error.status === 401) return askForToken(again);
  if (error.status === 0) return gone(again);
  if (error.status === 429 || error.status === 503) return waiting(error.message, error.wait || 2, again);
  showNothing();
  const photo = [413, 415].includes(error.status) || ([400, 422].includes(error.status) && !state.where.length && !state.group);
  if (photo && state.examples.some((example) => "photo" in example)) {
    state = nothing();
    history.replaceState(state, "", "/");
    show();
    return notice("This photo cannot be searched for", error.message, [["Close", hideNotice]]);
  }
  showChips(state.where, act.where);
  const way = state.where.length ? ["Remove all filters", () => act.where([])] : ["Back to the start", act.home];
  return notice("This cannot be answered", error.message, [way]);
}

function askForToken(again) {
  const form = find("token"), field = find("token-field");
  find("start").hidden = find("results").hidden = true;
  form.hidden = false;
  if (hasToken()) notice("That is not the token", "The server refused it. Check it and type it again.");
  field.value = "";
  field.focus();
  form.onsubmit = (event) => {
    event.preventDefault();
    setToken(field.value);
    form.hidden = true;
    again();
  };
}

async function receive(files, before = []) {
  if (!index) return;
  const share = { ...index.limits, body: index.limits.body / (files.length + before.length) };
  const photos = [];
  find("forgotten").hidden = true;
  for (const file of files) photos.push(keepPhoto(await sendable(file, share)));
  go({ examples: [...before, ...photos], box: null, k: FIRST });
  scrollTo(0, 0);
}

/** A request that belongs to one hit; where it is refused, the page stays as it is. */
async function beside(work, failed = "") {
  try {
    await work();
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    toast(`${failed}${error.message}`);
  }
}

const marking = (work) => beside(work, "The mark was not kept. ");

const act = {
  home: () => go(nothing()),
  moreLike: (item) => start({ examples: [{ item: item.id, not: false }], box: null, k: FIRST }, item),
  showClass: ({ label, items, example }) => (items === 1 ? act.moreLike(example) // alone in its class, it would find nothing
    : start({ ...nothing(), examples: [{ item: example.id, not: false }], where: [oneOf("label", [label])] }, example)),
  add: (item, not) => {
    remember([item]);
    change([...state.examples.filter((example) => example.item !== item.id), { item: item.id, not }], 0);
  },
  swap: (place) => change(state.examples.map((example, at) => (at === place ? { ...example, not: !example.not } : example))),
  drop: (place) => change(state.examples.filter((_, at) => at !== place)),
  box: (box) => go({ box, k: FIRST }, { focus: null }),
  where: (where) => go({ where }, { focus: null }),
  why: (hit) => beside(async () => showWhy(hit, await queryFields(state), positive(state)[0], sources)),
  mark: (item, right) => marking(async () => setMark({ query: answer.query, asked: await queryFields(state), item }, right, drawMarks)),
};

function start(change, item) {
  remember([item]);
  go(change);
  scrollTo(0, 0);
}

function change(examples, focus = null) {
  if (examples.some((example) => !example.not)) go({ examples, box: null }, { focus });
  else toast(NEED);
}

const drawMarks = () => answer && showMarks(find("cards"), answer.query);

/** A class by its name, an item by its id, or the classes with this in their names. */
async function look(text) {
  try {
    const { found, labels: [first] } = await labels(text, 0, 1);
    if (first && (first.label === text || found === 1)) return act.showClass(first);
    const item = await itemOf(text).catch((error) => {
      if (error instanceof Refusal && error.status === 404) return null;
      throw error;
    });
    if (item) return act.moreLike(item);
    if (!found) return notice("Nothing has that name", `“${text}” is neither the id of an item nor part of the name of a class.`, [["Close", hideNotice]]);
    act.home();
    return findClasses(text, act, true);
  } catch (error) {
    return explain(error, () => look(text));
  }
}

async function begin() {
  try {
    index = await ask("/v1/index");
  } catch (error) {
    return explain(error, begin);
  }
  remember([index.sample, ...index.newest, ...index.labels.map(({ example }) => example)]);
  showFacts(index);
  showStart(index, act);
  find("filters").open = matchMedia("(min-width: 56rem)").matches;
  return show();
}

function restore(saved) {
  state = saved ?? fromAddress(location.search);
  if (hasPhotos(state)) return;
  state = nothing(); // photos live in the memory of a page: a reload forgets them
  history.replaceState(state, "", "/");
  find("forgotten").hidden = false;
}

function wire() {
  find("signature").value = signature();
  find("signature").addEventListener("change", (event) => sign(event.target.value));
  find("find-field").addEventListener("input", (event) => index && suggest(event.target.value.trim()));
  find("class-find").addEventListener("input", (event) => findClasses(event.target.value.trim(), act));
  listen((files) => receive(files), (files) => receive(files, state.examples));
  addEventListener("popstate", (event) => { restore(event.state); if (index) show(); });
  find("home").addEventListener("click", (event) => { event.preventDefault(); if (index) act.home(); });
  find("find").addEventListener("submit", (event) => {
    event.preventDefault();
    const text = find("find-field").value.trim();
    if (text && index) look(text);
  });
  find("filter-form").addEventListener("submit", (event) => event.preventDefault());
  find("group").addEventListener("change", (event) => go({ group: event.target.value }, { focus: null }));
  find("more").addEventListener("click", () => go({ k: state.k + FIRST }, { focus: answer.hits.length }));
  find("box-make").addEventListener("click", beginBox);
  find("box-clear").addEventListener("click", () => act.box(null));
  listenToKeys({
    mark: (card, right) => index.read_only || act.mark(sources.items.get(card.dataset.id), right),
    undo: () => index && !index.read_only && marking(() => undo(drawMarks)),
    escape: () => (find("notice").hidden ? index && state.examples.length && act.home() : hideNotice()),
  });
}

takeToken();
restore(history.state);
wire();
begin();
