import { QueryClientProvider } from "@tanstack/react-query";
import { Outlet } from "@tanstack/react-router";
import { useSyncExternalStore } from "react";
import { useTeams } from "../api/team.ts";

/** CurrentTeam shows a page in the team of this tab. Another team has a page of its own: no component outlives a switch. */
export function CurrentTeam() {
  const teams = useTeams();
  const client = useSyncExternalStore(teams.subscribe, teams.current);
  return (
    <QueryClientProvider key={client.team} client={client}>
      <Outlet />
    </QueryClientProvider>
  );
}
