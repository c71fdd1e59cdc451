import { useState } from "react";

/**
 * Report is a page that a run made, with its scripts, in a frame that nothing leaves: see
 * docs/decisions/0048-reports.md. Its first address is kept: another one would load it again.
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
