// The server as one team sees it: typed by the contract, failing as an
// ApiFailure with a sentence for people and the request id to quote.
import createClient, { type Client } from "openapi-fetch";
import { type ApiFailure, failureOf, unreachable } from "./failure.ts";
import type { components, paths } from "./schema.gen.ts";

export type Schemas = components["schemas"];

/** Api sends requests to one team. */
export interface Api extends Client<paths> {
  /** raw is fetch, for streams and forms that the typed methods cannot carry. A request with a token of its own names no team. */
  raw: (path: string, init?: RequestInit) => Promise<Response>;
}

/** newApi makes the Api of a team. Null is for people who are in none yet: the server takes the session's team, if there is one. */
export function newApi(team: string | null): Api {
  const named: Record<string, string> = team === null ? {} : { "X-Team-Id": team };
  const client = createClient<paths>({
    baseUrl: globalThis.location?.origin ?? "",
    credentials: "same-origin",
    headers: named,
    // Looked up at each call, so that a test can stand in for the network.
    fetch: (request) => globalThis.fetch(request),
  });
  const raw = async (path: string, init: RequestInit = {}) => {
    const headers = new Headers(init.headers);
    if (!headers.has("Authorization")) for (const [name, value] of Object.entries(named)) headers.set(name, value);
    let response: Response;
    try {
      response = await globalThis.fetch(path, { credentials: "same-origin", ...init, headers });
    } catch (cause) {
      if (init.signal?.aborted) throw cause;
      throw tell(unreachable(cause));
    }
    if (response.ok) return response;
    throw tell(failureOf(response, await response.json().catch(() => undefined)));
  };
  return { ...client, raw };
}

type Answer<T> = Promise<{ data?: T; error?: unknown; response: Response }>;

type Listener = (failure: ApiFailure) => void;
let heard: Listener = () => {};

/** onFailure is told of every failed call; the shell listens for lost sessions. */
export function onFailure(listener: Listener): void {
  heard = listener;
}

async function settle<T>(answer: Answer<T>): Promise<T> {
  let outcome: Awaited<Answer<T>>;
  try {
    outcome = await answer;
  } catch (cause) {
    if (cause instanceof DOMException && cause.name === "AbortError") throw cause; // nobody wants the answer any more
    throw tell(unreachable(cause));
  }
  if (!outcome.response.ok || outcome.data === undefined) throw tell(failureOf(outcome.response, outcome.error));
  return outcome.data;
}

function tell<T extends Error>(failure: T): T {
  if (failure.name === "ApiFailure") heard(failure as unknown as ApiFailure);
  return failure;
}

/** bare gives the body of the few routes without an envelope. */
export const bare = settle;

/** ask gives what is inside the envelope. */
export async function ask<T>(answer: Answer<{ data: T }>): Promise<T> {
  return (await settle(answer)).data;
}

/** askPage gives a list with where it goes on. */
export async function askPage<T>(
  answer: Answer<{ data: T; page?: Schemas["Page"] }>,
): Promise<{ rows: T; next: string | null }> {
  const body = await settle(answer);
  return { rows: body.data, next: body.page?.nextCursor ?? null };
}

/** once makes a key under which a repeated request has its effect a single time. */
export function once(): { "Idempotency-Key": string } {
  return { "Idempotency-Key": crypto.randomUUID() };
}
