import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, useSearch } from "@tanstack/react-router";
import { Download, Eye, Files, FileUp, Search, Trash2 } from "lucide-react";
import { useState } from "react";
import { useWhyNot } from "../identity/queries.ts";
import { Answer } from "../page/Answer.tsx";
import { Page } from "../page/Page.tsx";
import { useChange } from "../page/useChange.ts";
import { Button, buttonClass, IconButton } from "../ui/Button.tsx";
import { Copy } from "../ui/Copy.tsx";
import { ConfirmDialog, Dialog } from "../ui/Dialog.tsx";
import { Empty } from "../ui/Empty.tsx";
import { Checkbox, Choice } from "../ui/Field.tsx";
import { bytes, plural } from "../ui/format.ts";
import { useFirst, useTicks } from "../ui/rows.tsx";
import { SearchBox } from "../ui/SearchBox.tsx";
import { Table, Td, Th } from "../ui/Table.tsx";
import { Time } from "../ui/Time.tsx";
import { toast } from "../ui/toast.ts";
import { chooseFiles } from "./choose.ts";
import { downloadOf, sizeOf } from "./folder.ts";
import { Preview } from "./Preview.tsx";
import { deleteFile, type FileRow, filesQuery } from "./queries.ts";
import { StorageBar } from "./StorageBar.tsx";
import { uploads } from "./uploads.ts";

const atOnce = 200;

export function FilesPage() {
  const search = useSearch({ from: "/inside/files" });
  const set = useChange<typeof search>();
  const files = useQuery(filesQuery);
  const whyNot = useWhyNot();
  const upload = async () => {
    uploads.add(await chooseFiles());
  };
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
      <Answer query={files}>
        {(rows) =>
          rows.length === 0 ? (
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
                  options={{ "": "Uploads and outputs", upload: "Uploads", output: "Outputs of runs" }}
                  value={search.source ?? ""}
                  onChange={(source) => set({ source: source || undefined })}
                />
              </div>
              <FilesTable
                rows={rows.filter(
                  (file) =>
                    (!search.source || file.source === search.source) &&
                    (!search.q || file.name.toLowerCase().includes(search.q.toLowerCase())),
                )}
                onPreview={(key) => set({ preview: key })}
              />
              <PreviewDialog
                file={rows.find((file) => file.key === search.preview)}
                onClose={() => set({ preview: undefined })}
              />
            </>
          )
        }
      </Answer>
    </Page>
  );
}

function FilesTable({ rows, onPreview }: { rows: FileRow[]; onPreview: (key: string) => void }) {
  const { shown, more } = useFirst(rows, atOnce);
  const { ticked, tick, clear } = useTicks();
  const [deleting, setDeleting] = useState(false);
  const whyNot = useWhyNot();
  const targets = rows.filter((file) => ticked.has(file.key));
  const remove = useDelete(() => {
    setDeleting(false);
    clear();
  });
  if (rows.length === 0) return <Empty icon={<Search />} title="No results" />;
  const all = shown.every((file) => ticked.has(file.key));
  return (
    <>
      <div className="mb-2 flex min-h-9 items-center justify-between gap-2 text-sm text-muted">
        <p role="status">
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
      <Table
        label="Files"
        head={
          <>
            <Th className="w-8">
              <Checkbox
                label="Select all"
                hideLabel
                checked={all}
                onChange={() =>
                  tick(
                    shown.map((file) => file.key),
                    !all,
                  )
                }
              />
            </Th>
            <Th>Name</Th>
            <Th className="max-md:hidden">Source</Th>
            <Th className="text-right">Size</Th>
            <Th className="max-md:hidden">Added</Th>
            <Th className="max-md:hidden">SHA-256</Th>
            <Th className="w-20">
              <span className="sr-only">Actions</span>
            </Th>
          </>
        }
      >
        {shown.map((file) => (
          <tr key={file.key} className="hover:bg-sunken/60">
            <Td>
              <Checkbox
                label={`Select ${file.name}`}
                hideLabel
                checked={ticked.has(file.key)}
                onChange={(event) => tick([file.key], event.target.checked)}
              />
            </Td>
            <Td className="max-w-80 max-md:max-w-40 md:min-w-48">
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
        ))}
      </Table>
      {more && <div className="mt-3 text-center">{more}</div>}
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

/** useDelete deletes one after the other, and goes on past what is refused. */
function useDelete(done: () => void) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: async (targets: FileRow[]) => {
      const refused: unknown[] = [];
      for (const file of targets) await deleteFile(file).catch((error: unknown) => refused.push(error));
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

function PreviewDialog({ file, onClose }: { file: FileRow | undefined; onClose: () => void }) {
  return (
    <Dialog
      wide
      open={file !== undefined}
      onOpenChange={(open) => !open && onClose()}
      title={file?.name ?? ""}
      description={file && `${bytes(sizeOf(file))} · ${file.directory ? "folder" : file.contentType}`}
      footer={
        file && (
          <a {...downloadOf(file)} className={buttonClass("primary")}>
            <Download className="size-4" aria-hidden /> Download
          </a>
        )
      }
    >
      {file && <Preview file={file} />}
    </Dialog>
  );
}
