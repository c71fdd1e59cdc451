import { type UseQueryResult, useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { bare, type Schemas } from "../../api/client.ts";
import { sentence } from "../../api/failure.ts";
import { apiOf } from "../../api/team.ts";
import { creditsQuery } from "../../billing/queries.ts";
import { useMaybeMe, useMissing } from "../../identity/queries.ts";
import { classes } from "../../ui/classes.ts";
import { Input } from "../../ui/Field.tsx";
import { credits, duration } from "../../ui/format.ts";
import { Notice } from "../../ui/Notice.tsx";
import { executorsQuery } from "./executorText.ts";
import { type Available, chosenSize, fits, ofExecutors, overText, type Size, sizes } from "./sizes.ts";

/** useEstimate reads the price of a size. Guests get none. */
export function useEstimate(
  workflowId: string | null,
  size: Size,
  { tags = [], executor = "" }: { tags?: string[]; executor?: string } = {},
): UseQueryResult<Schemas["Estimate"]> {
  const body = {
    ...chosenSize(size),
    ...(workflowId && { workflowId }),
    ...(tags.length > 0 && { tags }),
    ...(executor && { executor }),
  };
  return useQuery({
    queryKey: ["estimate", body],
    queryFn: ({ client }) => bare(apiOf(client).POST("/api/billing/estimate", { body })),
    enabled: workflowId !== null,
    staleTime: 30_000,
  });
}

interface AvailableOptions {
  /** Of a guest, who is told what there is when they join: whatever else the browser is signed in to does not matter. */
  guest?: Schemas["RunSizes"] | undefined;
  /** The executor that was chosen by name. */
  executor?: string;
}

/** useAvailable is what a run can have on this server. */
export function useAvailable({ guest, executor }: AvailableOptions = {}): Available {
  const signedIn = useMaybeMe() !== null;
  const { data = [] } = useQuery({ ...executorsQuery, enabled: signedIn && !guest });
  const noGpu = useMissing("gpu");
  return guest ?? ofExecutors(data, !noGpu, executor);
}

interface SizePickerProps {
  size: Size;
  available: Available;
  onChange: (size: Size) => void;
}

/** SizePicker chooses how large the run is. */
export function SizePicker({ size, available, onChange }: SizePickerProps) {
  const own = size.key === "custom" ? size.compute : null;
  const all = [
    ...sizes,
    { key: "custom", name: "Custom", compute: own ?? size.compute ?? { vcpu: 4, ramGb: 16 } } satisfies Size,
  ];
  const describe = (preset: Size) =>
    preset.key === "custom"
      ? "choose"
      : preset.compute
        ? `${preset.compute.vcpu} vCPU · ${preset.compute.ramGb} GB`
        : "T4 · 16 GB";
  const over = overText(size, available);
  const missing = (preset: Size) => preset.key !== "custom" && !fits(preset, available);
  const place = available.executor ?? "this server";
  return (
    <fieldset>
      <legend className="mb-2 font-semibold">Size</legend>
      <div className="grid grid-cols-2 gap-2 sm:grid-cols-3 lg:grid-cols-6">
        {all.map((preset) => (
          <label
            key={preset.key}
            className={classes(
              "cursor-pointer rounded-lg border px-3 py-2 has-focus-visible:outline-2 has-focus-visible:outline-accent",
              preset.key === size.key ? "border-accent bg-accent-soft" : "hover:bg-sunken",
            )}
          >
            <input
              type="radio"
              name="size"
              className="sr-only"
              checked={preset.key === size.key}
              disabled={missing(preset) && preset.key !== size.key}
              onChange={() => onChange(preset)}
            />
            <span className="block text-sm font-medium">{preset.name}</span>
            <span className="block text-xs text-muted">
              {describe(preset)}
              {missing(preset) && (
                <span className="block">
                  {preset.profile === "gpu" ? `Not available on ${place}` : `Too large for ${place}`}
                </span>
              )}
            </span>
          </label>
        ))}
      </div>
      {own && (
        <div className="mt-2 flex gap-3 text-sm">
          {(["vcpu", "ramGb"] as const).map((key) => (
            // biome-ignore lint/a11y/noLabelWithoutControl: the control is its child
            <label key={key} className="flex items-center gap-2">
              {key === "vcpu" ? "vCPU" : "GB"}
              <Input
                type="number"
                min={1}
                className="w-24!"
                value={own[key]}
                onChange={(event) =>
                  onChange({ ...size, compute: { ...own, [key]: Math.max(1, Number(event.target.value) || 1) } })
                }
              />
            </label>
          ))}
        </div>
      )}
      {over && <p className="mt-2 text-sm">{over}</p>}
    </fieldset>
  );
}

/** EstimateNote shows the price of the chosen size and the credits left. */
export function EstimateNote({ estimate }: { estimate: UseQueryResult<Schemas["Estimate"]> }) {
  const free = useMissing("billing");
  const balance = useQuery(creditsQuery);
  const { data } = estimate;
  if (!data)
    return <p className="h-16 text-sm text-muted">{estimate.isError ? "Couldn't get an estimate." : "Estimating…"}</p>;
  if (!data.allowed) {
    return (
      <Notice tone="warn" title="This size isn't available">
        {sentence(new Error(data.reason ?? "it exceeds your plan"))}{" "}
        <Link to="/billing" className="underline">
          {free ? "See quotas" : "See plans and credits"}
        </Link>
      </Notice>
    );
  }
  if (free) {
    return null;
  }
  const left = balance.data?.remaining;
  const hour = data.creditsPerHour;
  const runs = data.typical;
  return (
    <div className="space-y-2">
      <dl className="grid grid-cols-2 gap-x-6 gap-y-2 rounded-lg bg-sunken px-4 py-3 text-sm sm:grid-cols-4">
        <Item term="Price">{credits(hour)} credits/hour</Item>
        <Item term="Typical cost">
          {runs ? `≈ ${credits(runs.credits)} in ${duration(runs.p50Seconds * 1000)}` : "no earlier runs"}
        </Item>
        <Item term="Balance">{left === undefined ? "…" : `${credits(left)} credits`}</Item>
        <Item term="Time limit">
          {timeLimit(Math.min(data.affordableSeconds, data.planCaps.maxRunSeconds ?? Number.POSITIVE_INFINITY))}
        </Item>
      </dl>
      {data.warnings.length > 0 && (
        <Notice tone="warn" title="A budget may run out">
          {data.warnings.map((warning) => (
            <p key={warning}>{warning}</p>
          ))}
        </Notice>
      )}
    </div>
  );
}

const century = 100 * 365 * 86_400;

/** timeLimit is how long a run may take. Credits do not limit a size without a price. */
function timeLimit(seconds: number): string {
  return seconds > century ? "none" : duration(seconds * 1000);
}

function Item({ term, children }: { term: string; children: React.ReactNode }) {
  return (
    <div>
      <dt className="text-[13px] text-muted">{term}</dt>
      <dd className="tabular font-medium">{children}</dd>
    </div>
  );
}
