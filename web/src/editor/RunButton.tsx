import { Play } from "lucide-react";
import { useState } from "react";
import { useStore } from "zustand";
import { sentence } from "../api/failure.ts";
import { inWords } from "../definition/problems.ts";
import { Button } from "../ui/Button.tsx";
import { toast } from "../ui/toast.ts";
import { useEditor, useSession } from "./context.ts";

/** cannotRun says why a run cannot start. Its promise never ends, so that nothing follows. */
export function cannotRun(error: unknown): Promise<never> {
  toast.error("Can't run yet", { description: sentence(error) });
  return new Promise(() => {});
}

/** RunButton opens the run dialog once the server has every edit, and says what keeps the workflow from running. */
export function RunButton({ notAllowed, onRun }: { notAllowed: string | null; onRun: () => void }) {
  const { session, problems } = useEditor();
  const ready = useSession((state) => state.ready);
  const list = useStore(problems, (state) => state.list)?.filter((each) => !each.warning) ?? [];
  const [busy, setBusy] = useState(false);
  const opening = ready ? null : "The workflow is loading.";
  const more = list.length > 1 ? ` (${list.length} problems)` : "";
  const problem = list[0] ? sentence(inWords(list[0])) + more : null;
  const run = async () => {
    setBusy(true);
    try {
      await session.flush();
      onRun();
    } catch (error) {
      void cannotRun(error);
    }
    setBusy(false);
  };
  return (
    <Button
      size="sm"
      look="primary"
      busy={busy}
      icon={<Play className="size-4" aria-hidden />}
      disabledReason={notAllowed ?? opening ?? problem}
      onClick={() => void run()}
    >
      Run
    </Button>
  );
}
