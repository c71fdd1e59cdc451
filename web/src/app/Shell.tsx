import { Link, Outlet, useNavigate, useRouterState } from "@tanstack/react-router";
import { Menu as MenuIcon, Search, WifiOff, X } from "lucide-react";
import { lazy, Suspense, useEffect, useState } from "react";
import { isFailure } from "../api/failure.ts";
import { DropAnywhere } from "../files/DropAnywhere.tsx";
import { useTrayShown } from "../files/tray.ts";
import { NoTeamPage } from "../identity/NoTeamPage.tsx";
import { useArrival, useMissing } from "../identity/queries.ts";
import { signInAddress, watchSession } from "../identity/session.ts";
import { TeamSwitcher } from "../identity/TeamSwitcher.tsx";
import { UserMenu } from "../identity/UserMenu.tsx";
import { Bell } from "../notifications/Bell.tsx";
import { Problem } from "../page/Problem.tsx";
import { Button, IconButton } from "../ui/Button.tsx";
import { classes } from "../ui/classes.ts";
import { useLate } from "../ui/Skeleton.tsx";
import { useConnection } from "./connection.ts";
import { HelpLink } from "./HelpLink.tsx";
import { NoticeBar } from "./NoticeBar.tsx";
import { PublicFrame } from "./PublicFrame.tsx";
import { places } from "./rail.ts";
import { useShortcuts } from "./shortcuts.ts";
import { ThemeMenu } from "./ThemeMenu.tsx";

const UploadTray = lazy(() => import("../files/UploadTray.tsx"));
const Palette = lazy(() => import("./Palette.tsx"));

/** Inside is the frame of all pages that need somebody signed in, in a team. */
export function Inside() {
  const { me, error, retry } = useArrival();
  useEffect(watchSession, []);
  useEffect(() => {
    if (me === null) location.replace(signInAddress());
  }, [me]);
  if (error) {
    return (
      <>
        <NoticeBar />
        {isFailure(error, "no_team") ? (
          <NoTeamPage />
        ) : (
          <main className="mx-auto w-full max-w-2xl px-4 py-16">
            <h1 className="mb-4">Millrace</h1>
            <Problem error={error} retry={() => void retry()} />
          </main>
        )}
      </>
    );
  }
  return me ? <Shell /> : <Opening />;
}

/** Either is the frame of pages for everybody: the shell for those signed in, a plain header for visitors. */
export function Either() {
  const { me, error } = useArrival();
  useEffect(watchSession, []);
  if (me) return <Shell />;
  return me === null || error ? <PublicFrame /> : <Opening />;
}

function Opening() {
  const late = useLate(400);
  return (
    <main role="status" className="grid flex-1 place-items-center text-sm text-muted">
      {late && "Loading Millrace…"}
    </main>
  );
}

function Shell() {
  const [palette, setPalette] = useState(false);
  const [drawer, setDrawer] = useState(false);
  const tray = useTrayShown();
  const path = useRouterState({ select: (state) => state.location.pathname });
  // The editor fills the window, less what is above it.
  const editing = useRouterState({
    select: ({ matches }) => matches.some((match) => match.routeId === "/inside/workflows/$workflowId"),
  });
  const navigate = useNavigate();
  useShortcuts({ openPalette: () => setPalette(true), go: (to) => void navigate({ to }) });
  // biome-ignore lint/correctness/useExhaustiveDependencies: a new page closes the drawer
  useEffect(() => setDrawer(false), [path]);
  return (
    <div className="flex min-h-dvh flex-1 md:pl-56 print:pl-0!">
      <a
        href="#content"
        className="fixed top-2 left-2 z-70 -translate-y-16 rounded-md bg-accent px-3 py-2 text-sm text-accent-ink focus:translate-y-0"
      >
        Skip to content
      </a>
      <Rail open={drawer} onClose={() => setDrawer(false)} onPalette={() => setPalette(true)} />
      <div className={classes("flex min-w-0 flex-1 flex-col", editing && "h-dvh")}>
        <header className="sticky top-0 z-20 flex h-13 items-center gap-1 border-b bg-surface px-2 md:hidden print:hidden">
          <IconButton
            label="Open menu"
            icon={<MenuIcon className="size-5" aria-hidden />}
            onClick={() => setDrawer(true)}
          />
          <Link to="/workflows" className="px-1 font-semibold">
            Millrace
          </Link>
          <span className="flex-1" />
          <Bell />
          <IconButton
            label="Search and commands"
            icon={<Search className="size-5" aria-hidden />}
            onClick={() => setPalette(true)}
          />
        </header>
        <NoticeBar />
        <ConnectionBar />
        <main id="content" tabIndex={-1} className="flex min-h-0 flex-1 flex-col outline-none">
          <Outlet />
        </main>
      </div>
      <DropAnywhere />
      {tray && (
        <Suspense fallback={null}>
          <UploadTray />
        </Suspense>
      )}
      {palette && (
        <Suspense fallback={null}>
          <Palette onClose={() => setPalette(false)} />
        </Suspense>
      )}
    </div>
  );
}

function Rail({ open, onClose, onPalette }: { open: boolean; onClose: () => void; onPalette: () => void }) {
  useEffect(() => {
    if (!open) return;
    const close = (event: KeyboardEvent) => event.key === "Escape" && onClose();
    addEventListener("keydown", close);
    return () => removeEventListener("keydown", close);
  }, [open, onClose]);
  const free = useMissing("billing");
  return (
    <>
      {open && <div className="fixed inset-0 z-30 bg-[rgb(8_14_18/45%)] md:hidden" onClick={onClose} aria-hidden />}
      <nav
        aria-label="Main"
        className={classes(
          "fixed inset-y-0 left-0 z-30 w-64 flex-col border-r bg-surface md:z-10 md:flex md:w-56 print:hidden!",
          open ? "flex shadow-lift md:shadow-none" : "hidden",
        )}
      >
        <div className="flex h-14 items-center gap-2 px-4">
          <img src="/favicon.svg" alt="" className="size-6" />
          <Link to="/workflows" className="text-[1.05rem] font-semibold tracking-tight">
            Millrace
          </Link>
          <span className="flex-1" />
          <IconButton
            size="sm"
            label="Close menu"
            className="md:hidden"
            icon={<X className="size-4" aria-hidden />}
            onClick={onClose}
          />
        </div>
        <div className="space-y-2 px-3 pb-2">
          <TeamSwitcher />
          <Button
            size="sm"
            look="quiet"
            className="w-full justify-start! px-2.5 font-normal text-muted!"
            icon={<Search className="size-4" aria-hidden />}
            onClick={onPalette}
          >
            Search
            <kbd className="ml-auto rounded border px-1 text-[11px]">Ctrl K</kbd>
          </Button>
        </div>
        <ul className="flex-1 space-y-0.5 overflow-y-auto px-3">
          {places.map(({ to, label, icon: Icon }) => (
            <li key={to}>
              <Link
                to={to}
                activeProps={{ className: "bg-accent-soft font-medium text-accent", "aria-current": "page" }}
                inactiveProps={{ className: "text-ink hover:bg-sunken" }}
                className="flex h-9 items-center gap-2.5 rounded-lg px-2.5 text-sm"
              >
                <Icon className="size-4.5" aria-hidden />
                {to === "/billing" && free ? "Quotas" : label}
              </Link>
            </li>
          ))}
        </ul>
        <div className="flex items-center gap-1 border-t p-2">
          <UserMenu />
          <Bell />
          <HelpLink />
          <ThemeMenu />
        </div>
      </nav>
    </>
  );
}

function ConnectionBar() {
  const connection = useConnection();
  return (
    <div role="status" aria-live="polite">
      {connection !== "online" && (
        <p className="flex items-center gap-2 border-b bg-warn-soft px-4 py-1.5 text-sm">
          <WifiOff className="size-4 text-warn" aria-hidden />
          {connection === "offline"
            ? "You're offline. What you see may be out of date."
            : "Can't reach the server; reconnecting. What you see may be out of date."}
        </p>
      )}
    </div>
  );
}
