// Who is signed in, and what they may do.

import { get, post, remove, setCsrf } from "/page/api.js";

let current = null;

const keep = (session) => {
  current = session;
  setCsrf(session?.csrf ?? null);
  return session;
};

/** Asks the service who one is; null for nobody. */
export const load = async () => keep(await get("/page/session"));

export const signIn = async (key) => keep(await post("/v1/session", { key }));

export const signOut = async () => {
  await remove("/v1/session");
  keep(null);
};

/** Forgets a session that is over. */
export const forget = () => keep(null);

export const session = () => current;

export const may = (scope) => current !== null && current.scopes.includes(scope);
