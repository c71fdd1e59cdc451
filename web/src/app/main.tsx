import "../ui/styles.css";
import { MutationCache } from "@tanstack/react-query";
import { RouterProvider } from "@tanstack/react-router";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { onFailure } from "../api/client.ts";
import { isFailure, sentence } from "../api/failure.ts";
import { enterTeamOfAddress, TeamClient, Teams, TeamsProvider } from "../api/team.ts";
import { signInAddress } from "../identity/session.ts";
import { Toasts } from "../ui/Toasts.tsx";
import { toast } from "../ui/toast.ts";
import { serverAnswered } from "./connection.ts";
import { makeRouter } from "./router.tsx";

enterTeamOfAddress();
const teams = new Teams(
  (team) =>
    new TeamClient(team, {
      defaultOptions: {
        queries: {
          staleTime: 10_000,
          retry: (failures, error) => failures < 2 && isFailure(error) && (error.status === 0 || error.status >= 502),
        },
      },
      // A failed action says so, unless its form shows it in place.
      mutationCache: new MutationCache({
        onError: (error, _variables, _context, mutation) => {
          if (mutation.meta?.shown === true) return;
          toast.error(
            sentence(error),
            isFailure(error) && error.requestId ? { description: `Request ${error.requestId}` } : {},
          );
        },
      }),
    }),
);

onFailure((failure) => {
  serverAnswered(failure.status !== 0);
  const signedIn = teams.current().getQueryData(["me"]);
  if (failure.status === 401 && signedIn) location.assign(signInAddress());
});

const router = makeRouter();
const place = document.getElementById("root");
if (place) {
  createRoot(place).render(
    <StrictMode>
      <TeamsProvider value={teams}>
        <RouterProvider router={router} />
      </TeamsProvider>
      <Toasts />
    </StrictMode>,
  );
}
