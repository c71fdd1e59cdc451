import { lazy, Suspense } from "react";

const GuestEditor = lazy(() => import("../editor/GuestEditor.tsx"));

/** JoinPage takes a share link's token from the fragment and joins as a guest. */
export function JoinPage() {
  return (
    <Suspense fallback={null}>
      <GuestEditor join={null} />
    </Suspense>
  );
}
