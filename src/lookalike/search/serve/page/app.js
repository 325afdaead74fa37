// The page: one state, shown; every action changes it and asks the server again.

import { ask, hasToken, itemOf, Refusal, search, setToken, takeToken } from "./api.js";
import { nameOf, showMarks } from "./cards.js";
import { find } from "./dom.js";
import { showChips, showFilters, showGroups } from "./filters.js";
import { listen, sendable } from "./intake.js";
import { focusCard, listenToKeys } from "./keys.js";
import { setMark, undo } from "./marks.js";
import { gone, hideNotice, notice, toast, waiting } from "./notice.js";
import { beginBox, forget, showQuery } from "./query.js";
import { endBusy, showAnswer, showBusy, showNothing } from "./results.js";
import { fetchItems, hasPhotos, keepPhoto, queryFields, remember, searchFields, sources } from "./sources.js";
import { showFacts, showStart } from "./start.js";
import { asAddress, FIRST, fromAddress, nothing, oneOf, positive } from "./state.js";

const NEED = "One example has to say what it looks like.";
let index = null;
let state = nothing();
let answer = null;
let request = new AbortController();

/** Change what is asked, remember it in the history, and ask; `focus` is the card that the keys go on from. */
function go(change, { focus = 0 } = {}) {
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
  for (const file of files) photos.push(keepPhoto(await sendable(file, share)));
  go({ examples: [...before, ...photos], box: null, k: FIRST });
  scrollTo(0, 0);
}

const act = {
  home: () => go(nothing()),
  moreLike: (item) => start({ examples: [{ item: item.id, not: false }], box: null, k: FIRST }, item),
  showClass: (label, example = index.sample) =>
    start({ ...nothing(), examples: [{ item: example.id, not: false }], where: [oneOf("label", [label])] }, example),
  add: (item, not) => {
    remember([item]);
    change([...state.examples.filter((example) => example.item !== item.id), { item: item.id, not }], 0);
  },
  swap: (place) => change(state.examples.map((example, at) => (at === place ? { ...example, not: !example.not } : example))),
  drop: (place) => change(state.examples.filter((_, at) => at !== place)),
  box: (box) => go({ box, k: FIRST }, { focus: null }),
  where: (where) => go({ where }, { focus: null }),
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

async function marking(work) {
  try {
    await work();
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    toast(`The mark was not kept. ${error.message}`);
  }
}

/** A class by its name, or an item by its id. */
async function look(text) {
  const known = index.labels.find(({ label }) => label === text);
  if (known) return act.showClass(text, known.example);
  try {
    return act.moreLike(await itemOf(text));
  } catch (error) {
    if (!(error instanceof Refusal) || error.status !== 404) return explain(error, () => look(text));
  }
  const most = index.labels.length < index.classes ? `one of the ${index.labels.length} largest classes` : "a class";
  return notice("Nothing has that name", `“${text}” is neither the id of an item nor ${most}.`, [["Close", hideNotice]]);
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
  state = nothing();
  history.replaceState(state, "", "/");
  toast("The photo is no longer here: choose it again.");
}

function wire() {
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
