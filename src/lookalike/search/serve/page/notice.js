// What went wrong and what to do, and small words about what was done.

import { button, find, make } from "./dom.js";

let timer = null;

/** One message at a time, above everything; `actions` are pairs of a name and a function. */
export function notice(title, text, actions = [], extra = null) {
  hideNotice();
  const buttons = actions.map(([name, action], place) => button(name, action, { class: place ? "" : "primary" }));
  find("notice").replaceChildren(
    make("h2", {}, title), make("p", {}, text), ...(extra ? [extra] : []), make("div", { class: "row" }, ...buttons),
  );
  find("notice").hidden = false;
}

export function hideNotice() {
  clearTimeout(timer);
  find("notice").hidden = true;
}

/** The server is busy: count down, then try again. */
export function waiting(text, seconds, again) {
  const count = make("p", { class: "fine", "aria-hidden": "true" });
  notice("The server is busy", `${text} This page tries again by itself.`, [["Try now", again]], count);
  const tick = (left) => {
    if (left <= 0) return again();
    count.textContent = `Again in ${left} s`;
    timer = setTimeout(tick, 1000, left - 1);
    return undefined;
  };
  tick(Math.max(1, Math.ceil(seconds)));
}

/** The server is gone: look for it now and then. */
export function gone(again) {
  const advice = "Start it again with the same command, or check the connection; this page goes on by itself as soon as it answers.";
  notice("The server does not answer", advice, [["Try now", again]]);
  const look = async () => {
    const answers = await fetch("/v1/health", { cache: "no-store" }).then((response) => response.ok, () => false);
    if (find("notice").hidden) return;
    if (answers) again();
    else timer = setTimeout(look, 3000);
  };
  timer = setTimeout(look, 3000);
}

let fading = null;

export function toast(text, name = "", action = null) {
  clearTimeout(fading);
  const box = find("toast");
  box.replaceChildren(make("span", {}, text));
  if (action) box.append(button(name, action));
  box.hidden = false;
  fading = setTimeout(() => { box.hidden = true; }, 8000);
}
