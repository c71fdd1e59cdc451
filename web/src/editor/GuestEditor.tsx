import { Eye, PencilLine } from "lucide-react";
import { useEffect, useState } from "react";
import { useStore } from "zustand";
import { ask, type Schemas } from "../api/client.ts";
import { useApi } from "../api/team.ts";
import { useTitle } from "../page/Page.tsx";
import { RunDialog } from "../runs/start/RunDialog.tsx";
import { useGraph } from "./context.ts";
import { Editor, Ended, type View } from "./Editor.tsx";
import type { Pass } from "./live.ts";
import { People } from "./People.tsx";
import { RunButton } from "./RunButton.tsx";
import { Session } from "./session.ts";
import { LeftEdits } from "./UnsavedEdits.tsx";

type Joined = Schemas["Joined"];

function passOf({ roomToken, room, collabUrl, role, expiresAt }: Joined): Pass {
  return { token: roomToken, room, collabUrl, role, expiresAt };
}

/** GuestEditor is the editor for somebody who came by a share link; sharing/JoinPage has joined already. */
export default function GuestEditor({ join }: { join: Joined }) {
  const api = useApi();
  const [session, setSession] = useState<Session | null>(null);
  useTitle(join.workflow.name);
  useEffect(() => {
    let first: Joined | null = join;
    const invite = decodeURIComponent(location.hash.replace(/^#/, ""));
    const made = new Session({
      mayEdit: join.role === "editor",
      user: { name: join.guest.name },
      place: `guest ${join.room}`,
      // Joining again renews an expired pass; the same browser stays the same guest.
      pass: async () => {
        const joined = first ?? (await ask(api.POST("/api/collab/join", { body: { invite, name: join.guest.name } })));
        first = null;
        return passOf(joined);
      },
      load: async () => ({ definition: join.workflow.definition, tag: null }),
    });
    setSession(made);
    return () => made.destroy();
  }, [api, join]);
  return session && <Living session={session} join={join} />;
}

function Living({ session, join }: { session: Session; join: Joined }) {
  const ending = useStore(session.state, (state) => state.ending);
  const [view, setView] = useState<View>({ node: null, panel: null });
  const [running, setRunning] = useState(false);
  if (ending) {
    return (
      <Ended title={ending === "revoked" ? "This link no longer works" : "This workflow is closed"}>
        {ending === "revoked"
          ? "It has expired or was revoked. Ask the person who sent it for a new one."
          : "It may have been deleted. Open the link again to check."}
      </Ended>
    );
  }
  const editor = join.role === "editor";
  const Icon = editor ? PencilLine : Eye;
  return (
    <main id="content" className="[&>div]:h-dvh">
      <Editor
        session={session}
        workflowId={null}
        name={join.workflow.name}
        title={<h1 className="truncate text-base!">{join.workflow.name}</h1>}
        view={view}
        onView={(change) => setView((old) => ({ ...old, ...change }))}
        banner={
          <>
            <LeftEdits name={join.workflow.name} />
            <p className="flex items-start gap-x-2 border-b bg-info-soft px-4 py-1.5 text-[13px]">
              <Icon className="mt-0.5 size-4 shrink-0" aria-hidden />
              <span>
                You joined as guest <strong>{join.guest.name}</strong>:{" "}
                {editor
                  ? "you can edit and run this workflow, and the team that shared it pays for runs"
                  : "you can view this workflow"}
                . <span className="text-muted">Access ends when the link expires.</span>
              </span>
            </p>
          </>
        }
        actions={
          <>
            <People />
            {editor && join.runToken && <RunButton notAllowed={null} onRun={() => setRunning(true)} />}
            {running && join.runToken && (
              <GuestRun token={join.runToken} join={join} onClose={() => setRunning(false)} />
            )}
          </>
        }
      />
    </main>
  );
}

// What a guest learns of the sizes where the server does not say: nothing is known to be missing.
const anySize: Schemas["RunSizes"] = { capacities: [], gpu: true };

function GuestRun({ token, join, onClose }: { token: string; join: Joined; onClose: () => void }) {
  const { document } = useGraph();
  return (
    <RunDialog
      workflowId={join.workflow.id}
      open
      onOpenChange={(open) => !open && onClose()}
      guest={{ token, definition: document.definition(), sizes: join.runSizes ?? anySize }}
    />
  );
}
