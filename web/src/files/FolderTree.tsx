import { useQuery } from "@tanstack/react-query";
import { ChevronRight, Download, File, Folder, Link2 } from "lucide-react";
import { useState } from "react";
import { Answer } from "../page/Answer.tsx";
import { buttonClass } from "../ui/Button.tsx";
import { bytes, plural } from "../ui/format.ts";
import { useFirst } from "../ui/rows.tsx";
import { type Branch, downloadOf, type Entry, treeOf } from "./folder.ts";
import type { Previewed } from "./preview.ts";

/** FolderTree is what is in a folder. Its manifest is read when it is opened. */
export function FolderTree({ file }: { file: Previewed }) {
  const manifest = useQuery({
    queryKey: ["folder", file.url],
    queryFn: async ({ signal }) => {
      const response = await fetch(file.url, { signal });
      if (!response.ok)
        throw new Error(`couldn't read the folder (${response.status}); its link may have expired, so reload the page`);
      const { entries } = (await response.json()) as { entries: Entry[] };
      return treeOf(file.name, entries);
    },
    staleTime: Number.POSITIVE_INFINITY,
  });
  return (
    <>
      <div className="mb-2 flex items-center gap-3 text-sm text-muted">
        {plural(file.directory?.files ?? 0, "file")}, {bytes(file.directory?.bytes ?? 0)}
        <span className="flex-1" />
        <a {...downloadOf(file)} className={buttonClass("secondary", "sm")}>
          <Download className="size-4" aria-hidden /> Download as zip
        </a>
      </div>
      <Answer query={manifest}>
        {(top) => (
          <section
            tabIndex={0}
            aria-label={file.name}
            className="max-h-[60vh] overflow-auto rounded-md border p-2 text-sm"
          >
            <Inside branch={top} />
          </section>
        )}
      </Answer>
    </>
  );
}

function Inside({ branch }: { branch: Branch }) {
  const { shown, more } = useFirst(branch.leaves, 200);
  if (branch.branches.length + branch.leaves.length === 0) return <p className="py-0.5 pl-5 text-muted">Empty</p>;
  return (
    <ul>
      {branch.branches.map((each) => (
        <Below key={each.name} branch={each} />
      ))}
      {shown.map(({ name, size, link }) => (
        <li key={name} className="flex items-center gap-1.5 py-0.5 pl-5">
          {link === undefined ? (
            <File className="size-4 shrink-0" aria-hidden />
          ) : (
            <Link2 className="size-4 shrink-0" aria-hidden />
          )}
          <span className="min-w-0 flex-1 truncate" title={name}>
            {name}
            {link !== undefined && <span className="text-muted"> → {link}</span>}
          </span>
          {link === undefined && <span className="tabular text-muted">{bytes(size)}</span>}
        </li>
      ))}
      {more && <li className="py-1 pl-5">{more}</li>}
    </ul>
  );
}

/** Below is a folder, whose inside is made when it is opened first. */
function Below({ branch }: { branch: Branch }) {
  const [open, setOpen] = useState(false);
  return (
    <li>
      <button
        type="button"
        aria-expanded={open}
        className="flex w-full items-center gap-1.5 py-0.5 text-left hover:underline"
        onClick={() => setOpen(!open)}
      >
        <ChevronRight className={`size-4 shrink-0 ${open ? "rotate-90" : ""}`} aria-hidden />
        <Folder className="size-4 shrink-0" aria-hidden />
        <span className="min-w-0 flex-1 truncate" title={branch.name}>
          {branch.name}
        </span>
        <span className="tabular text-muted">{bytes(branch.bytes)}</span>
      </button>
      {open && (
        <div className="pl-4">
          <Inside branch={branch} />
        </div>
      )}
    </li>
  );
}
