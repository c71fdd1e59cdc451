import { lazy } from "react";
import { JoinPage } from "../sharing/JoinPage.tsx";

const GuestEditor = lazy(() => import("../editor/GuestEditor.tsx"));

/** JoinRoute joins the page that a share link leads to with the editor that it opens. */
export function JoinRoute() {
  return <JoinPage Editor={GuestEditor} />;
}
