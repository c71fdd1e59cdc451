import { useQuery } from "@tanstack/react-query";
import { useNavigate, useParams } from "@tanstack/react-router";
import { useEffect } from "react";
import { useTeams } from "../api/team.ts";
import { Problem } from "../page/Problem.tsx";
import { toast } from "../ui/toast.ts";
import { meQuery } from "./queries.ts";

/** JoinedPage is where an accepted invitation leads: it enters the team and says so. */
export function JoinedPage() {
  const { teamId } = useParams({ from: "/team/joined/$teamId" });
  const teams = useTeams();
  const navigate = useNavigate();
  const { data: me, error, isFetching, refetch } = useQuery(meQuery, teams.of(teamId));
  useEffect(() => {
    if (me === undefined) return;
    if (me && teams.current().team !== teamId) return teams.enter(teamId); // this page begins again in it
    if (me) toast.ok(`You joined ${me.team.name} as ${me.team.role}.`);
    void navigate({ to: "/workflows", search: {}, replace: true });
  }, [me, navigate, teams, teamId]);
  return (
    <main id="content" className="mx-auto w-full max-w-xl px-4 py-16">
      {error && me === undefined && !isFetching && (
        <Problem error={error} title="You joined the team, but it can't be shown yet" retry={() => void refetch()} />
      )}
    </main>
  );
}
