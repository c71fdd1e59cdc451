import { type Api, ask } from "../api/client.ts";

// Tabs tell one another when somebody signs out.
const channel = typeof BroadcastChannel === "undefined" ? null : new BroadcastChannel("millrace");

/** signInAddress leads to the sign-in page and back here. */
export function signInAddress(next: string = location.pathname + location.search): string {
  return `/sign-in?next=${encodeURIComponent(next)}`;
}

export async function signOut(api: Api): Promise<void> {
  await ask(api.POST("/auth/sign-out"));
  signedOut();
}

/** signedOut leaves the pages of all tabs, once the session has ended. */
export function signedOut(): void {
  forget();
  channel?.postMessage("signed-out");
  location.assign("/sign-in");
}

/** forget leaves nothing of this person in the tab. */
export function forget(): void {
  sessionStorage.clear();
}

/** watchSession leaves the page when another tab has signed out. */
export function watchSession(): () => void {
  if (!channel) return () => {};
  const listen = (event: MessageEvent) => {
    if (event.data !== "signed-out") return;
    forget();
    location.assign(signInAddress());
  };
  channel.addEventListener("message", listen);
  return () => channel.removeEventListener("message", listen);
}
