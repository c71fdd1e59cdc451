import { useQuery } from "@tanstack/react-query";
import { Download, EyeOff } from "lucide-react";
import { lazy, Suspense, useEffect, useState } from "react";
import { Answer } from "../page/Answer.tsx";
import { buttonClass } from "../ui/Button.tsx";
import { bytes } from "../ui/format.ts";
import { Skeleton } from "../ui/Skeleton.tsx";
import { type Kind, kindOf, type Previewed, packed, rows, unpack } from "./preview.ts";
import { TablePreview } from "./TablePreview.tsx";

const Markdown = lazy(async () => ({ default: (await import("../ui/Markdown.tsx")).Markdown }));
const FolderTree = lazy(async () => ({ default: (await import("./FolderTree.tsx")).FolderTree }));
const Notebook = lazy(async () => ({ default: (await import("./NotebookPreview.tsx")).NotebookPreview }));

const most = 256 * 1024;
const largest: Partial<Record<Kind, number>> = { image: 32 * 2 ** 20, pdf: 32 * 2 ** 20, notebook: 8 * 2 ** 20 };

/** Preview shows the beginning of a file, all of a picture, PDF or notebook, or what is in a folder. Nothing in it runs. */
export function Preview({ file, tall = true }: { file: Previewed; tall?: boolean }) {
  if (file.directory) {
    return (
      <Suspense fallback={<Skeleton className="h-24" />}>
        <FolderTree file={file} />
      </Suspense>
    );
  }
  const kind = kindOf(file.name, file.contentType);
  if (kind === "none" || file.size === 0) {
    return <Nothing file={file}>{file.size === 0 ? "The file is empty." : "No preview for this file type."}</Nothing>;
  }
  if (file.size > (largest[kind] ?? Number.POSITIVE_INFINITY))
    return <Nothing file={file}>The file is too large to preview.</Nothing>;
  if (kind === "image")
    return (
      <img
        src={file.url}
        alt={file.name}
        className={`mx-auto max-w-full rounded-md bg-[white] ${tall ? "max-h-[60vh]" : "max-h-96"}`}
      />
    );
  if (kind === "pdf") return <Pdf file={file} />;
  return <Text file={file} kind={kind} tall={tall} />;
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

async function read(file: Previewed, limit: number, signal: AbortSignal): Promise<Uint8Array<ArrayBuffer>> {
  const response = await fetch(file.url, { signal, headers: { Range: `bytes=0-${limit - 1}` } });
  if (!response.ok)
    throw new Error(`couldn't read the file (${response.status}); its link may have expired, so reload the page`);
  return new Uint8Array(await response.arrayBuffer()).slice(0, limit);
}

/** Pdf hands a PDF to the browser's own viewer, as a PDF whatever is in it. */
function Pdf({ file }: { file: Previewed }) {
  const whole = useQuery({
    queryKey: ["preview", file.url],
    queryFn: ({ signal }) => read(file, largest.pdf ?? 0, signal),
    staleTime: Number.POSITIVE_INFINITY,
    enabled: navigator.pdfViewerEnabled,
  });
  const [address, setAddress] = useState<string | null>(null);
  useEffect(() => {
    if (!whole.data) return;
    const made = URL.createObjectURL(new Blob([whole.data], { type: "application/pdf" }));
    setAddress(made);
    return () => URL.revokeObjectURL(made);
  }, [whole.data]);
  if (!navigator.pdfViewerEnabled) return <Nothing file={file}>This browser can't preview a PDF.</Nothing>;
  return (
    <Answer query={whole}>
      {() => address && <iframe title={file.name} src={address} className="h-[60vh] w-full rounded-md border" />}
    </Answer>
  );
}

function Text({ file, kind, tall }: { file: Previewed; kind: Kind; tall: boolean }) {
  const limit = kind === "notebook" ? (largest.notebook ?? most) : most;
  const beginning = useQuery({
    queryKey: ["preview", file.url],
    queryFn: async ({ signal }) => {
      const head = await read(file, limit, signal);
      const shown = packed(file.name) ? await unpack(head, most) : head;
      return new TextDecoder().decode(shown);
    },
    staleTime: Number.POSITIVE_INFINITY,
  });
  const whole = file.size <= limit && !packed(file.name);
  const height = tall ? "max-h-[60vh]" : "max-h-64";
  return (
    <Answer query={beginning}>
      {(text) => (
        <Suspense fallback={<Skeleton className="h-24" />}>
          {kind === "html" && (
            <iframe
              title={file.name}
              sandbox=""
              srcDoc={text}
              className="h-[60vh] w-full rounded-md border bg-[white]"
            />
          )}
          {kind === "table" && <TablePreview cells={rows(text, whole)} name={file.name} tall={tall} />}
          {kind === "notebook" && <Notebook source={text} name={file.name} tall={tall} />}
          {kind === "markdown" && (
            <section
              tabIndex={0}
              aria-label={file.name}
              className={`overflow-auto rounded-md border p-3 text-sm ${height}`}
            >
              <Markdown source={text} />
            </section>
          )}
          {kind === "text" && (
            <pre
              tabIndex={0}
              className={`overflow-auto rounded-md bg-sunken p-3 text-[13px] whitespace-pre-wrap ${height}`}
            >
              {text}
            </pre>
          )}
          {!whole && (
            <p className="mt-2 text-[13px] text-muted">
              {packed(file.name) ? "The beginning, decompressed," : `First ${bytes(most)}`} of {bytes(file.size)}.
            </p>
          )}
        </Suspense>
      )}
    </Answer>
  );
}
