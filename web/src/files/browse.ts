// Going about in a bucket, whose folders are beginnings of keys.

/** lastPart is what a folder is called. */
export function lastPart(prefix: string): string {
  return prefix.replace(/\/$/, "").split("/").at(-1) ?? "";
}

/** above is the folder that a folder is in, and never one above the top. */
export function above(prefix: string, top: string): string {
  const parent = prefix.replace(/[^/]*\/$/, "");
  return parent.startsWith(top) ? parent : top;
}
