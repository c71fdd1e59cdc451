// What the dialog says of executors, without a browser.
import type { Schemas } from "../api/client.ts";

/** executorText is what one wants to know of an executor before choosing it. */
export function executorText(
  { name, free, capacity, typicalWaitMs, priceFactor, problem }: Schemas["Executor"],
  time: (ms: number) => string,
): string {
  if (problem) return `${name}: not available`;
  const parts = [
    `${free.vcpu} of ${capacity.vcpu} vCPU free`,
    ...(capacity.gpu > 0 ? [`${free.gpu} of ${capacity.gpu} GPU free`] : []),
    ...(typicalWaitMs !== null && typicalWaitMs >= 1000 ? [`usually starts within ${time(typicalWaitMs)}`] : []),
    ...(priceFactor !== 1 ? [`${priceFactor} × the price`] : []),
  ];
  return `${name}: ${parts.join(", ")}`;
}
