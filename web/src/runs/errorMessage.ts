// The message of a run that failed: a sentence, and maybe lines that a program said.

/** firstLine splits a message into its first line and the rest. */
export function firstLine(message: string): [first: string, rest: string] {
  const text = message.trim();
  const end = text.indexOf("\n");
  return end < 0 ? [text, ""] : [text.slice(0, end), text.slice(end + 1).replace(/^\n+/, "")];
}
