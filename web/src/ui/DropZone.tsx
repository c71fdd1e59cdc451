import { LoaderCircle } from "lucide-react";
import { type ReactNode, useRef, useState } from "react";
import { classes } from "./classes.ts";

interface DropZoneProps {
  onFiles: (files: File[]) => void;
  children: ReactNode;
  icon?: ReactNode;
  accept?: string;
  multiple?: boolean;
  /** A click chooses a folder, whose files are given. */
  folder?: boolean;
  /** Reads what is dropped, if it is more than files, and says itself what cannot be read. */
  read?: (dropped: DataTransfer) => Promise<File[]>;
  busy?: boolean;
}

/** DropZone takes files that are dropped on it, or chosen after a click. */
export function DropZone({
  onFiles,
  children,
  icon,
  accept,
  multiple = true,
  folder = false,
  read,
  busy = false,
}: DropZoneProps) {
  const [over, setOver] = useState(false);
  const input = useRef<HTMLInputElement>(null);
  const take = (list: readonly File[]) => {
    if (list.length > 0) onFiles(list.slice(0, multiple || folder ? undefined : 1));
  };
  return (
    <>
      <button
        type="button"
        aria-busy={busy}
        className={classes(
          "flex w-full flex-col items-center gap-2 rounded-xl border-2 border-dashed px-6 py-8 text-sm text-muted hover:border-accent hover:text-ink [&>svg]:size-6",
          over && "border-accent bg-accent-soft text-ink",
        )}
        onClick={() => !busy && input.current?.click()}
        onDragOver={(event) => {
          event.preventDefault();
          setOver(true);
        }}
        onDragLeave={() => setOver(false)}
        onDrop={(event) => {
          event.preventDefault(); // which also keeps the page from taking it
          setOver(false);
          if (busy) return;
          if (read) void read(event.dataTransfer).then(take);
          else take([...event.dataTransfer.files]);
        }}
      >
        {busy ? <LoaderCircle className="animate-spin" aria-hidden /> : icon}
        <span>{children}</span>
      </button>
      <input
        ref={input}
        type="file"
        className="hidden"
        tabIndex={-1}
        aria-hidden
        multiple={multiple}
        {...(accept && { accept })}
        {...(folder && { webkitdirectory: "" })}
        onChange={(event) => {
          take([...(event.target.files ?? [])]);
          event.target.value = "";
        }}
      />
    </>
  );
}
