import type { Schemas } from "../api/client.ts";

/** GuestEditor is the canvas for somebody who came by a share link; sharing/JoinPage has joined already. */
export default function GuestEditor({ join }: { join: Schemas["Joined"] | null }) {
  return <h1 className="p-8">{join?.workflow.name ?? "Shared workflow"}</h1>;
}
