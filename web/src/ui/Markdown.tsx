import { Fragment, memo } from "react";
import { Copy } from "./Copy.tsx";
import { type Block, blocks, type Inline } from "./markdown.ts";

/** Markdown shows text that a model wrote, as elements. */
export const Markdown = memo(function Markdown({ source }: { source: string }) {
  return (
    <div className="prose min-w-0 break-words">
      {blocks(source).map((block, at) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: text only grows at its end
        <BlockView key={at} block={block} />
      ))}
    </div>
  );
});

function BlockView({ block }: { block: Block }) {
  switch (block.kind) {
    case "heading":
      return (
        <h3>
          <Spans content={block.content} />
        </h3>
      );
    case "code":
      return (
        <div className="relative my-2 rounded-lg border bg-sunken">
          <div className="flex items-center justify-between border-b py-0.5 pr-1 pl-3 text-xs text-muted">
            {block.language || "text"}
            <Copy text={block.text} label="Copy code" />
          </div>
          <pre tabIndex={0} className="m-0! overflow-x-auto p-3 text-[13px]">
            <code>{block.text}</code>
          </pre>
        </div>
      );
    case "list": {
      const items = block.items.map((item, at) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: text only grows at its end
        <li key={at}>
          <Spans content={item} />
        </li>
      ));
      return block.ordered ? <ol start={block.start}>{items}</ol> : <ul>{items}</ul>;
    }
    case "table":
      return (
        <div className="overflow-x-auto" tabIndex={0}>
          <table className="border-collapse text-sm [&_td]:border [&_td]:px-2 [&_td]:py-1 [&_th]:border [&_th]:px-2 [&_th]:py-1 [&_th]:text-left">
            <thead>
              <Row cells={block.head} head />
            </thead>
            <tbody>
              {block.rows.map((row, at) => (
                // biome-ignore lint/suspicious/noArrayIndexKey: text only grows at its end
                <Row key={at} cells={row} />
              ))}
            </tbody>
          </table>
        </div>
      );
    case "rule":
      return <hr className="my-3" />;
    case "quote":
      return (
        <blockquote className="border-l-4 pl-3 text-muted">
          <Spans content={block.content} />
        </blockquote>
      );
    case "paragraph":
      return (
        <p className="whitespace-pre-line">
          <Spans content={block.content} />
        </p>
      );
  }
}

function Row({ cells, head = false }: { cells: Inline[][]; head?: boolean }) {
  const Cell = head ? "th" : "td";
  return (
    <tr>
      {cells.map((cell, at) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: text only grows at its end
        <Cell key={at}>
          <Spans content={cell} />
        </Cell>
      ))}
    </tr>
  );
}

function Spans({ content }: { content: Inline[] }) {
  return content.map((span, at) => (
    // biome-ignore lint/suspicious/noArrayIndexKey: text only grows at its end
    <Fragment key={at}>
      {span.kind === "text" && span.text}
      {span.kind === "strong" && <strong>{span.text}</strong>}
      {span.kind === "em" && <em>{span.text}</em>}
      {span.kind === "code" && <code>{span.text}</code>}
      {span.kind === "link" && (
        <a href={span.href} target="_blank" rel="noreferrer noopener">
          {span.text}
        </a>
      )}
    </Fragment>
  ));
}
