// The sizes a run can be given.
import type { Schemas } from "../api/client.ts";

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

/** chosenSize is what a request carries of a size. */
export function chosenSize(size: Size): Pick<Schemas["StartRun"], "compute" | "resourceProfile"> {
  if (size.profile) return { resourceProfile: size.profile };
  return size.compute ? { compute: size.compute } : {};
}

/** sizeOf is the preset that an earlier run had, or one of its own. */
export function sizeOf(compute: Schemas["Compute"] | undefined): Size {
  const standard = sizes[1] as Size;
  if (!compute) return standard;
  if (compute.gpu > 0) return sizes.find((size) => size.profile === "gpu") ?? standard;
  const { vcpu, ramGb } = compute;
  const preset = sizes.find((size) => size.compute?.vcpu === vcpu && size.compute.ramGb === ramGb);
  return preset ?? { key: "custom", name: "Custom", compute: { vcpu, ramGb } };
}
