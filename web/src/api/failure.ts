import type { components } from "./schema.gen.ts";

type Detail = components["schemas"]["Detail"];

/** ApiFailure is a request that did not work, in words that a person can act on. */
export class ApiFailure extends Error {
  override readonly name = "ApiFailure";
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly requestId: string | null = null,
    readonly details: Detail[] = [],
    readonly retryAfter: number | null = null,
  ) {
    super(message);
  }
}

export function failureOf(response: Response, body: unknown): ApiFailure {
  const fields = isRecord(body) ? body : {};
  // The chat proxy fails in its own wire format.
  const nested = isRecord(fields.error) ? fields.error : undefined;
  const retry = Number(response.headers.get("Retry-After"));
  return new ApiFailure(
    response.status,
    text(nested?.code) ?? text(fields.code) ?? `http_${response.status}`,
    text(nested?.message) ?? text(fields.error) ?? `The server responded with ${response.status}.`,
    text(fields.requestId) ?? response.headers.get("X-Request-Id"),
    Array.isArray(fields.details) ? (fields.details as Detail[]) : [],
    Number.isFinite(retry) && retry > 0 ? retry : null,
  );
}

/** unreachable is the failure of a request that no server answered. */
export function unreachable(cause: unknown): Error {
  if (cause instanceof DOMException && cause.name === "AbortError") return cause;
  return new ApiFailure(
    0,
    "unreachable",
    "Can't reach Millrace. Check your connection; what you see may be out of date.",
  );
}

/** sentence is any thrown thing, as something to show. */
export function sentence(error: unknown): string {
  const words = error instanceof Error ? error.message : String(error);
  const start = words.charAt(0).toUpperCase() + words.slice(1);
  return /[.!?…]$/.test(start) ? start : `${start}.`;
}

export function isFailure(error: unknown, code?: string): error is ApiFailure {
  return error instanceof ApiFailure && (code === undefined || error.code === code);
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function text(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}
