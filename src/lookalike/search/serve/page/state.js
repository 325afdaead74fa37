// What is being asked, as a plain object and as an address, so that back, forward and links work.

export const FIRST = 12; // hits at first, and more with every "Show more"
const CONDITION = /^\s*([^=!<>]+?)\s*(<=|>=|!=|=|<|>)\s*([^]*?)\s*$/;

/** examples: [{ item: id } or { photo: number }, each with `not`], box: [x, y, width, height] or null. */
export const nothing = () => ({ examples: [], box: null, where: [], group: "", k: FIRST });

export function fromAddress(search) {
  const query = new URLSearchParams(search);
  const examples = (name, not) => query.getAll(name).map((item) => ({ item, not }));
  const k = Number(query.get("k"));
  return {
    ...nothing(),
    examples: [...examples("item", false), ...examples("not", true)],
    where: query.getAll("where"),
    group: query.get("group") ?? "",
    k: Number.isInteger(k) && k > 0 ? k : FIRST,
  };
}

/** The address of a state. Photos are not in it: they live in this tab only. */
export function asAddress(state) {
  const query = new URLSearchParams();
  for (const example of state.examples) if ("item" in example) query.append(example.not ? "not" : "item", example.item);
  if (state.examples.length) for (const condition of state.where) query.append("where", condition);
  if (state.group && state.examples.length) query.set("group", state.group);
  if (state.k !== FIRST && state.examples.length) query.set("k", state.k);
  return String(query) ? `/?${query}` : "/";
}

export const positive = (state) => state.examples.filter((example) => !example.not);

/** A condition of the server's grammar as { column, operator, values }, or null. */
export function read(condition) {
  const match = CONDITION.exec(condition);
  if (!match) return null;
  let value = match[3];
  try {
    value = JSON.parse(value);
  } catch { /* a bare word is a text */ }
  return { column: match[1], operator: match[2], values: Array.isArray(value) ? value : [value] };
}

/** Names that the grammar cannot say are shown, but cannot be filtered by. */
export const sayable = (column) => column.trim() === column && column !== "" && !/[=!<>]/.test(column);

export const oneOf = (column, values) => `${column}=${JSON.stringify(values.length === 1 ? values[0] : values)}`;

/** A condition as people read it. */
export function inWords(condition) {
  const parsed = read(condition);
  if (!parsed) return condition;
  const words = parsed.values.map((value) => (value === null ? "none" : String(value))).join(", ");
  const signs = { "=": ":", "<=": " ≤", ">=": " ≥", "!=": " ≠", "<": " <", ">": " >" };
  return `${parsed.column}${signs[parsed.operator]} ${words}`;
}
