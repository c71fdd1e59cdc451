import { spans } from "./ansi.ts";

/** ColoredText shows text in the colors of its terminal escapes. */
export function ColoredText({ text }: { text: string }) {
  return spans(text).map((span, at) => (
    // biome-ignore lint/suspicious/noArrayIndexKey: a span has no identity but its position
    <span key={at} className={span.className}>
      {span.text}
    </span>
  ));
}
