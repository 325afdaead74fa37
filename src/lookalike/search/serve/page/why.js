// Why a hit was found: both pictures lit where their similarity comes from, and numbers on the places that match.

import { whyOf } from "./api.js";
import { nameOf } from "./cards.js";
import { find, make } from "./dom.js";
import { thumbnail } from "./pictures.js";
import { imageOf } from "./query.js";

const DARKEST = 0.82; // over places that give nothing, or speak against it
const percent = (share) => `${share * 100}%`;

/** A pane over the picture, one pixel for each place, darker where the place gives less; the browser smooths it. */
function pane({ values, view: [left, top, width, height] }) {
  const most = Math.max(...values.flat(), 1e-9);
  const canvas = make("canvas", { width: values[0].length, height: values.length, "aria-hidden": "true" });
  const pixels = new ImageData(canvas.width, canvas.height);
  values.flat().forEach((value, place) => { pixels.data[4 * place + 3] = 255 * DARKEST * (1 - Math.max(0, value) / most); });
  canvas.getContext("2d").putImageData(pixels, 0, 0);
  Object.assign(canvas.style, { left: percent(left), top: percent(top), width: percent(width), height: percent(height) });
  return canvas;
}

function dot([x, y], number) {
  const element = make("i", { "aria-hidden": "true" }, String(number));
  Object.assign(element.style, { left: percent(x), top: percent(y) });
  return element;
}

function lit(image, heat, places, caption) {
  const stage = make("div", { class: "lit" }, image, pane(heat), ...places.map((place, at) => dot(place, at + 1)));
  const fit = () => stage.style.setProperty("--ratio", String(image.naturalWidth / image.naturalHeight || 1));
  image.addEventListener("load", fit);
  fit();
  return make("figure", {}, stage, make("figcaption", {}, caption));
}

function matchWords({ similarity, matches }) {
  const share = matches.reduce((sum, match) => sum + match.share, 0) / similarity;
  if (!matches.length || !(share > 0)) return "No two places match in particular.";
  return `Equal numbers mark places that match best; together they give ${Math.max(1, Math.round(100 * share))} % of the similarity.`;
}

/** Ask why, and show it; `asked` are the fields that name the query, `example` is what it looks like. */
export async function showWhy(item, asked, example, sources) {
  const why = await whyOf([...asked, ["item", item.id]]);
  const queries = why.matches.map((match) => match.query), hits = why.matches.map((match) => match.hit);
  find("why-title").textContent = `Why ${nameOf(item)} was found`;
  find("why-words").textContent = `${why.words} ${matchWords(why)}`;
  find("why-pictures").replaceChildren(
    lit(imageOf(example, sources, "The query, lit where the similarity comes from"), why.query, queries, "Query"),
    lit(thumbnail(item, `${nameOf(item)}, lit where the similarity comes from`), why.hit, hits, nameOf(item)));
  find("why").showModal();
}
