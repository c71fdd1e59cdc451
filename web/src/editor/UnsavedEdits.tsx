import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Download } from "lucide-react";
import type { ReactNode } from "react";
import { useMe } from "../identity/queries.ts";
import { Button } from "../ui/Button.tsx";
import { save } from "../ui/download.ts";
import { Notice } from "../ui/Notice.tsx";
import { Time } from "../ui/Time.tsx";
import { useEditor, useSession } from "./context.ts";
import { definitionIn } from "./unsaved.ts";
import { editsOf, forgetEdits, type UnsavedEdits } from "./unsavedStore.ts";

/** LeftEdits asks what becomes of edits made offline that do not fit what is here now. */
export function LeftEdits({ name }: { name: string }) {
  const { session } = useEditor();
  const left = useSession((state) => state.left);
  const canEdit = useSession((state) => state.canEdit);
  if (left.length === 0) return null;
  return (
    <EditsNotice
      edits={left}
      name={name}
      discard={() => session.discardLeft()}
      apply={
        canEdit && (
          <Button size="sm" look="primary" onClick={() => session.applyLeft()}>
            Apply my changes
          </Button>
        )
      }
    >
      {canEdit
        ? "The workflow was reset or saved by someone else since. Applying your changes overwrites theirs where both changed the same field."
        : "You no longer have edit access, so they can't be saved here."}
    </EditsNotice>
  );
}

/** LostEdits tells of edits to a workflow that cannot be opened any more. */
export function LostEdits({ workflow }: { workflow: { id: string; name: string } }) {
  const { id } = useMe();
  const client = useQueryClient();
  const place = `${id} ${workflow.id}`;
  const edits = useQuery({
    queryKey: ["unsaved", place],
    queryFn: () => editsOf(place),
    staleTime: 0,
    networkMode: "always",
  });
  if (!edits.data?.length) return null;
  return (
    <EditsNotice
      edits={edits.data}
      name={workflow.name}
      discard={async () => {
        await forgetEdits(edits.data.map(({ key }) => key));
        await client.invalidateQueries({ queryKey: ["unsaved", place] });
      }}
    >
      The workflow can't be opened, so they can't be saved to it. Download them as a file and import it as a new
      workflow.
    </EditsNotice>
  );
}

interface NoticeProps {
  edits: UnsavedEdits[];
  name: string;
  discard: () => void;
  apply?: ReactNode;
  children: ReactNode;
}

function EditsNotice({ edits, name, discard, apply, children }: NoticeProps) {
  const last = edits.at(-1);
  if (!last) return null;
  const download = () => {
    for (const each of edits) {
      const text = JSON.stringify({ name, definition: definitionIn(each) }, null, 2);
      save(`${name} with my changes.json`, text, "application/json");
    }
  };
  return (
    <Notice
      tone="warn"
      className="m-2"
      title="Changes you made offline aren't saved"
      actions={
        <>
          {apply}
          <Button size="sm" icon={<Download className="size-4" aria-hidden />} onClick={download}>
            Download
          </Button>
          <Button size="sm" look="danger-quiet" onClick={discard}>
            Discard
          </Button>
        </>
      }
    >
      Made <Time at={new Date(last.at).toISOString()} /> on this device. {children}
    </Notice>
  );
}
