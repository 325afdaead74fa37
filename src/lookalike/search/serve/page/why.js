// Why a hit was found: both pictures lit where their similarity comes from.

import { whyOf } from "./api.js";
import { titleOf } from "./cards.js";
import { find, make } from "./dom.js";
import { thumbnail } from "./pictures.js";
import { imageOf } from "./query.js";

const DARKEST = 0.7; // over places that give nothing, or speak against it
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

function lit(image, heat, caption) {
  const stage = make("div", { class: "lit" }, image, pane(heat));
  const fit = () => stage.style.setProperty("--ratio", String(image.naturalWidth / image.naturalHeight || 1));
  image.addEventListener("load", fit);
  fit();
  return make("figure", {}, stage, make("figcaption", {}, caption));
}

/** Ask why, and show it; `asked` are the fields that name the query, `example` is what it looks like. */
export async function showWhy(hit, asked, example, sources) {
  const { item, photos = [] } = hit;
  const why = await whyOf([...asked, ["item", item.id]]);
  find("why-title").textContent = `Why ${titleOf(hit)} was found`;
  find("why-words").textContent = photos.length < 2 ? why.words
    : `${why.words} This is the best of the ${photos.length} photos whose mean similarity ranked it.`;
  find("why-pictures").replaceChildren(
    lit(imageOf(example, sources, "The query, highlighted where the similarity comes from"), why.query, "Query"),
    lit(thumbnail(item, `${titleOf(hit)}, highlighted where the similarity comes from`), why.hit, titleOf(hit)));
  find("why").showModal();
}
