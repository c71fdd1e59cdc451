// One way to the server: typed by the contract, in this tab's team, failing as
// an ApiFailure with a sentence for people and the request id to quote.
import createClient from "openapi-fetch";
import { type ApiFailure, failureOf, unreachable } from "./failure.ts";
import type { components, paths } from "./schema.gen.ts";
import { currentTeam } from "./team.ts";

export type Schemas = components["schemas"];

const client = createClient<paths>({
  baseUrl: globalThis.location?.origin ?? "",
  credentials: "same-origin",
  // Looked up at each call, so that a test can stand in for the network.
  fetch: (request) => globalThis.fetch(request),
});

client.use({
  onRequest({ request }) {
    const team = currentTeam();
    if (team && !request.headers.has("X-Team-Id")) request.headers.set("X-Team-Id", team);
    return request;
  },
});

export const api = client;

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

/** raw is fetch in this tab's team, for streams and forms that the typed client cannot carry. */
export async function raw(path: string, init: RequestInit = {}): Promise<Response> {
  const headers = new Headers(init.headers);
  const team = currentTeam();
  if (team && !headers.has("X-Team-Id") && !headers.has("Authorization")) headers.set("X-Team-Id", team);
  let response: Response;
  try {
    response = await globalThis.fetch(path, { credentials: "same-origin", ...init, headers });
  } catch (cause) {
    if (init.signal?.aborted) throw cause;
    throw tell(unreachable(cause));
  }
  if (response.ok) return response;
  throw tell(failureOf(response, await response.json().catch(() => undefined)));
}

/** once makes a key under which a repeated request has its effect a single time. */
export function once(): { "Idempotency-Key": string } {
  return { "Idempotency-Key": crypto.randomUUID() };
}
