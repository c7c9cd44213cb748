// The API: one function for every request, and what went wrong as an error that pages can show.

/** What the service said no to. `errors` are {pointer, detail}. `status` is 0 where it did not answer. */
export class ApiError extends Error {
  constructor(status, { title = "", detail = "", errors = [] } = {}) {
    super(detail || title);
    Object.assign(this, { status, title, detail: detail || title, errors });
  }
}

let csrf = null;

/** The second word of the session, which goes with every change. */
export const setCsrf = (word) => {
  csrf = word;
};

const request = async (method, path, { body = undefined, signal = undefined, headers = {} } = {}) => {
  const sent = { Accept: "application/json", ...headers };
  if (body !== undefined) sent["Content-Type"] = "application/json";
  if (csrf !== null && method !== "GET") sent["X-CSRF-Token"] = csrf;
  let answer;
  try {
    answer = await fetch(path, {
      method,
      headers: sent,
      body: body === undefined ? undefined : JSON.stringify(body),
      signal,
      cache: "no-store",
    });
  } catch (fault) {
    if (fault.name === "AbortError") throw fault;
    throw new ApiError(0, { title: "The service does not answer", detail: "It may have been stopped, or the network is down." });
  }
  if (answer.status === 204) return null;
  const told = await answer.json().catch(() => null);
  if (!answer.ok) throw new ApiError(answer.status, told ?? { title: `The service answered ${answer.status}` });
  return told;
};

export const get = (path, signal) => request("GET", path, { signal });
export const post = (path, body, headers = {}) => request("POST", path, { body, headers });
export const patch = (path, body) => request("PATCH", path, { body });
export const put = (path, body) => request("PUT", path, { body });
export const remove = (path) => request("DELETE", path);

/** What is there, or null where there is no such thing. */
export const getIfThere = async (path, signal) => {
  try {
    return await get(path, signal);
  } catch (fault) {
    if (fault.status === 404) return null;
    throw fault;
  }
};

/** A path with a query of those values that are there. */
export const withQuery = (path, values) => {
  const query = new URLSearchParams(Object.entries(values).filter(([, value]) => value));
  return query.size > 0 ? `${path}?${query}` : path;
};

/** A word that nobody else has: what was asked for twice with it is done once. */
export const onceKey = () => [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
