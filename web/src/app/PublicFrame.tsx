import { Link, Outlet } from "@tanstack/react-router";
import { signInAddress } from "../identity/session.ts";
import { buttonClass } from "../ui/Button.tsx";
import { HelpLink } from "./HelpLink.tsx";
import { NoticeBar } from "./NoticeBar.tsx";
import { ThemeMenu } from "./ThemeMenu.tsx";

/** PublicFrame is around pages that need no account. */
export function PublicFrame() {
  return (
    <>
      <header className="flex h-14 items-center gap-3 border-b bg-surface px-4">
        <img src="/favicon.svg" alt="" className="size-6" />
        <Link to="/papers" className="text-[1.05rem] font-semibold tracking-tight">
          Millrace
        </Link>
        <span className="flex-1" />
        <HelpLink />
        <ThemeMenu />
        <a href={signInAddress()} className={buttonClass("secondary", "sm")}>
          Sign in
        </a>
      </header>
      <NoticeBar />
      <main id="content" tabIndex={-1} className="flex flex-1 flex-col outline-none">
        <Outlet />
      </main>
    </>
  );
}
