import { createRootRoute, createRoute, createRouter, lazyRouteComponent, redirect } from "@tanstack/react-router";
import { CurrentTeam } from "./CurrentTeam.tsx";
import { ErrorPage, NotFoundPage } from "./ErrorPage.tsx";
import { Either, Inside } from "./Shell.tsx";
import { flag, oneOf, parseSearch, stringifySearch, text } from "./search.ts";

// Every view is a URL: what is selected, filtered or open lives in the search
// parameters, read here and nowhere else. internal/httpapi/system/app.go names the
// same paths; a browser test holds the two together.

const root = createRootRoute({ component: CurrentTeam, notFoundComponent: NotFoundPage });
const inside = createRoute({ getParentRoute: () => root, id: "inside", component: Inside });
const either = createRoute({ getParentRoute: () => root, id: "either", component: Either });

const home = createRoute({
  getParentRoute: () => root,
  path: "/",
  beforeLoad: () => {
    throw redirect({ to: "/workflows", replace: true });
  },
});

export const workflowsRoute = createRoute({
  getParentRoute: () => inside,
  path: "/workflows",
  validateSearch: (search) => ({
    ...text(search, "q"),
    ...oneOf(search, "sort", ["name", "created", "updated"] as const),
    ...text(search, "folder"),
    ...flag(search, "favorites"),
    ...flag(search, "create"),
    ...flag(search, "import"),
    ...flag(search, "git"),
  }),
  component: lazyRouteComponent(() => import("../workflows/WorkflowsPage.tsx"), "WorkflowsPage"),
});

export const templatesRoute = createRoute({
  getParentRoute: () => inside,
  path: "/templates",
  component: lazyRouteComponent(() => import("../workflows/TemplatesPage.tsx"), "TemplatesPage"),
});

export const editorRoute = createRoute({
  getParentRoute: () => inside,
  path: "/workflows/$workflowId",
  validateSearch: (search) => ({
    ...text(search, "node"),
    ...text(search, "panel"),
    ...text(search, "from"),
    ...flag(search, "run"),
    ...flag(search, "share"),
  }),
  component: lazyRouteComponent(() => import("../editor/EditorPage.tsx"), "EditorPage"),
});

export const schedulesRoute = createRoute({
  getParentRoute: () => inside,
  path: "/workflows/$workflowId/schedules",
  component: lazyRouteComponent(() => import("../schedules/SchedulesPage.tsx"), "SchedulesPage"),
});

export const runsRoute = createRoute({
  getParentRoute: () => inside,
  path: "/runs",
  validateSearch: (search) => ({
    ...oneOf(search, "status", ["queued", "running", "completed", "failed", "cancelled", "interrupted"] as const),
    ...text(search, "workflow"),
    ...oneOf(search, "since", ["1d", "7d", "30d"] as const),
    ...text(search, "q"),
    ...text(search, "tag"),
    ...flag(search, "mine"),
    ...flag(search, "favorites"),
  }),
  component: lazyRouteComponent(() => import("../runs/list/RunsPage.tsx"), "RunsPage"),
});

export const runRoute = createRoute({
  getParentRoute: () => inside,
  path: "/runs/$runId",
  validateSearch: (search) => ({
    ...text(search, "tab"),
    ...text(search, "node"),
    ...text(search, "line"),
    ...text(search, "byte"),
    ...text(search, "item"),
    ...text(search, "q"),
  }),
  component: lazyRouteComponent(() => import("../runs/page/RunPage.tsx"), "RunPage"),
});

export const reportRoute = createRoute({
  getParentRoute: () => inside,
  path: "/runs/$runId/report",
  validateSearch: (search) => text(search, "key"),
  component: lazyRouteComponent(() => import("../runs/results/ReportPage.tsx"), "ReportPage"),
});

export const pipelinesRoute = createRoute({
  getParentRoute: () => inside,
  path: "/runs/pipelines",
  validateSearch: (search) => oneOf(search, "engine", ["nextflow", "snakemake"] as const),
  component: lazyRouteComponent(() => import("../runs/list/PipelinesPage.tsx"), "PipelinesPage"),
});

export const compareRoute = createRoute({
  getParentRoute: () => inside,
  path: "/runs/compare",
  validateSearch: (search) => ({ ...text(search, "a"), ...text(search, "b") }),
  component: lazyRouteComponent(() => import("../runs/list/ComparePage.tsx"), "ComparePage"),
});

export const sweepsRoute = createRoute({
  getParentRoute: () => inside,
  path: "/runs/sweeps",
  component: lazyRouteComponent(() => import("../runs/sweeps/SweepsPage.tsx"), "SweepsPage"),
});

export const sweepRoute = createRoute({
  getParentRoute: () => inside,
  path: "/runs/sweeps/$sweepId",
  validateSearch: (search) => ({ ...text(search, "outputs"), ...text(search, "by"), ...flag(search, "down") }),
  component: lazyRouteComponent(() => import("../runs/sweeps/SweepPage.tsx"), "SweepPage"),
});

export const filesRoute = createRoute({
  getParentRoute: () => inside,
  path: "/files",
  validateSearch: (search) => ({
    ...text(search, "q"),
    ...oneOf(search, "source", ["upload", "output"] as const),
    ...text(search, "preview"),
  }),
  component: lazyRouteComponent(() => import("../files/FilesPage.tsx"), "FilesPage"),
});

export const papersRoute = createRoute({
  getParentRoute: () => either,
  path: "/papers",
  validateSearch: (search) => ({ ...text(search, "doi"), ...text(search, "id") }),
  component: lazyRouteComponent(() => import("../ai/PapersPage.tsx"), "PapersPage"),
});

export const chatRoute = createRoute({
  getParentRoute: () => inside,
  path: "/chat",
  validateSearch: (search) => ({ ...text(search, "run"), ...text(search, "paper") }),
  component: lazyRouteComponent(() => import("../ai/ChatPage.tsx"), "ChatPage"),
});

export const billingRoute = createRoute({
  getParentRoute: () => inside,
  path: "/billing",
  validateSearch: (search) => oneOf(search, "days", ["7", "30", "90", "180"] as const),
  component: lazyRouteComponent(() => import("../billing/BillingPage.tsx"), "BillingPage"),
});

export const topUpReturnRoute = createRoute({
  getParentRoute: () => inside,
  path: "/billing/return",
  validateSearch: (search) => oneOf(search, "topup", ["done", "cancelled"] as const),
  component: lazyRouteComponent(() => import("../billing/ReturnPage.tsx"), "ReturnPage"),
});

export const teamRoute = createRoute({
  getParentRoute: () => inside,
  path: "/team",
  component: lazyRouteComponent(() => import("../identity/TeamPage.tsx"), "TeamPage"),
});

export const webhooksRoute = createRoute({
  getParentRoute: () => inside,
  path: "/team/webhooks",
  component: lazyRouteComponent(() => import("../webhooks/WebhooksPage.tsx"), "WebhooksPage"),
});

export const notificationsRoute = createRoute({
  getParentRoute: () => inside,
  path: "/notifications",
  component: lazyRouteComponent(() => import("../notifications/NotificationsPage.tsx"), "NotificationsPage"),
});

export const auditRoute = createRoute({
  getParentRoute: () => inside,
  path: "/audit",
  component: lazyRouteComponent(() => import("../audit/AuditPage.tsx"), "AuditPage"),
});

export const operatorRoute = createRoute({
  getParentRoute: () => inside,
  path: "/operator",
  component: lazyRouteComponent(() => import("../operator/OperatorPage.tsx"), "OperatorPage"),
});

export const secretsRoute = createRoute({
  getParentRoute: () => inside,
  path: "/secrets",
  component: lazyRouteComponent(() => import("../secrets/SecretsPage.tsx"), "SecretsPage"),
});

export const connectionsRoute = createRoute({
  getParentRoute: () => inside,
  path: "/connections",
  component: lazyRouteComponent(() => import("../connections/ConnectionsPage.tsx"), "ConnectionsPage"),
});

export const accountRoute = createRoute({
  getParentRoute: () => inside,
  path: "/account",
  component: lazyRouteComponent(() => import("../account/AccountPage.tsx"), "AccountPage"),
});

/** A prefilled launch: /launch?workflow=wf_…&parameters={…} opens the run dialog. */
export const launchRoute = createRoute({
  getParentRoute: () => inside,
  path: "/launch",
  validateSearch: (search) => ({
    ...text(search, "workflow"),
    ...text(search, "parameters"),
    ...text(search, "inputs"),
  }),
  component: lazyRouteComponent(() => import("../runs/start/LaunchPage.tsx"), "LaunchPage"),
});

export const joinRoute = createRoute({
  getParentRoute: () => root,
  path: "/join",
  component: lazyRouteComponent(() => import("./JoinRoute.tsx"), "JoinRoute"),
});

export const resultsRoute = createRoute({
  getParentRoute: () => root,
  path: "/results",
  component: lazyRouteComponent(() => import("../sharing/ResultsPage.tsx"), "ResultsPage"),
});

export const joinedRoute = createRoute({
  getParentRoute: () => root,
  path: "/team/joined/$teamId",
  component: lazyRouteComponent(() => import("../identity/JoinedPage.tsx"), "JoinedPage"),
});

export function makeRouter() {
  return createRouter({
    routeTree: root.addChildren([
      home,
      joinRoute,
      resultsRoute,
      joinedRoute,
      either.addChildren([papersRoute]),
      inside.addChildren([
        workflowsRoute,
        templatesRoute,
        editorRoute,
        schedulesRoute,
        runsRoute,
        runRoute,
        reportRoute,
        pipelinesRoute,
        compareRoute,
        sweepsRoute,
        sweepRoute,
        filesRoute,
        chatRoute,
        billingRoute,
        topUpReturnRoute,
        teamRoute,
        secretsRoute,
        auditRoute,
        operatorRoute,
        notificationsRoute,
        webhooksRoute,
        connectionsRoute,
        accountRoute,
        launchRoute,
      ]),
    ]),
    parseSearch,
    stringifySearch,
    defaultPreload: "intent",
    defaultErrorComponent: ErrorPage,
    defaultNotFoundComponent: NotFoundPage,
    scrollRestoration: true,
  });
}

declare module "@tanstack/react-router" {
  interface Register {
    router: ReturnType<typeof makeRouter>;
  }
}
