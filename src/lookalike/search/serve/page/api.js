// The server's side of the page: requests with the token, and refusals as sentences.

const KEY = "lookalike token";
let token = "";

/** What the server refused, or that it is not there (status 0). */
export class Refusal extends Error {
  constructor(status, message, wait = 0) {
    super(message);
    Object.assign(this, { status, wait });
  }
}

/** The token comes once in the address (#token=…), which is cleaned, or from this tab's memory. */
export function takeToken() {
  const given = new URLSearchParams(location.hash.slice(1)).get("token");
  if (given !== null) {
    history.replaceState(history.state, "", location.pathname + location.search);
    setToken(given);
  }
  token = sessionStorage.getItem(KEY) ?? "";
}

export function setToken(value) {
  token = value;
  sessionStorage.setItem(KEY, value);
}

export const hasToken = () => token !== "";

async function request(path, options) {
  const headers = { ...options.headers };
  if (token) headers.Authorization = `Bearer ${token}`;
  try {
    return await fetch(path, { ...options, headers, cache: options.cache ?? "no-store" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refusal(0, "The server does not answer.");
  }
}

async function refusalOf(response) {
  const wait = Number(response.headers.get("Retry-After")) || 0;
  const content = await response.json().catch(() => null);
  const message = content?.error?.message ?? `The server answered ${response.status}, which this page does not expect.`;
  return new Refusal(response.status, message, wait);
}

/** The JSON answer of the server; a refusal is thrown. */
export async function ask(path, options = {}) {
  const response = await request(path, options);
  if (!response.ok) throw await refusalOf(response);
  if (response.status === 204) return null;
  try {
    return await response.json();
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refusal(0, "The server broke off in the middle of its answer.");
  }
}

export async function picture(path) {
  const response = await request(path, { cache: "default" });
  if (!response.ok) throw await refusalOf(response);
  return response.blob();
}

/** Pairs of a name and a text or a photo, as a form where there is a photo, else as JSON. */
function posted(fields, lists) {
  if (!fields.some(([, value]) => value instanceof Blob)) {
    const content = Object.fromEntries(lists.map((name) => [name, []]));
    for (const [name, value] of fields) {
      if (lists.includes(name)) content[name].push(value);
      else content[name] = value;
    }
    return { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(content) };
  }
  const body = new FormData();
  for (const [name, value] of fields) {
    if (value instanceof Blob) body.append(name, value, value.name ?? "photo");
    else body.append(name, String(value));
  }
  return { method: "POST", body };
}

export const search = (fields, signal) => ask("/v1/search", { ...posted(fields, ["item", "not_item", "where"]), signal });
export const whyOf = (fields) => ask("/v1/why", posted(fields, []));
export const mark = (fields) => ask("/v1/feedback", posted(fields, []));
export const unmark = (mark) => ask(`/v1/feedback/${mark}`, { method: "DELETE" });
export const marksOf = (query) => ask(`/v1/feedback?${new URLSearchParams({ query })}`);
export const labels = (find, offset, limit) => ask(`/v1/labels?${new URLSearchParams({ find, offset, limit })}`);
export const itemOf = (id) => ask(`/v1/items/${encodeURIComponent(id)}`);
