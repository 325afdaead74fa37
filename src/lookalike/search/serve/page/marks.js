// Right and wrong: a mark on a hit is kept in the index as feedback and can be taken back.

import { mark, marksOf, unmark } from "./api.js";
import { toast } from "./notice.js";

const SIGNED = "lookalike name"; // where this browser remembers who marks
const marks = new Map(); // query and item -> { right, feedback, by, at }
const done = []; // the keys of marks, the latest last: what undo takes back
const pending = new Set(); // marks on their way: a second press waits for its own turn
const keyOf = (query, id) => JSON.stringify([query, id]);

export const markOf = (query, id) => marks.get(keyOf(query, id)) ?? null;
export const signature = () => localStorage.getItem(SIGNED) ?? "";
export const sign = (name) => localStorage.setItem(SIGNED, name.trim());

/** What was marked of a query before, by anybody: it is there again after a reload. */
export async function recall(query) {
  for (const { item, ...known } of (await marksOf(query)).marks) marks.set(keyOf(query, item), known);
}

/** Mark a hit as right or wrong; the same mark again takes it back. `asked` are the fields that name the query. */
export async function setMark({ query, asked, item }, right, changed) {
  const key = keyOf(query, item.id);
  if (pending.has(key)) return undefined;
  pending.add(key);
  try {
    const old = marks.get(key);
    if (old) await remove(key);
    if (old?.right === right) return toast("The mark was taken back.");
    const by = signature();
    const signed = by ? [["by", by]] : [];
    const { feedback } = await mark([...asked, ["query", query], ["item", item.id], ["right", right], ...signed]);
    marks.set(key, { right, feedback, by, at: new Date().toISOString() });
    done.push(key);
  } finally {
    pending.delete(key);
    changed();
  }
  return toast(`${item.label ?? item.id} is marked as ${right ? "right" : "wrong"}.`, "Undo", () => undo(changed).catch((error) => toast(error.message)));
}

export async function undo(changed) {
  const key = done.at(-1);
  if (key === undefined) return toast("There is no mark to take back.");
  await remove(key);
  changed();
  return toast("The mark was taken back.");
}

async function remove(key) {
  await unmark(marks.get(key).feedback);
  marks.delete(key);
  if (done.includes(key)) done.splice(done.lastIndexOf(key), 1);
}
