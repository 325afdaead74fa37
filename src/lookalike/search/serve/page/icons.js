// Small line drawings, so that no font decides what a button looks like.

const PATHS = {
  right: "M4 10.5 8.2 14.5 16 6",
  wrong: "M5 5 15 15 M15 5 5 15",
  plus: "M10 4v12 M4 10h12",
  minus: "M4 10h12",
  maybe: "M4 11.5c2-3 4-3 6-1s4 2 6-1",
  unknown: "M7 7.4a3 3 0 1 1 4.4 2.7c-1 .6-1.4 1.1-1.4 2.1 M10 15.4v.2",
  why: "M9 4a5 5 0 1 0 0 10a5 5 0 1 0 0-10 M12.8 12.8 17 17",
  swap: "M4 7h11 M12 4l3 3-3 3 M16 13H5 M8 10l-3 3 3 3",
};
const SPACE = "http://www.w3.org/2000/svg";

export function icon(name) {
  const drawing = document.createElementNS(SPACE, "svg");
  drawing.setAttribute("viewBox", "0 0 20 20");
  drawing.setAttribute("aria-hidden", "true");
  drawing.setAttribute("class", "icon");
  const path = document.createElementNS(SPACE, "path");
  path.setAttribute("d", PATHS[name]);
  drawing.append(path);
  return drawing;
}
