// Elements made in code. Texts are set as text, never as HTML: labels, ids and columns come from anywhere.

export const find = (id) => document.getElementById(id);

export function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "on") for (const [kind, listener] of Object.entries(value)) element.addEventListener(kind, listener);
    else if (name === "data") Object.assign(element.dataset, value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

export const button = (name, action, properties = {}) =>
  make("button", { type: "button", ...properties, on: { click: action } }, name);

export const number = (value) => value.toLocaleString("en");

export const plural = (count, noun, several = `${noun}s`) => `${number(count)} ${count === 1 ? noun : several}`;

/** A name that may break after what joins its words, as in file names. */
export const breakable = (name) => name.split(/(?<=[_/.-])/).flatMap((part, place) => (place ? [make("wbr"), part] : [part]));
