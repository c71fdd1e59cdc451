import { queryOptions, useQuery } from "@tanstack/react-query";
import { type ReactNode, useEffect } from "react";
import { ask } from "../api/client.ts";
import { isFailure } from "../api/failure.ts";
import { apiOf, type Teams, useTeams } from "../api/team.ts";
import { toast } from "../ui/toast.ts";

const kinds: Record<string, string> = { workflows: "workflow", runs: "run", files: "file", papers: "analysis" };

/** elsewhereQuery is which other team of the person's has something, or null. */
const elsewhereQuery = (teams: Teams, id: string) =>
  queryOptions({
    queryKey: ["elsewhere", id],
    queryFn: async ({ client }) => {
      try {
        const { teamId, path } = await ask(apiOf(client).GET("/api/where/{id}", { params: { path: { id } } }));
        if (teamId === teams.current().team) return null; // it was made a moment ago
        const { team } = await ask(teams.of(teamId).api.GET("/api/me"));
        const kind = path.startsWith("/runs/sweeps/") ? "sweep" : kinds[path.split(/[/?]/)[1] ?? ""];
        return { team, kind: kind ?? "page" };
      } catch (error) {
        if (isFailure(error) && error.status === 404) return null;
        throw error;
      }
    },
    staleTime: 0,
    gcTime: 0,
  });

interface ElsewhereProps {
  /** A workflow, run, sweep or analysis by its id, or a file by its key. */
  id: string;
  /** What is shown while the other teams are asked. */
  loading?: ReactNode;
  /** What is shown when no team has it. */
  children?: ReactNode;
}

/** Elsewhere looks for what this team does not have in the person's other teams: the tab enters the one that has it. */
export function Elsewhere({ id, loading, children }: ElsewhereProps) {
  const teams = useTeams();
  const { data: found, isPending } = useQuery(elsewhereQuery(teams, id));
  useEffect(() => {
    if (!found || teams.current().team === found.team.id) return;
    toast.info(`Switched to ${found.team.name}, the team of this ${found.kind}.`);
    teams.enter(found.team.id);
  }, [found, teams]);
  return isPending || found ? loading : children;
}
