// A box on the query picture: drawn, moved and resized with the pointer or with the keys. Kept in shares of the picture.

import { make } from "./dom.js";

const GRIP = 16; // pixels around a corner that take hold of it
const LEAST = 8; // pixels of a side; less is a click
const STEP = 0.04;
const HINT = "Arrow keys move it, with Shift they resize it, Enter searches inside it, Escape removes it.";
const clamp = (value, low, high) => Math.min(high, Math.max(low, value));

/** Watch a stage with its image; `changed` is told [x, y, width, height] in pixels of the picture, or null. */
export function boxOn(stage, image, changed) {
  let share = null; // [left, top, right, bottom]
  const element = make("div", { class: "box", role: "group", tabindex: "0", "aria-label": `Box. ${HINT}`, hidden: true },
    ...["nw", "ne", "sw", "se"].map((corner) => make("i", { class: corner })));
  stage.append(element);

  const draw = () => {
    element.hidden = share === null;
    stage.classList.toggle("boxing", share !== null);
    if (!share) return;
    const [left, top, right, bottom] = share.map((value) => `${value * 100}%`);
    Object.assign(element.style, { left, top, right: `calc(100% - ${right})`, bottom: `calc(100% - ${bottom})` });
  };
  const set = (next) => { share = next; draw(); };
  const tell = () => {
    if (!share) return changed(null);
    const { naturalWidth: width, naturalHeight: height } = image;
    const [left, top, right, bottom] = share;
    const x = Math.round(left * width), y = Math.round(top * height);
    return changed([x, y, Math.max(1, Math.round(right * width) - x), Math.max(1, Math.round(bottom * height) - y)]);
  };
  const place = (event) => {
    const area = stage.getBoundingClientRect();
    return [clamp((event.clientX - area.left) / area.width, 0, 1), clamp((event.clientY - area.top) / area.height, 0, 1)];
  };

  stage.addEventListener("pointerdown", (event) => {
    if (event.button !== 0 || (event.pointerType === "touch" && !share)) return; // a finger scrolls until there is a box
    event.preventDefault();
    const before = share, start = place(event), move = gesture(share, start, stage.getBoundingClientRect());
    stage.setPointerCapture(event.pointerId);
    const drag = (next) => set(move(place(next)));
    const end = (last) => {
      stage.removeEventListener("pointermove", drag);
      stage.removeEventListener("pointerup", end);
      stage.removeEventListener("pointercancel", end);
      if (last.type === "pointercancel") return set(before);
      const area = stage.getBoundingClientRect();
      const drawn = share && (share[2] - share[0]) * area.width >= LEAST && (share[3] - share[1]) * area.height >= LEAST;
      if (!drawn) set(null);
      if (String(share) !== String(before)) tell();
    };
    stage.addEventListener("pointermove", drag);
    stage.addEventListener("pointerup", end);
    stage.addEventListener("pointercancel", end);
  });

  element.addEventListener("keydown", (event) => {
    const ways = { ArrowLeft: [-STEP, 0], ArrowRight: [STEP, 0], ArrowUp: [0, -STEP], ArrowDown: [0, STEP] };
    if (event.key in ways) set((event.shiftKey ? resized : moved)(share, ...ways[event.key]));
    else if (event.key === "Enter") tell();
    else if (event.key === "Escape") { set(null); tell(); }
    else return;
    event.preventDefault();
    event.stopPropagation();
  });

  return {
    begin: () => { set(share ?? [0.2, 0.2, 0.8, 0.8]); element.focus(); },
    show: (box) => {
      const { naturalWidth: width, naturalHeight: height } = image;
      set(box && width ? [box[0] / width, box[1] / height, (box[0] + box[2]) / width, (box[1] + box[3]) / height] : null);
    },
  };
}

/** What a drag does: take hold of a corner, move the box, or draw a new one. */
function gesture(share, [x, y], area) {
  const near = (a, b, length) => Math.abs(a - b) * length <= GRIP;
  const spanned = (ax, ay) => ([bx, by]) => [Math.min(ax, bx), Math.min(ay, by), Math.max(ax, bx), Math.max(ay, by)];
  if (share) {
    const [left, top, right, bottom] = share;
    const sideways = near(x, left, area.width) ? right : near(x, right, area.width) ? left : null;
    const upright = near(y, top, area.height) ? bottom : near(y, bottom, area.height) ? top : null;
    if (sideways !== null && upright !== null) return spanned(sideways, upright);
    if (x > left && x < right && y > top && y < bottom) return ([nx, ny]) => moved(share, nx - x, ny - y);
  }
  return spanned(x, y);
}

function moved([left, top, right, bottom], dx, dy) {
  const x = clamp(dx, -left, 1 - right), y = clamp(dy, -top, 1 - bottom);
  return [left + x, top + y, right + x, bottom + y];
}

const resized = ([left, top, right, bottom], dx, dy) =>
  [left, top, clamp(right + dx, left + STEP, 1), clamp(bottom + dy, top + STEP, 1)];
