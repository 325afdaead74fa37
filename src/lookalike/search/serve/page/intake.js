// How a photo gets in: dropped, pasted, chosen or taken; too large a one is made smaller before it is sent.

import { find } from "./dom.js";

const SIDE = 2048; // of a photo that was made smaller

const imageIn = (transfer) => [...(transfer?.files ?? [])];

export function listen(receive, add) {
  for (const input of document.querySelectorAll("input.choose")) {
    input.addEventListener("change", () => hand(input, receive));
  }
  find("add-photo").addEventListener("change", (event) => hand(event.target, add));
  document.addEventListener("paste", (event) => {
    const files = imageIn(event.clipboardData);
    if (!files.length) return;
    event.preventDefault();
    receive(files);
  });
  listenToDrops(receive);
}

function hand(input, receiver) {
  const files = [...input.files];
  input.value = ""; // so that choosing the same file again counts
  if (files.length) receiver(files);
}

function listenToDrops(receive) {
  const overlay = find("overlay");
  let depth = 0; // dragenter and dragleave come for every element on the way
  const holdsFiles = (event) => [...(event.dataTransfer?.types ?? [])].includes("Files");
  const show = (change) => {
    depth = change === 0 ? 0 : Math.max(0, depth + change);
    overlay.hidden = depth === 0;
  };
  document.addEventListener("dragenter", (event) => holdsFiles(event) && show(1));
  document.addEventListener("dragleave", (event) => holdsFiles(event) && show(-1));
  document.addEventListener("dragover", (event) => holdsFiles(event) && event.preventDefault());
  document.addEventListener("drop", (event) => {
    if (!holdsFiles(event)) return;
    event.preventDefault();
    show(0);
    const files = imageIn(event.dataTransfer);
    if (files.length) receive(files);
  });
}

/** The photo as it can be sent. What the browser cannot read is left as it is: the server says what is wrong. */
export async function sendable(file, { body, pixels }) {
  const bitmap = await createImageBitmap(file).catch(() => null);
  if (!bitmap) return file;
  const { width, height } = bitmap;
  const scale = SIDE / Math.max(width, height);
  if ((file.size < body * 0.95 && width * height <= pixels) || scale >= 1) {
    bitmap.close();
    return file;
  }
  const canvas = Object.assign(document.createElement("canvas"), {
    width: Math.max(1, Math.round(width * scale)), height: Math.max(1, Math.round(height * scale)),
  });
  canvas.getContext("2d").drawImage(bitmap, 0, 0, canvas.width, canvas.height);
  bitmap.close();
  const smaller = await new Promise((done) => canvas.toBlob(done, "image/jpeg", 0.92));
  return smaller ? new File([smaller], file.name, { type: "image/jpeg" }) : file;
}
