// Queries by day: numbers of the server as a table, and how close each alarm is.

import { ask, takeToken } from "./api.js";

const NAMES = {
  similarity: "Similarity of the best hit", cloud: "Place among the items", marks: "Marks against the promise",
  canaries: "Known pictures",
};
const QUERIES = [
  "The queries of today are not those it was calibrated for",
  "Look at what is asked, then calibrate again with such pictures: until then, answers called sure may be wrong more often than promised.",
];
// what an alarm says and what to do about it, the gravest first
const ALARMS = {
  canaries: [
    "Known pictures are no longer found as themselves",
    "The index is damaged, or its pictures or the network that embeds them have changed: lookalike status INDEX --check looks for damage. Until this is settled, do not rely on any answer.",
  ],
  marks: [
    "Sure answers are marked wrong more often than promised",
    "Look at the marks (lookalike labels): if they are right, calibrate again with pictures such as people ask for. Until then, do not rely on answers called sure.",
  ],
  similarity: QUERIES,
  cloud: QUERIES,
};
const find = (id) => document.getElementById(id);

function cell(content, kind = "td") {
  const made = document.createElement(kind);
  made.append(content);
  return made;
}

const share = (part, whole) => (whole ? `${Math.round((100 * part) / whole)}%` : "");

/** Ten bars, the mean of them at half the height. */
function bars(numbers) {
  const space = "http://www.w3.org/2000/svg", svg = document.createElementNS(space, "svg");
  const total = numbers.reduce((one, other) => one + other, 0);
  svg.setAttribute("viewBox", "0 0 100 20");
  svg.setAttribute("class", "bars");
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", numbers.map((number) => share(number, total)).join(", "));
  numbers.forEach((number, place) => {
    const height = total ? Math.min(20, (100 * number) / total) : 0, bar = document.createElementNS(space, "rect");
    for (const [name, value] of Object.entries({ x: 10 * place, y: 20 - height, width: 8, height })) bar.setAttribute(name, value);
    svg.append(bar);
  });
  return svg;
}

function row(day) {
  const made = document.createElement("tr");
  const answers = Object.values(day.verdicts).reduce((one, other) => one + other, 0);
  const marks = day.sure_right + day.sure_wrong;
  const alarms = Object.entries(day.alarms).map(([name, number]) => `${name} ${number}`).join(", ");
  made.append(
    cell(day.date), cell(answers), cell(share(day.verdicts.sure, answers)), cell(share(day.verdicts.unknown, answers)),
    cell(day.watched ? bars(day.similarities) : ""), cell(day.cloud === null ? "" : day.cloud.toFixed(2)),
    cell(marks ? `${day.sure_right} of ${marks} right` : ""),
    cell(day.canaries ? `${day.canaries - day.canaries_lost} of ${day.canaries} found` : ""), cell(alarms || "none"),
  );
  if (alarms) made.className = "alarm";
  return made;
}

function draw(content) {
  const raised = content.days.at(-1)?.alarms ?? {};
  const alarms = [...new Set(Object.keys(ALARMS).filter((name) => raised[name]).map((name) => ALARMS[name]))];
  find("verdict").textContent = alarms.length ? alarms.map(([what]) => what).join(". ")
    : content.reference ? "Nothing unusual today" : "Nothing to compare with";
  find("meaning").textContent = alarms.length ? alarms.map(([, advice]) => advice).join(" ")
    : content.reference ? "" : "lookalike calibrate with at least 20 classes also measures what ordinary queries look like.";
  find("promise").textContent = content.promise;
  find("evidence").replaceChildren(...Object.entries(content.evidence).flatMap(([name, value]) => {
    const meter = document.createElement("meter");
    // evidence grows by factors: a quarter of the way is as many factors as each other quarter
    meter.value = value > 0 ? Math.max(0, 1 + Math.log10(value) / 3.3) : 0;
    meter.textContent = value.toPrecision(2);
    return [cell(NAMES[name] ?? name, "dt"), cell(meter, "dd"), cell(value ? value.toPrecision(2) : "0", "dd")];
  }));
  find("days").replaceChildren(...content.days.toReversed().map(row));
}

takeToken();
try {
  draw(await ask("/v1/watch"));
} catch (refusal) {
  find("verdict").textContent = "The server does not show this";
  find("meaning").textContent = `${refusal.message} Give the key on the page of the search, in this tab, and come back.`;
}
