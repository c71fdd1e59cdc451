import { useEffect, useRef } from "react";
import { Button } from "./Button.tsx";

/** More reads on in a list, when it is pressed or comes into view. */
export function More({ onMore, busy }: { onMore: () => void; busy: boolean }) {
  const place = useRef<HTMLDivElement>(null);
  const latest = useRef(onMore);
  useEffect(() => {
    latest.current = onMore;
  });
  useEffect(() => {
    if (busy || !place.current) return;
    const seen = new IntersectionObserver((entries) => entries.at(-1)?.isIntersecting && latest.current());
    seen.observe(place.current);
    return () => seen.disconnect();
  }, [busy]);
  return (
    <div ref={place} className="p-2 text-center">
      <Button size="sm" busy={busy} onClick={onMore}>
        Show more
      </Button>
    </div>
  );
}
