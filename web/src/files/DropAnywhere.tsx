import { useEffect, useState } from "react";
import { sentence } from "../api/failure.ts";
import { type TeamClient, useTeam } from "../api/team.ts";
import { useMe, useWhyNot } from "../identity/queries.ts";
import { toast } from "../ui/toast.ts";
import { type Taken, taken } from "./taken.ts";

/** DropAnywhere uploads files that are dropped where nothing else takes them. It loads the queue with the first ones. */
export function DropAnywhere() {
  const { team } = useMe();
  if (!useDropAnywhere()) return null;
  return (
    <div className="pointer-events-none fixed inset-3 z-60 grid place-items-center rounded-xl border-2 border-dashed border-accent bg-bg/85 text-lg font-medium">
      Drop files or folders to upload them to {team.name}
    </div>
  );
}

/** useDropAnywhere reports whether files are being dragged over the page. */
function useDropAnywhere(): boolean {
  const [over, setOver] = useState(false);
  const refused = useWhyNot()("upload files");
  const team = useTeam();
  useEffect(() => {
    let depth = 0;
    const files = (event: DragEvent) => event.dataTransfer?.types.includes("Files") ?? false;
    const set = (next: number) => {
      depth = Math.max(0, next);
      setOver(depth > 0);
    };
    const listeners: [string, (event: DragEvent) => void][] = [
      ["dragenter", (event) => files(event) && set(depth + 1)],
      ["dragleave", (event) => files(event) && set(depth - 1)],
      ["dragover", (event) => files(event) && event.preventDefault()],
      [
        "drop",
        (event) => {
          set(0);
          if (!files(event) || event.defaultPrevented) return;
          event.preventDefault();
          if (refused) toast.error(refused);
          else if (event.dataTransfer)
            upload(team, taken(event.dataTransfer)).catch((error) => toast.error(sentence(error)));
        },
      ],
    ];
    for (const [name, listener] of listeners) addEventListener(name, listener as EventListener);
    return () => {
      for (const [name, listener] of listeners) removeEventListener(name, listener as EventListener);
    };
  }, [team, refused]);
  return over;
}

async function upload(team: TeamClient, dropped: Taken[]): Promise<void> {
  const load = Promise.all([import("./uploads.ts"), import("./dropped.ts")]);
  const [{ uploads }, { readAll }] = await load.catch(() => {
    throw new Error("Couldn't start the upload. Reload the page and try again.");
  });
  uploads.add(team, await readAll(dropped));
}
