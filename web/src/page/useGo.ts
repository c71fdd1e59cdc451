import { useNavigate } from "@tanstack/react-router";
import { useTeam, useTeams } from "../api/team.ts";

/** useGo is navigate for what follows a request: it goes nowhere if another team is on screen by then. */
export function useGo(): ReturnType<typeof useNavigate> {
  const navigate = useNavigate();
  const team = useTeam();
  const teams = useTeams();
  return async (options) => {
    if (teams.current() === team) await navigate(options);
  };
}
