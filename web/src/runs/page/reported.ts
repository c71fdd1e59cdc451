// Texts about a run that another engine reports.
import { queryOptions } from "@tanstack/react-query";
import { ask, type Schemas } from "../../api/client.ts";
import { apiOf } from "../../api/team.ts";
import { bytes, count, duration } from "../../ui/format.ts";

export type Task = Schemas["ReportedTask"];
export type Metric = Schemas["ReportedMetric"];

export const reportedQuery = (id: string, going: boolean) =>
  queryOptions({
    queryKey: ["reported", id, going],
    queryFn: ({ client }) => ask(apiOf(client).GET("/api/reported-runs/{id}", { params: { path: { id } } })),
    ...(going && { refetchInterval: 15_000 }),
  });

export const taskQuery = (id: string, task: number, attempt: number) =>
  queryOptions({
    queryKey: ["reported task", id, task, attempt],
    queryFn: ({ client }) =>
      ask(
        apiOf(client).GET("/api/reported-runs/{id}/tasks/{task}", {
          params: { path: { id, task }, query: { attempt } },
        }),
      ),
  });

/** taskFacts lists label and text of each known property of a task. */
export function taskFacts(task: Task): [string, string][] {
  const facts: [string, string | null][] = [
    ["Work folder", task.workDir],
    ["Container", task.container],
    ["Machine", task.host],
    ["Queue", task.queue],
    ["Job", task.nativeId],
    ["CPUs requested", task.cpus === null ? null : count(task.cpus)],
    ["CPU used", task.cpuPercent === null ? null : `${count(task.cpuPercent)}% of one core`],
    ["CPU time", task.cpuSeconds === null ? null : `${count(task.cpuSeconds)} s`],
    ["Memory requested", size(task.memoryBytes)],
    ["Peak memory", size(task.peakMemoryBytes)],
    ["Disk requested", size(task.diskBytes)],
    ["Time requested", task.timeMs === null ? null : duration(task.timeMs)],
    ["Read", size(task.readBytes)],
    ["Written", size(task.writtenBytes)],
  ];
  return facts.filter((fact): fact is [string, string] => fact[1] !== null && fact[1] !== "");
}

const size = (value: number | null) => (value === null ? null : bytes(value));

const percent = (value: number) => `${count(Math.round(value * 10) / 10)}%`;

/** measures are the metrics that engines report of tasks, in the order in which they are shown. */
export const measures: Record<string, { label: string; text: (value: number) => string }> = {
  mem: { label: "Memory", text: bytes },
  memUsage: { label: "Memory (% of request)", text: percent },
  cpu: { label: "CPU (% of one core)", text: percent },
  cpuUsage: { label: "CPU (% of request)", text: percent },
  time: { label: "Duration", text: duration },
  timeUsage: { label: "Duration (% of request)", text: percent },
  vmem: { label: "Virtual memory", text: bytes },
  reads: { label: "Read", text: bytes },
  writes: { label: "Written", text: bytes },
};

/** measured lists the metrics that a run has. */
export const measured = (metrics: readonly Metric[]): string[] =>
  Object.keys(measures).filter((of) => metrics.some((metric) => metric.of === of));

/** boxOf places the quartiles of a metric on a scale that ends at most: in percent of its width. */
export function boxOf(
  metric: Metric,
  most: number,
): { min: number; q1: number; median: number; q3: number; max: number } {
  const at = (value: number) => (most > 0 ? Math.min(100, Math.max(0, (value / most) * 100)) : 0);
  return {
    min: at(metric.min),
    q1: at(metric.q1),
    median: at(metric.median),
    q3: at(metric.q3),
    max: at(metric.max),
  };
}
