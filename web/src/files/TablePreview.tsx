import { ArrowDown, ArrowUp, ArrowUpDown } from "lucide-react";
import { useMemo, useState } from "react";
import { sorted, withHead } from "./preview.ts";

/** TablePreview is the first rows of a table, in the order of a column that one chooses. */
export function TablePreview({ cells, name, tall }: { cells: string[][]; name: string; tall: boolean }) {
  const { head, body: rest } = useMemo(() => withHead(cells), [cells]);
  const [by, setBy] = useState<{ column: number; down: boolean } | null>(null);
  const body = useMemo(() => (by ? sorted(rest, by.column, by.down) : rest), [rest, by]);
  const next = (column: number) =>
    setBy(by?.column !== column ? { column, down: false } : by.down ? null : { column, down: true });
  return (
    <section
      tabIndex={0}
      aria-label={`First rows of ${name}`}
      className={`relative overflow-auto rounded-md border ${tall ? "max-h-[60vh]" : "max-h-64"}`}
    >
      <table className="tabular w-full text-[13px]">
        <thead className="sticky top-0 bg-sunken text-left">
          <tr>
            {head.map((cell, at) => {
              const here = by?.column === at;
              const Icon = !here ? ArrowUpDown : by.down ? ArrowDown : ArrowUp;
              return (
                <th
                  // biome-ignore lint/suspicious/noArrayIndexKey: a table's cells are told apart by their place
                  key={at}
                  scope="col"
                  aria-sort={!here ? "none" : by.down ? "descending" : "ascending"}
                  className="p-0 font-medium whitespace-nowrap"
                >
                  <button
                    type="button"
                    className="flex w-full items-center gap-1 px-2.5 py-1.5 hover:underline"
                    onClick={() => next(at)}
                  >
                    {cell || <span className="sr-only">Column {at + 1}</span>}
                    <Icon className={`size-3 shrink-0 ${here ? "" : "text-muted"}`} aria-hidden />
                  </button>
                </th>
              );
            })}
          </tr>
        </thead>
        <tbody>
          {body.map((row, line) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: a table's rows are told apart by their place
            <tr key={line} className="border-t">
              {row.map((cell, at) => (
                // biome-ignore lint/suspicious/noArrayIndexKey: a table's cells are told apart by their place
                <td key={at} className="max-w-80 truncate px-2.5 py-1 whitespace-nowrap">
                  {cell}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
