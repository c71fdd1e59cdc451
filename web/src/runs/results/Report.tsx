import { useState } from "react";

/**
 * Report shows an HTML file of a run, with its scripts, in a sandboxed frame: see
 * docs/decisions/0048-reports.md. The first URL is kept, because a changed URL would reload the frame.
 */
export function Report({ title, url, className }: { title: string; url: string; className?: string }) {
  const [address] = useState(url);
  return (
    <iframe
      title={title}
      src={address}
      sandbox="allow-scripts"
      allow=""
      referrerPolicy="no-referrer"
      loading="lazy"
      className={`w-full rounded-lg border bg-[white] ${className ?? "h-[32rem]"}`}
    />
  );
}
