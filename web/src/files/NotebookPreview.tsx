import { Markdown } from "../ui/Markdown.tsx";
import { notebook, type Shown } from "./notebook.ts";

/** NotebookPreview is a notebook as it was saved. */
export function NotebookPreview({ source, name, tall }: { source: string; name: string; tall: boolean }) {
  let cells: ReturnType<typeof notebook>;
  try {
    cells = notebook(source);
  } catch {
    return <p className="py-4 text-sm text-muted">Couldn't read this notebook. Download it instead.</p>;
  }
  return (
    <section
      tabIndex={0}
      aria-label={`Notebook ${name}`}
      className={`space-y-3 overflow-auto rounded-md border p-3 ${tall ? "max-h-[60vh]" : "max-h-96"}`}
    >
      {cells.map((cell, at) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: cells are told apart by their place
        <div key={at}>
          {cell.kind === "markdown" ? (
            <Markdown source={cell.source} />
          ) : (
            cell.source && <pre className="overflow-x-auto rounded-md bg-sunken p-2 text-[13px]">{cell.source}</pre>
          )}
          {cell.outputs.map((output, place) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: outputs are told apart by their place
            <Output key={place} output={output} />
          ))}
        </div>
      ))}
    </section>
  );
}

function Output({ output }: { output: Shown }) {
  switch (output.kind) {
    case "image":
      return <img src={output.src} alt="Output of the cell" className="mt-1 max-w-full rounded-md bg-[white]" />;
    case "left out":
      return <p className="mt-1 text-[13px] text-muted">Interactive output not shown.</p>;
    default:
      return (
        <pre
          className={`mt-1 overflow-x-auto border-l-2 pl-3 text-[13px] whitespace-pre-wrap ${output.kind === "error" ? "border-danger text-danger" : ""}`}
        >
          {output.text}
        </pre>
      );
  }
}
