// The pictures of this tab: items that were seen, photos that were dropped; and a state as fields of a request.

import { itemOf, picture } from "./api.js";
import { positive } from "./state.js";

const KEPT = 20; // photos that back and forward find again
export const sources = { items: new Map(), photos: new Map() };
let last = 0;

export const remember = (items) => items.forEach((item) => item && sources.items.set(item.id, item));

/** Keep a photo; the example that stands for it. */
export function keepPhoto(file) {
  last += 1;
  sources.photos.set(last, { file, name: file.name || "photo", url: URL.createObjectURL(file) });
  if (sources.photos.size > KEPT) {
    const [oldest] = sources.photos.keys();
    URL.revokeObjectURL(sources.photos.get(oldest).url);
    sources.photos.delete(oldest);
  }
  return { photo: last, not: false };
}

export const hasPhotos = (state) => state.examples.every((example) => !("photo" in example) || sources.photos.has(example.photo));

/** Items that an address names and nobody has seen yet. */
export async function fetchItems(state) {
  const unknown = state.examples.filter((example) => "item" in example && !sources.items.has(example.item));
  remember(await Promise.all(unknown.map(({ item }) => itemOf(item))));
}

/** What has to be sent as a picture: a photo, or an item that is searched inside a box. */
async function photoOf(example, state) {
  if ("photo" in example) return sources.photos.get(example.photo).file;
  return state.box ? picture(sources.items.get(example.item).thumbnail) : null;
}

const boxOf = (state) => (state.box ? [["box", state.box.join(",")]] : []);

export async function searchFields(state, most) {
  const result = [];
  for (const example of state.examples) {
    const photo = await photoOf(example, state);
    result.push([`${example.not ? "not_" : ""}${photo ? "image" : "item"}`, photo ?? example.item]);
  }
  result.push(...boxOf(state), ...state.where.map((condition) => ["where", condition]));
  if (state.group) result.push(["group", state.group]);
  return [...result, ["k", Math.min(state.k, most)]];
}

/** The server keeps no query, so a photo is sent again with its mark; of several examples the first one counts. */
export async function queryFields(state) {
  const [example] = positive(state);
  const photo = await photoOf(example, state);
  return photo ? [["image", photo], ...boxOf(state)] : [["query_item", example.item]];
}
