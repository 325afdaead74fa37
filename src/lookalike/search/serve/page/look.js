// Photos, large: one of a strip, with those before and after it, or both of the question.

import { find, plural } from "./dom.js";
import { thumbnail } from "./pictures.js";

let photos = []; // the buttons of a strip
let at = 0;

const large = (address, name) => thumbnail({ thumbnail: `${address}&large=true` }, name);

/** The photo of a button in a strip; arrows go on, and Space chooses it. */
export function lookAt(photo) {
  photos = [...photo.parentElement.querySelectorAll(".photo")];
  show(photos.indexOf(photo));
  open("look-choose");
}

/** Both photos of the question, and the buttons that answer it. */
export function lookAtPair(...pair) {
  photos = [];
  find("look-picture").replaceChildren(...pair.map((photo) => large(photo.thumbnail, photo.name)));
  find("look-name").textContent = pair.map((photo) => photo.name).join(" and ");
  open("look-close");
}

function open(first) {
  find("look-steps").hidden = !photos.length;
  find("look-words").hidden = photos.length > 0;
  find("look").showModal();
  find(first).focus();
}

function show(place) {
  at = Math.min(photos.length - 1, Math.max(0, place));
  const photo = photos[at];
  find("look-picture").replaceChildren(large(photo.dataset.address, photo.title));
  find("look-name").textContent = photo.ariaLabel;
  sayChosen();
}

function sayChosen() {
  const chosen = photos.filter((photo) => photo.ariaPressed === "true").length;
  find("look-choose").setAttribute("aria-pressed", photos[at].ariaPressed);
  find("look-chosen").textContent = chosen ? `${plural(chosen, "photo")} chosen` : "";
}

find("look-before").addEventListener("click", () => show(at - 1));
find("look-after").addEventListener("click", () => show(at + 1));
find("look-choose").addEventListener("click", () => { photos[at].click(); sayChosen(); });
find("look").addEventListener("keydown", (event) => {
  const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  if (step && photos.length) show(at + step);
  else if (event.key === "v") find("look").close();
});
find("look").addEventListener("close", () => photos[at]?.focus());
