// Text about executors in the run dialog.
import { queryOptions } from "@tanstack/react-query";
import { ask, type Schemas } from "../../api/client.ts";
import { apiOf } from "../../api/team.ts";

export const executorsQuery = queryOptions({
  queryKey: ["executors"],
  queryFn: ({ client }) => ask(apiOf(client).GET("/api/executors")),
  staleTime: 15_000,
});

/** executorText describes an executor: its free capacity, usual wait and price. */
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
