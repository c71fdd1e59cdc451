import { useState } from "react";
import { useApi } from "../api/team.ts";
import { useTitle } from "../page/Page.tsx";
import { Button } from "../ui/Button.tsx";
import { signOut } from "./session.ts";
import { NewTeamDialog } from "./TeamSwitcher.tsx";

/** NoTeamPage is for somebody who belongs to no team: all work belongs to one. */
export function NoTeamPage() {
  useTitle("No team");
  const api = useApi();
  const [creating, setCreating] = useState(false);
  return (
    <main className="mx-auto w-full max-w-xl px-4 py-16 text-center">
      <h1>You're not in a team</h1>
      <p className="mt-2 mb-6 text-muted">
        Workflows, runs and files belong to a team. Create one, or open an invitation link.
      </p>
      <div className="flex justify-center gap-2">
        <Button look="primary" onClick={() => setCreating(true)}>
          Create a team
        </Button>
        <Button onClick={() => void signOut(api)}>Sign out</Button>
      </div>
      <NewTeamDialog open={creating} onOpenChange={setCreating} />
    </main>
  );
}
