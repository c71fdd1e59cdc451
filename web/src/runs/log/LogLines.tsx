import { ColoredText } from "./ColoredText.tsx";

const toEnd = (box: HTMLElement | null) => box?.scrollTo(0, box.scrollHeight);

/** LogLines shows the last lines of a log, scrolled to the end. */
export function LogLines({ lines }: { lines: string[] }) {
  return (
    <pre ref={toEnd} tabIndex={0} className="max-h-64 overflow-auto rounded-lg border bg-surface p-3 text-[12.5px]">
      {lines.map((line, at) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: a line has no identity but its position
        <span key={at} className="block whitespace-pre-wrap">
          <ColoredText text={line} />
        </span>
      ))}
    </pre>
  );
}
