import { CloudAlert, CloudCheck, CloudOff, CloudUpload, Eye } from "lucide-react";
import { Button } from "../ui/Button.tsx";
import { Notice } from "../ui/Notice.tsx";
import { useEditor, useSession } from "./context.ts";

/** SaveState shows whether the workflow is saved; there is nothing to press. */
export function SaveState() {
  const save = useSession((state) => state.save);
  const canEdit = useSession((state) => state.canEdit);
  const ready = useSession((state) => state.ready);
  const { Icon, words } =
    ready && !canEdit
      ? { Icon: Eye, words: "View only" }
      : {
          opening: { Icon: CloudUpload, words: "Loading…" },
          saved: { Icon: CloudCheck, words: "Saved" },
          saving: { Icon: CloudUpload, words: "Saving…" },
          offline: { Icon: CloudOff, words: "Offline: saved on this device" },
          conflict: { Icon: CloudAlert, words: "Not saved" },
          refused: { Icon: CloudAlert, words: "Not saved" },
        }[save];
  return (
    <span role="status" className="flex items-center gap-1.5 text-[13px] whitespace-nowrap text-muted">
      <Icon className="size-4" aria-hidden />
      {words}
    </span>
  );
}

/** SaveTrouble asks what to do when a save was refused. */
export function SaveTrouble() {
  const { session } = useEditor();
  const save = useSession((state) => state.save);
  const refusal = useSession((state) => state.refusal);
  if (save === "conflict") {
    return (
      <Notice
        tone="warn"
        className="m-2"
        title="Someone else saved this workflow"
        actions={
          <>
            <Button size="sm" onClick={() => void session.reload()}>
              Show theirs
            </Button>
            <Button size="sm" look="danger-quiet" onClick={() => void session.overwrite()}>
              Keep mine
            </Button>
          </>
        }
      >
        Your changes since then aren't saved.
      </Notice>
    );
  }
  if (save === "refused") {
    return (
      <Notice tone="danger" className="m-2" title="Your latest changes aren't saved">
        {refusal} Fix this to save them.
      </Notice>
    );
  }
  return null;
}
