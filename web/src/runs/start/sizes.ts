// The sizes a run can be given.
import type { Schemas } from "../../api/client.ts";

export interface Size {
  key: string;
  name: string;
  compute: Schemas["ComputeSize"] | null;
  profile?: Schemas["ResourceProfile"];
}

export const sizes: Size[] = [
  { key: "small", name: "Small", compute: { vcpu: 1, ramGb: 4 } },
  { key: "standard", name: "Standard", compute: { vcpu: 2, ramGb: 8 } },
  { key: "large", name: "Large", compute: { vcpu: 4, ramGb: 16 } },
  { key: "huge", name: "Huge", compute: { vcpu: 16, ramGb: 64 } },
  { key: "gpu", name: "GPU", compute: null, profile: "gpu" },
];

/** chosenSize is the part of a request that selects a size. */
export function chosenSize(size: Size): Pick<Schemas["StartRun"], "compute" | "resourceProfile"> {
  if (size.profile) return { resourceProfile: size.profile };
  return size.compute ? { compute: size.compute } : {};
}

/** sizeOf is the preset with this compute, or a custom size. */
export function sizeOf(compute: Schemas["Compute"] | undefined): Size {
  const standard = sizes[1] as Size;
  if (!compute) return standard;
  if (compute.gpu > 0) return sizes.find((size) => size.profile === "gpu") ?? standard;
  const { vcpu, ramGb } = compute;
  const preset = sizes.find((size) => size.compute?.vcpu === vcpu && size.compute.ramGb === ramGb);
  return preset ?? { key: "custom", name: "Custom", compute: { vcpu, ramGb } };
}

/** Available is what a run can have: the capacities of the executors, as far as they are known, and a GPU or none. */
export interface Available extends Pick<Schemas["RunSizes"], "capacities" | "gpu"> {
  /** The executor that was chosen by name. */
  executor?: string;
}

/** ofExecutors is what the executors have, or the one that was chosen. `gpu` is whether the server has any. */
export function ofExecutors(
  executors: readonly Pick<Schemas["Executor"], "name" | "capacity">[],
  gpu: boolean,
  executor = "",
): Available {
  const offered = executors.filter(({ name }) => executor === "" || name === executor);
  const capacities = offered.map(({ capacity }) => capacity).filter(({ vcpu }) => vcpu > 0);
  if (executor === "" || capacities.length === 0) return { capacities, gpu };
  return { executor, capacities, gpu: capacities.some((capacity) => capacity.gpu > 0) };
}

/** fits tells whether a run can have a size. Where no capacity is known, any CPU and memory fits. */
export function fits({ compute }: Size, { capacities, gpu }: Available): boolean {
  if (compute === null) return gpu;
  if (capacities.length === 0) return true;
  return capacities.some(({ vcpu, ramGb }) => compute.vcpu <= vcpu && compute.ramGb <= ramGb);
}

/** firstSize is the size that a form begins with: the standard one, or the largest below it that fits. */
export function firstSize(available: Available): Size {
  const standard = sizes[1] as Size;
  return [standard, ...sizes.slice(0, 1)].find((size) => fits(size, available)) ?? standard;
}

/** overText says what happens to a run that is larger than every executor; null for a size that fits. */
export function overText(size: Size, available: Available): string | null {
  if (size.compute === null || fits(size, available)) return null;
  const largest = available.capacities.toSorted((a, b) => b.vcpu - a.vcpu)[0];
  if (!largest) return null;
  const text = ({ vcpu, ramGb }: Schemas["ComputeSize"]) => `${vcpu} vCPU and ${ramGb} GB`;
  return `${available.executor ?? "This server"} has ${text(largest)}. The run gets the whole machine, and is billed for ${text(size.compute)}.`;
}
