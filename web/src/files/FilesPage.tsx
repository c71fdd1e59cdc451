import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, useSearch } from "@tanstack/react-router";
import { useWindowVirtualizer } from "@tanstack/react-virtual";
import { Download, Eye, Files, FileUp, FileX, Search, Trash2 } from "lucide-react";
import { memo, useCallback, useEffect, useLayoutEffect, useRef, useState } from "react";
import { useApi } from "../api/team.ts";
import { useWhyNot } from "../identity/queries.ts";
import { Answer } from "../page/Answer.tsx";
import { Elsewhere } from "../page/Elsewhere.tsx";
import { Page } from "../page/Page.tsx";
import { useChange } from "../page/useChange.ts";
import { Button, buttonClass, IconButton } from "../ui/Button.tsx";
import { Copy } from "../ui/Copy.tsx";
import { ConfirmDialog, Dialog } from "../ui/Dialog.tsx";
import { Empty } from "../ui/Empty.tsx";
import { Checkbox, Choice } from "../ui/Field.tsx";
import { bytes, plural } from "../ui/format.ts";
import { useTicks } from "../ui/rows.tsx";
import { SearchBox } from "../ui/SearchBox.tsx";
import { SkeletonRows } from "../ui/Skeleton.tsx";
import { Td, Th } from "../ui/Table.tsx";
import { Time } from "../ui/Time.tsx";
import { toast } from "../ui/toast.ts";
import { useSettled } from "../ui/useSettled.ts";
import { chooseFiles } from "./choose.ts";
import { downloadOf, sizeOf } from "./folder.ts";
import { Preview } from "./Preview.tsx";
import { deleteFile, type FileFilter, type FileRow, filesByKeyQuery, useFiles } from "./queries.ts";
import { StorageBar } from "./StorageBar.tsx";
import { useUpload } from "./uploads.ts";

const headHeight = 37;
const rowHeight = 47;
const wholeUpTo = 200; // rows that are all drawn, so that the browser's own search finds them

export function FilesPage() {
  const search = useSearch({ from: "/inside/files" });
  const set = useChange<typeof search>();
  const q = useSettled(search.q?.trim() ?? "");
  const filter: FileFilter = { ...(q && { q }), ...(search.source && { source: search.source }) };
  const files = useFiles(filter, { first: 200, next: 1000 });
  const whyNot = useWhyNot();
  const add = useUpload();
  const upload = async () => {
    add(await chooseFiles());
  };
  const filtered = Boolean(search.q || search.source);
  const preview = useCallback((key: string) => set({ preview: key }), [set]);
  return (
    <Page
      title="Files"
      intro="Your team's uploads and the outputs of its runs. Drop files anywhere to upload them."
      actions={
        <Button
          look="primary"
          icon={<FileUp className="size-4" aria-hidden />}
          disabledReason={whyNot("upload files")}
          onClick={() => void upload()}
        >
          Upload files
        </Button>
      }
    >
      <StorageBar />
      <Answer query={files.query}>
        {() =>
          files.rows.length === 0 && !filtered && !files.query.isPlaceholderData ? (
            <Empty
              icon={<Files />}
              title="No files yet"
              actions={
                <Button look="primary" disabledReason={whyNot("upload files")} onClick={() => void upload()}>
                  Choose files
                </Button>
              }
            >
              Drop files here to use them in runs, up to 5 TB each. Programs and scripts aren't accepted: put code in a
              step's command.
            </Empty>
          ) : (
            <>
              <div className="mb-4 flex flex-wrap gap-2">
                <SearchBox
                  label="Search files"
                  placeholder="Name"
                  className="min-w-56 flex-1"
                  value={search.q ?? ""}
                  onChange={(words) => set({ q: words || undefined })}
                />
                <Choice
                  aria-label="Source"
                  className="sm:w-auto!"
                  options={{ "": "Uploads and outputs", upload: "Uploads", output: "Outputs" }}
                  value={search.source ?? ""}
                  onChange={(source) => set({ source: source || undefined })}
                />
              </div>
              <FilesTable files={files} onPreview={preview} />
            </>
          )
        }
      </Answer>
      {search.preview && <PreviewDialog fileKey={search.preview} onClose={() => set({ preview: undefined })} />}
    </Page>
  );
}

function FilesTable({ files, onPreview }: { files: ReturnType<typeof useFiles>; onPreview: (key: string) => void }) {
  const { rows, more, busy } = files;
  const frame = useRef<HTMLElement>(null);
  const [top, setTop] = useState(0); // of the rows on the page
  useLayoutEffect(() => {
    if (frame.current) setTop(Math.round(frame.current.getBoundingClientRect().top + scrollY) + headHeight);
  });
  const virtual = useWindowVirtualizer({
    count: rows.length,
    estimateSize: () => rowHeight,
    scrollMargin: top,
    overscan: rows.length > wholeUpTo ? 20 : wholeUpTo,
  });
  const shown = virtual.getVirtualItems();
  const last = virtual.range?.endIndex ?? 0;
  useEffect(() => {
    if (more && !busy && last >= rows.length - 60) more();
  }, [more, busy, last, rows.length]);
  const { ticked, tick, clear } = useTicks();
  const [deleting, setDeleting] = useState(false);
  const whyNot = useWhyNot();
  const targets = rows.filter((file) => ticked.has(file.key));
  const remove = useDelete(() => {
    setDeleting(false);
    clear();
  });
  if (rows.length === 0) return files.searching ? <SkeletonRows /> : <Empty icon={<Search />} title="No results" />;
  const all = rows.every((file) => ticked.has(file.key));
  const before = (shown[0]?.start ?? top) - top;
  const after = virtual.getTotalSize() - ((shown.at(-1)?.end ?? top) - top);
  return (
    <>
      <div className="mb-2 flex min-h-9 items-center justify-between gap-2 text-sm text-muted">
        <p role="status">
          {more ? "The first " : ""}
          {plural(rows.length, "file")}, {bytes(rows.reduce((sum, file) => sum + sizeOf(file), 0))}
          {targets.length > 0 && ` · ${targets.length} selected`}
        </p>
        {targets.length > 0 && (
          <Button
            size="sm"
            look="danger-quiet"
            icon={<Trash2 className="size-4" aria-hidden />}
            disabledReason={whyNot("upload files")}
            onClick={() => setDeleting(true)}
          >
            Delete {plural(targets.length, "file")}
          </Button>
        )}
      </div>
      <section ref={frame} aria-label="Files" className="relative overflow-x-clip rounded-lg border bg-surface">
        <table
          aria-rowcount={more ? -1 : rows.length + 1}
          className="w-full table-fixed text-sm [overflow-anchor:none]"
        >
          <thead className="border-b text-left text-[13px] text-muted">
            <tr aria-rowindex={1}>
              <Th className="w-10">
                <Checkbox
                  label="Select all"
                  hideLabel
                  checked={all}
                  onChange={() =>
                    tick(
                      rows.map((file) => file.key),
                      !all,
                    )
                  }
                />
              </Th>
              <Th>Name</Th>
              <Th className="w-36 max-md:hidden">Source</Th>
              <Th className="w-24 text-right">Size</Th>
              <Th className="w-36 max-md:hidden">Added</Th>
              <Th className="w-44 max-md:hidden">SHA-256</Th>
              <Th className="w-24">
                <span className="sr-only">Actions</span>
              </Th>
            </tr>
          </thead>
          <tbody>
            {before > 0 && <tr aria-hidden style={{ height: before }} />}
            {shown.map(({ index }) => {
              const file = rows[index];
              return (
                file && (
                  <Row
                    key={file.key}
                    place={index + 2}
                    file={file}
                    ticked={ticked.has(file.key)}
                    onTick={tick}
                    onPreview={onPreview}
                  />
                )
              );
            })}
            {after > 0 && <tr aria-hidden style={{ height: after }} />}
          </tbody>
        </table>
      </section>
      <ConfirmDialog
        open={deleting}
        onOpenChange={setDeleting}
        title={`Delete ${plural(targets.length, "file")}?`}
        action={`Delete ${plural(targets.length, "file")}`}
        busy={remove.isPending}
        onConfirm={() => remove.mutate(targets)}
      >
        <p>
          {targets.length === 1
            ? targets[0]?.name
            : `${plural(targets.length, "file")}, ${bytes(targets.reduce((sum, file) => sum + sizeOf(file), 0))},`}{" "}
          will be deleted permanently. Runs that used them are kept but can't be repeated.
        </p>
      </ConfirmDialog>
    </>
  );
}

interface RowProps {
  place: number;
  file: FileRow;
  ticked: boolean;
  onTick: (keys: readonly string[], on: boolean) => void;
  onPreview: (key: string) => void;
}

/** Row is drawn once, however many are read after it. */
const Row = memo(function Row({ place, file, ticked, onTick, onPreview }: RowProps) {
  return (
    <tr aria-rowindex={place} className="h-[47px] border-b last:border-b-0 hover:bg-sunken/60">
      <Td>
        <Checkbox
          label={`Select ${file.name}`}
          hideLabel
          checked={ticked}
          onChange={(event) => onTick([file.key], event.target.checked)}
        />
      </Td>
      <Td>
        <button
          type="button"
          className="block max-w-full truncate text-left font-medium hover:underline"
          onClick={() => onPreview(file.key)}
        >
          {file.name}
        </button>
      </Td>
      <Td className="whitespace-nowrap max-md:hidden">
        {file.runId ? (
          <Link to="/runs/$runId" params={{ runId: file.runId }} className="text-accent hover:underline">
            Output of a run
          </Link>
        ) : (
          "Upload"
        )}
      </Td>
      <Td className="tabular text-right whitespace-nowrap">{bytes(sizeOf(file))}</Td>
      <Td className="text-muted max-md:hidden">
        <Time at={file.createdAt} />
      </Td>
      <Td className="whitespace-nowrap max-md:hidden">
        {file.sha256 ? (
          <span className="inline-flex items-center gap-1">
            <code className="text-[13px] text-muted">{file.sha256.slice(0, 10)}…</code>
            <Copy text={file.sha256} label={`Copy SHA-256 of ${file.name}`} />
          </span>
        ) : (
          <span className="text-[13px] text-muted">pending</span>
        )}
      </Td>
      <Td>
        <div className="flex justify-end">
          <IconButton
            size="sm"
            label={`Preview ${file.name}`}
            icon={<Eye className="size-4" aria-hidden />}
            onClick={() => onPreview(file.key)}
          />
          <a
            href={downloadOf(file).href}
            download={downloadOf(file).download}
            aria-label={`Download ${file.name}`}
            className={buttonClass("quiet", "sm")}
          >
            <Download className="size-4" aria-hidden />
          </a>
        </div>
      </Td>
    </tr>
  );
});

/** useDelete deletes one after the other, and goes on past what is refused. */
function useDelete(done: () => void) {
  const api = useApi();
  const client = useQueryClient();
  return useMutation({
    mutationFn: async (targets: FileRow[]) => {
      const refused: unknown[] = [];
      for (const file of targets) await deleteFile(api, file).catch((error: unknown) => refused.push(error));
      if (refused.length > 0 && refused.length === targets.length) throw refused[0];
      return { deleted: targets.length - refused.length, refused: refused.length };
    },
    onSuccess: ({ deleted, refused }) => {
      if (refused > 0)
        toast.info(`Deleted ${plural(deleted, "file")}; ${refused} you don't have permission to delete.`);
      else toast.ok(`Deleted ${plural(deleted, "file")}`);
    },
    onSettled: async () => {
      done();
      await Promise.all([
        client.invalidateQueries({ queryKey: ["files"] }),
        client.invalidateQueries({ queryKey: ["credits"] }),
      ]);
    },
  });
}

function PreviewDialog({ fileKey, onClose }: { fileKey: string; onClose: () => void }) {
  const query = useQuery(filesByKeyQuery([fileKey]));
  const file = query.data?.get(fileKey);
  return (
    <Dialog
      wide
      open
      onOpenChange={(open) => !open && onClose()}
      title={file?.name ?? "File"}
      description={file && `${bytes(sizeOf(file))} · ${file.directory ? "folder" : file.contentType}`}
      footer={
        file && (
          <>
            <Copy text={file.key} words="Copy key" />
            <a {...downloadOf(file)} className={buttonClass("primary")}>
              <Download className="size-4" aria-hidden /> Download
            </a>
          </>
        )
      }
    >
      <Answer query={query}>
        {() =>
          file ? (
            <Preview file={file} />
          ) : (
            <Elsewhere id={fileKey} loading={<SkeletonRows />}>
              <Empty icon={<FileX />} title="File not found">
                It may have been deleted.
              </Empty>
            </Elsewhere>
          )
        }
      </Answer>
    </Dialog>
  );
}
