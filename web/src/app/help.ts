// Which page of the documentation explains which page of the app.

/** By the beginning of a page's path; the longest that fits counts. */
const pages: Record<string, string> = {
  "/": "",
  "/workflows": "workflows",
  "/workflows/": "web#the-editor",
  "/templates": "recipes",
  "/runs": "runs",
  "/runs/": "web#runs",
  "/runs/pipelines": "reported-runs",
  "/runs/compare": "runs#finding-it-again",
  "/runs/sweeps": "runs#several-at-once",
  "/files": "files",
  "/papers": "ai",
  "/chat": "ai#chat",
  "/billing": "billing",
  "/notifications": "notifications",
  "/team": "identity#teams-and-roles",
  "/audit": "audit",
  "/operator": "operating/operators",
  "/secrets": "secrets",
  "/connections": "connections",
  "/account": "identity#looking-after-an-account",
  "/launch": "runs",
  "/join": "sharing#guests",
  "/results": "sharing#results",
};

/** helpFor is the address of the documentation on a page of the app. */
export function helpFor(path: string): string {
  const fits = Object.keys(pages).filter((page) => path.startsWith(page));
  const longest = fits.reduce((a, b) => (b.length > a.length ? b : a), "/");
  const page = pages[longest];
  return page ? `/help/${page}` : "/help";
}
