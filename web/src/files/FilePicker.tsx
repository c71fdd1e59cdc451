import { useQuery } from "@tanstack/react-query";
import { FileUp, X } from "lucide-react";
import { useState } from "react";
import { sentence } from "../api/failure.ts";
import { Button, IconButton } from "../ui/Button.tsx";
import { Dialog } from "../ui/Dialog.tsx";
import { DropZone } from "../ui/DropZone.tsx";
import { Checkbox } from "../ui/Field.tsx";
import { bytes, plural } from "../ui/format.ts";
import { SearchBox } from "../ui/SearchBox.tsx";
import { toast } from "../ui/toast.ts";
import { AddressField } from "./AddressField.tsx";
import { addressIn } from "./addresses.ts";
import { sizeOf } from "./folder.ts";
import { filesQuery } from "./queries.ts";
import { uploads } from "./uploads.ts";

interface FilePickerProps {
  label: string;
  multiple: boolean;
  folder?: boolean;
  value: string[];
  onChange: (keys: string[]) => void;
  invalid?: boolean;
}

/** FilePicker chooses inputs: uploads, outputs, new files that are uploaded in place, or addresses. */
export function FilePicker({ label, multiple, folder = false, value, onChange, invalid }: FilePickerProps) {
  const [open, setOpen] = useState(false);
  const files = useQuery(filesQuery);
  const names = new Map(files.data?.map((file) => [file.key, file]));
  const add = async (list: File[]) => {
    const ended = await Promise.all(uploads.add(list));
    const keys = ended.flatMap((upload) => (upload.key ? [upload.key] : []));
    for (const upload of ended)
      if (upload.error) toast.error(`${upload.file.name}: ${sentence(new Error(upload.error))}`);
    await files.refetch();
    if (keys.length > 0) onChange(multiple ? [...value, ...keys] : keys.slice(-1));
  };
  return (
    <div>
      {value.length > 0 && (
        <ul className="mb-2 space-y-1">
          {value.map((key) => (
            <li key={key} className="flex items-center gap-2 rounded-md bg-sunken py-0.5 pr-1 pl-3 text-sm">
              <span className="min-w-0 flex-1 truncate">{names.get(key)?.name ?? addressIn(key) ?? key}</span>
              <span className="text-[13px] text-muted">{names.has(key) && bytes(sizeOf(names.get(key)))}</span>
              <IconButton
                size="sm"
                label={`Remove ${names.get(key)?.name ?? addressIn(key) ?? key}`}
                icon={<X className="size-4" aria-hidden />}
                onClick={() => onChange(value.filter((each) => each !== key))}
              />
            </li>
          ))}
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
        {!folder && (
          <DropZone multiple={multiple} icon={<FileUp />} onFiles={(list) => void add(list)}>
            Drop files here to upload and use them
          </DropZone>
        )}
        <Choices multiple={multiple} folder={folder} value={value} onChange={onChange} />
        <AddressField
          multiple={multiple}
          folder={folder}
          onAdd={(text) => onChange(multiple ? [...value.filter((each) => each !== text), text] : [text])}
        />
      </Dialog>
    </div>
  );
}

function Choices({
  multiple,
  folder,
  value,
  onChange,
}: Pick<FilePickerProps, "multiple" | "folder" | "value" | "onChange">) {
  const [words, setWords] = useState("");
  const files = useQuery(filesQuery);
  const found = (files.data ?? []).filter(
    (file) => (file.directory !== undefined) === folder && file.name.toLowerCase().includes(words.toLowerCase()),
  );
  const shown = found.slice(0, 100);
  return (
    <div className="mt-4">
      <SearchBox
        label="Search files"
        placeholder={folder ? "Search folders that runs made" : "Search uploads and outputs"}
        className="mb-2"
        value={words}
        onChange={(words) => setWords(words)}
      />
      <ul className="max-h-64 overflow-y-auto rounded-lg border">
        {shown.map((file) => (
          <li key={file.key} className="flex items-center gap-3 border-b px-3 py-1.5 text-sm last:border-b-0">
            <Checkbox
              className="min-w-0 flex-1"
              label={file.name}
              checked={value.includes(file.key)}
              onChange={(event) => {
                if (!event.target.checked) onChange(value.filter((key) => key !== file.key));
                else onChange(multiple ? [...value, file.key] : [file.key]);
              }}
            />
            <span className="text-[13px] whitespace-nowrap text-muted">
              {file.source === "output" ? "output · " : ""}
              {bytes(sizeOf(file))}
            </span>
          </li>
        ))}
        {found.length === 0 && (
          <li className="px-3 py-4 text-center text-sm text-muted">
            {words ? "No results" : folder ? "No run has made a folder yet." : "No files yet."}
          </li>
        )}
      </ul>
      {found.length > shown.length && (
        <p className="mt-1 text-[13px] text-muted">
          And {plural(found.length - shown.length, "more file")}: search by name.
        </p>
      )}
    </div>
  );
}
