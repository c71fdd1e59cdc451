import { useQuery } from "@tanstack/react-query";
import { Download, EyeOff } from "lucide-react";
import { Answer } from "../app/Answer.tsx";
import { buttonClass } from "../ui/Button.tsx";
import { bytes } from "../ui/format.ts";
import { kindOf, rows } from "./preview.ts";

/** What a preview needs of a file or an output. */
export interface Previewed {
  name: string;
  url: string;
  size: number;
  contentType: string;
}

const most = 256 * 1024;

/** Preview shows the beginning of a file: text, a table, a picture, or HTML in a sandbox where nothing runs. */
export function Preview({ file }: { file: Previewed }) {
  const kind = kindOf(file.name, file.contentType);
  if (kind === "none" || file.size === 0) {
    return <Nothing file={file}>{file.size === 0 ? "The file is empty." : "No preview for this file type."}</Nothing>;
  }
  if (kind === "image") {
    if (file.size > 32 * 2 ** 20) return <Nothing file={file}>The image is too large to preview.</Nothing>;
    return <img src={file.url} alt={file.name} className="mx-auto max-h-[60vh] max-w-full rounded-md" />;
  }
  return <Text file={file} kind={kind} />;
}

function Nothing({ file, children }: { file: Previewed; children: string }) {
  return (
    <div className="flex flex-col items-center gap-3 py-8 text-sm text-muted">
      <EyeOff className="size-6" aria-hidden />
      <p>{children}</p>
      <a href={file.url} download={file.name} className={buttonClass("secondary", "sm")}>
        <Download className="size-4" aria-hidden /> Download {bytes(file.size)}
      </a>
    </div>
  );
}

function Text({ file, kind }: { file: Previewed; kind: "text" | "table" | "html" }) {
  const beginning = useQuery({
    queryKey: ["preview", file.url],
    queryFn: async ({ signal }) => {
      const response = await fetch(file.url, { signal, headers: { Range: `bytes=0-${most - 1}` } });
      if (!response.ok)
        throw new Error(`couldn't read the file (${response.status}); its link may have expired, so reload the page`);
      return (await response.text()).slice(0, most);
    },
    staleTime: Number.POSITIVE_INFINITY,
  });
  const whole = file.size <= most;
  return (
    <Answer query={beginning}>
      {(text) => (
        <>
          {kind === "html" && (
            <iframe
              title={file.name}
              sandbox=""
              srcDoc={text}
              className="h-[60vh] w-full rounded-md border bg-[white]"
            />
          )}
          {kind === "table" && <Rows cells={rows(text, whole)} name={file.name} />}
          {kind === "text" && (
            <pre
              tabIndex={0}
              className="max-h-[60vh] overflow-auto rounded-md bg-sunken p-3 text-[13px] whitespace-pre-wrap"
            >
              {text}
            </pre>
          )}
          {!whole && (
            <p className="mt-2 text-[13px] text-muted">
              First {bytes(most)} of {bytes(file.size)}.
            </p>
          )}
        </>
      )}
    </Answer>
  );
}

function Rows({ cells, name }: { cells: string[][]; name: string }) {
  const [head = [], ...body] = cells;
  return (
    <section
      tabIndex={0}
      aria-label={`First rows of ${name}`}
      className="relative max-h-[60vh] overflow-auto rounded-md border"
    >
      <table className="tabular w-full text-[13px]">
        <thead className="sticky top-0 bg-sunken text-left">
          <tr>
            {head.map((cell, at) => (
              // biome-ignore lint/suspicious/noArrayIndexKey: a table's cells are told apart by their place
              <th key={at} className="px-2.5 py-1.5 font-medium whitespace-nowrap">
                {cell}
              </th>
            ))}
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
