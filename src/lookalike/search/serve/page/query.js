// What is searched for: the picture with its box, and the other examples, for and against.

import { boxOn } from "./box.js";
import { nameOf } from "./cards.js";
import { button, find, make } from "./dom.js";
import { icon } from "./icons.js";
import { thumbnail } from "./pictures.js";

let box = null; // of the large picture
let large = ""; // which example that is

const keyOf = (example) => JSON.stringify(example.item ?? example.photo);

export function imageOf(example, sources, alt) {
  if ("item" in example) return thumbnail(sources.items.get(example.item), alt);
  const image = make("img", { alt, src: sources.photos.get(example.photo).url, draggable: "false" });
  image.addEventListener("error", () => image.replaceWith(make("span", { class: "lost" }, "No picture")), { once: true });
  return image;
}

const nameOfExample = (example, sources) =>
  ("item" in example ? nameOf(sources.items.get(example.item)) : sources.photos.get(example.photo).name);

/** Draw the panel; `sources` has items and photos, `act` has box, swap and drop. */
export function showQuery(state, sources, act) {
  const main = state.examples.find((example) => !example.not);
  const single = state.examples.length === 1;
  if (keyOf(main) !== large) {
    large = keyOf(main);
    const image = imageOf(main, sources, `Query: ${nameOfExample(main, sources)}`);
    const stage = make("div", { class: "stage" }, image);
    box = boxOn(stage, image, act.box);
    const fit = () => {
      stage.style.setProperty("--ratio", String(image.naturalWidth / image.naturalHeight || 1));
      box.show(current.box);
    };
    image.addEventListener("load", fit);
    find("frame").replaceChildren(stage);
  }
  current.box = single ? state.box : null;
  box.show(current.box);
  find("frame").classList.toggle("single", single);
  find("box-tools").hidden = find("box-hint").hidden = !single;
  find("box-clear").hidden = !current.box;
  showExamples(state, sources, act);
}

const current = { box: null }; // known before the picture is

function showExamples(state, sources, act) {
  const several = state.examples.length > 1;
  find("query-title").textContent = several ? "Looks like these" : "Looks like";
  const line = (example, place) => {
    const name = nameOfExample(example, sources);
    const other = example.not ? `${name} is not meant: make it an example for` : `${name} is meant: make it an example against`;
    return make("li", { class: example.not ? "not" : "" }, imageOf(example, sources, name),
      make("span", { class: "name" }, make("b", {}, example.not ? "Not like" : "Like"), " ", name),
      button(icon("swap"), () => act.swap(place), { class: "tool", title: example.not ? "Make it an example for" : "Make it an example against", "aria-label": other }),
      button(icon("wrong"), () => act.drop(place), { class: "tool", title: "Leave it out", "aria-label": `Leave out ${name}` }));
  };
  const inside = find("examples").contains(document.activeElement);
  find("examples").replaceChildren(...(several ? state.examples.map(line) : []));
  if (inside) (find("examples").querySelector("button") ?? find("add-photo")).focus();
}

export const beginBox = () => box?.begin();
export const forget = () => { large = ""; };
