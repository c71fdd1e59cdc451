// Inputs that lie elsewhere. In a form each input is one text: the key of a file, an
// address, or an address with its connection as JSON, which no key is like.
import type { Schemas } from "../api/client.ts";

export type Given = string | Schemas["InputAddress"];

export function isAddress(text: string): boolean {
  return /^(s3|https|http):\/\/./.test(text);
}

/** asText is an input as a form holds it. */
export function asText(given: Given): string {
  return typeof given === "string" || !given.connection ? urlOf(given) : JSON.stringify(given);
}

function urlOf(given: Given): string {
  return typeof given === "string" ? given : given.url;
}

/** asGiven is an input as the server takes it. */
export function asGiven(text: string): Given {
  return text.startsWith("{") ? (JSON.parse(text) as Given) : text;
}

/** addressIn is the address of a form's text, or null for the key of a file. */
export function addressIn(text: string): string | null {
  const url = urlOf(asGiven(text));
  return isAddress(url) ? url : null;
}

type Reach = Pick<Schemas["Connection"], "id" | "type" | "bucket" | "prefix" | "host">;

/** fitting are the connections that an address could be reached by. */
export function fitting<T extends Reach>(address: string, connections: T[]): T[] {
  const [, scheme, place = "", rest = ""] = /^(s3|https):\/\/([^/]*)\/?(.*)$/.exec(address) ?? [];
  return connections.filter((each) =>
    scheme === "s3"
      ? each.type === "s3" && each.bucket === place && rest.startsWith(each.prefix ?? "")
      : scheme === "https" && each.type === "https" && each.host === place.toLowerCase(),
  );
}

/** problemOf is what is wrong with an address as far as can be told here. */
export function problemOf(address: string, multiple: boolean, folder = false): string | null {
  if (folder) return /^s3:\/\/[^/]+\/.+\/$/.test(address) ? null : "Enter s3://bucket/folder/ with a slash at the end.";
  if (!isAddress(address)) return "An address starts with s3:// or https://.";
  if (/\s$/.test(address)) return "Remove the space at the end.";
  if (address.startsWith("s3://") && address.endsWith("/")) {
    return multiple
      ? `This is a folder. Enter ${address}* for the objects in it.`
      : "This is a folder. Enter the address of one object.";
  }
  return null;
}

/** withConnections are a run's inputs as another can be given them. */
export function withConnections(run: Pick<Schemas["Run"], "inputs" | "addresses">): Record<string, Given[]> {
  const connections = new Map(run.addresses?.map((each) => [each.url, each.connection]));
  // Of a folder a run has the objects.
  const within = (folder: string) => run.addresses?.find((each) => each.url.startsWith(folder))?.connection;
  return Object.fromEntries(
    Object.entries(run.inputs).map(([name, keys]) => [
      name,
      [keys].flat().map((url): Given => {
        const connection = connections.get(url) ?? (url.endsWith("/") ? within(url) : null);
        return connection ? { url, connection } : url;
      }),
    ]),
  );
}
