// Thumbnails. Without a token the browser loads them itself; with one the page does, because no cookie carries it.

import { hasToken, picture } from "./api.js";
import { make } from "./dom.js";

const KEPT = 400; // object URLs of thumbnails; the oldest are given back
const urls = new Map();
const seen = new IntersectionObserver((entries) => {
  for (const { isIntersecting, target } of entries) {
    if (!isIntersecting) continue;
    seen.unobserve(target);
    load(target).catch(() => target.dispatchEvent(new Event("error")));
  }
}, { rootMargin: "300px" });

async function load(image) {
  const address = image.dataset.address;
  if (!urls.has(address)) urls.set(address, URL.createObjectURL(await picture(address)));
  image.src = urls.get(address);
  while (urls.size > KEPT) {
    const [oldest] = urls.keys();
    URL.revokeObjectURL(urls.get(oldest));
    urls.delete(oldest);
  }
}

/** The picture of an item; where it cannot be had, words stand in its place. */
export function thumbnail(item, alt = "") {
  const image = make("img", { alt, loading: "lazy", decoding: "async", draggable: "false" });
  if (!item?.thumbnail) return lost(alt);
  image.addEventListener("error", () => image.replaceWith(lost(alt)), { once: true });
  if (hasToken()) {
    image.dataset.address = item.thumbnail;
    seen.observe(image);
  } else {
    image.src = item.thumbnail;
  }
  return image;
}

const lost = (alt) => make("span", { class: "lost", role: alt ? "img" : null, "aria-label": alt || null }, "No picture");
