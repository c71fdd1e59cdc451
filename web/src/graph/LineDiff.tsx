import { classes } from "../ui/classes.ts";
import { lineDiff } from "./diff.ts";

/** LineDiff shows the lines in which two texts differ. */
export function LineDiff({ before, after, around }: { before: string; after: string; around?: number }) {
  return lineDiff(before, after, around).map((line, at) => (
    <span
      // biome-ignore lint/suspicious/noArrayIndexKey: lines are told apart by their place
      key={at}
      className={classes(
        "block px-3 whitespace-pre-wrap",
        line.sign === "+" && "bg-ok-soft",
        line.sign === "-" && "bg-danger-soft",
      )}
    >
      {line.sign} {line.text}
    </span>
  ));
}
