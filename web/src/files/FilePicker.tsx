import { useQuery } from "@tanstack/react-query";
import { FileUp, FolderUp, X } from "lucide-react";
import { useState } from "react";
import { sentence } from "../api/failure.ts";
import { Answer } from "../page/Answer.tsx";
import { Button, IconButton } from "../ui/Button.tsx";
import { Dialog } from "../ui/Dialog.tsx";
import { DropZone } from "../ui/DropZone.tsx";
import { Checkbox } from "../ui/Field.tsx";
import { bytes, plural } from "../ui/format.ts";
import { More } from "../ui/More.tsx";
import { SearchBox } from "../ui/SearchBox.tsx";
import { toast } from "../ui/toast.ts";
import { useSettled } from "../ui/useSettled.ts";
import { AddressField } from "./AddressField.tsx";
import { addressIn } from "./addresses.ts";
import { chosenFolder, dropped, FolderFile } from "./dropped.ts";
import { sizeOf } from "./folder.ts";
import { filesByKeyQuery, useFiles } from "./queries.ts";
import { useUpload } from "./uploads.ts";

interface Known {
  name: string;
  size: number;
}

/** Change is what a choice makes of the keys that are chosen by then: uploads end while others are made. */
export type Change = (keys: string[]) => string[];

interface FilePickerProps {
  label: string;
  multiple: boolean;
  folder?: boolean;
  value: string[];
  onChange: (change: Change) => void;
  invalid?: boolean;
}

const shownFirst = 100; // of the chosen

/** foldersOf are those that were dropped, or the one whose files were chosen. */
function foldersOf(files: File[]): File[] {
  const folders = files.filter((file) => file instanceof FolderFile);
  const chosen = files.every((file) => file.webkitRelativePath !== "") ? chosenFolder(files) : null;
  return chosen ? [chosen] : folders;
}

/** unreadable says why nothing of what was dropped can be taken. */
function unreadable(error: unknown): File[] {
  toast.error(sentence(error));
  return [];
}

/** FilePicker chooses inputs: uploads, outputs, new files that are uploaded in place, or addresses. */
export function FilePicker({ label, multiple, folder = false, value, onChange, invalid }: FilePickerProps) {
  const [open, setOpen] = useState(false);
  const [met, setMet] = useState<ReadonlyMap<string, Known>>(new Map());
  const shown = value.slice(0, shownFirst);
  const unknown = shown.filter((key) => !met.has(key) && addressIn(key) === null);
  const asked = useQuery(filesByKeyQuery(unknown)).data;
  const known = (key: string): Known | undefined => {
    const row = asked?.get(key);
    return met.get(key) ?? (row && { name: row.name, size: sizeOf(row) });
  };
  const meet = (key: string, file: Known) => setMet((old) => new Map(old).set(key, file));
  const upload = useUpload();
  const add = async (given: File[]) => {
    const before = value;
    const list = folder ? foldersOf(given) : given.flatMap((each) => (each instanceof FolderFile ? each.files : each));
    if (list.length === 0) {
      toast.error(folder ? "Drop a folder: this input takes no single files." : "The folder is empty.");
      return;
    }
    const ended = await Promise.all(upload(multiple ? list : list.slice(0, 1)));
    const keys = ended.flatMap(({ key, file }) => {
      if (key) meet(key, file);
      return key ? [key] : [];
    });
    for (const upload of ended)
      if (upload.error) toast.error(`${upload.file.name}: ${sentence(new Error(upload.error))}`);
    if (multiple) onChange((now) => [...now, ...keys]);
    // Where one file is asked for, what was chosen last counts, unless it could not be uploaded.
    else if (keys.length > 0) onChange((now) => (now.join() === before.join() ? keys : now));
  };
  return (
    <div>
      {value.length > 0 && (
        <ul className="mb-2 space-y-1">
          {shown.map((key) => {
            const file = known(key);
            const name = file?.name ?? addressIn(key) ?? key;
            return (
              <li key={key} className="flex items-center gap-2 rounded-md bg-sunken py-0.5 pr-1 pl-3 text-sm">
                <span className="min-w-0 flex-1 truncate">{name}</span>
                <span className="text-[13px] text-muted">{file && bytes(file.size)}</span>
                <IconButton
                  size="sm"
                  label={`Remove ${name}`}
                  icon={<X className="size-4" aria-hidden />}
                  onClick={() => onChange((now) => now.filter((each) => each !== key))}
                />
              </li>
            );
          })}
          {value.length > shown.length && (
            <li className="px-3 text-sm text-muted">And {plural(value.length - shown.length, "more file")}.</li>
          )}
        </ul>
      )}
      <Button
        size="sm"
        icon={<FileUp className="size-4" aria-hidden />}
        aria-invalid={invalid || undefined}
        onClick={() => setOpen(true)}
      >
        {multiple ? "Choose files" : `Choose ${value.length > 0 ? "another" : "a"} ${folder ? "folder" : "file"}`}
      </Button>
      <Dialog
        open={open}
        onOpenChange={setOpen}
        title={label}
        footer={
          <Button look="primary" onClick={() => setOpen(false)}>
            Done
          </Button>
        }
      >
        <DropZone
          multiple={multiple}
          folder={folder}
          icon={folder ? <FolderUp /> : <FileUp />}
          read={(list) => dropped(list).catch(unreadable)}
          onFiles={(list) => void add(list)}
        >
          {folder ? "Drop a folder here to upload and use it" : "Drop files here to upload and use them"}
        </DropZone>
        <Choices multiple={multiple} folder={folder} value={value} onChange={onChange} onMet={meet} />
        <AddressField
          multiple={multiple}
          folder={folder}
          onAdd={(text) => onChange((now) => (multiple ? [...now.filter((each) => each !== text), text] : [text]))}
        />
      </Dialog>
    </div>
  );
}

interface ChoicesProps extends Pick<FilePickerProps, "multiple" | "value" | "onChange"> {
  folder: boolean;
  onMet: (key: string, file: Known) => void;
}

function Choices({ multiple, folder, value, onChange, onMet }: ChoicesProps) {
  const [words, setWords] = useState("");
  const q = useSettled(words.trim());
  const { query, rows, more, busy, searching } = useFiles(
    { directory: folder, ...(q && { q }) },
    { first: 100, next: 200 },
  );
  const chosen = new Set(value);
  return (
    <div className="mt-4">
      <SearchBox
        label="Search files"
        placeholder={folder ? "Search folders" : "Search uploads and outputs"}
        className="mb-2"
        value={words}
        onChange={(words) => setWords(words)}
      />
      <Answer query={query} rows={3}>
        {() => (
          <ul className="max-h-64 overflow-y-auto rounded-lg border">
            {rows.map((file) => (
              <li key={file.key} className="flex items-center gap-3 border-b px-3 py-1.5 text-sm last:border-b-0">
                <Checkbox
                  className="min-w-0 flex-1"
                  label={file.name}
                  checked={chosen.has(file.key)}
                  onChange={(event) => {
                    onMet(file.key, { name: file.name, size: sizeOf(file) });
                    if (!event.target.checked) onChange((now) => now.filter((key) => key !== file.key));
                    else onChange((now) => (multiple ? [...now, file.key] : [file.key]));
                  }}
                />
                <span className="text-[13px] whitespace-nowrap text-muted">
                  {file.source === "output" ? "output · " : ""}
                  {bytes(sizeOf(file))}
                </span>
              </li>
            ))}
            {rows.length === 0 && (
              <li className="px-3 py-4 text-center text-sm text-muted">
                {searching ? "Searching…" : q ? "No results" : folder ? "No folders yet." : "No files yet."}
              </li>
            )}
            {more && rows.length > 0 && (
              <li>
                <More onMore={more} busy={busy} />
              </li>
            )}
          </ul>
        )}
      </Answer>
    </div>
  );
}
