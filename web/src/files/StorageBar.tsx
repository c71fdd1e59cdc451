import { useQuery } from "@tanstack/react-query";
import { creditsQuery } from "../billing/queries.ts";
import { useMissing } from "../identity/queries.ts";
import { bytes } from "../ui/format.ts";
import { Progress } from "../ui/Progress.tsx";

/** StorageBar is how much of the plan's room is taken. */
export function StorageBar() {
  const free = useMissing("billing");
  const storage = useQuery(creditsQuery).data?.storage;
  if (!storage) return null;
  const { usedBytes, limitBytes } = storage;
  if (limitBytes === null) {
    return (
      <p className="mb-5 text-sm text-muted">
        {bytes(usedBytes)} stored{free ? "." : ", at 3 credits per GB and month."}
      </p>
    );
  }
  const percent = (usedBytes / limitBytes) * 100;
  return (
    <div className="mb-5 max-w-md">
      <p className="mb-1 flex justify-between text-sm">
        <span>Storage</span>
        <span className="tabular text-muted">
          {bytes(usedBytes)} of {bytes(limitBytes)}
        </span>
      </p>
      <Progress
        value={percent}
        label="Storage used"
        {...(percent > 90 ? { tone: "danger" as const } : percent > 75 ? { tone: "warn" as const } : {})}
      />
    </div>
  );
}
