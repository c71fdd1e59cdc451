import "uplot/dist/uPlot.min.css";
import { useEffect, useRef } from "react";
import uPlot from "uplot";
import { useDark } from "../../page/theme.ts";
import { bytes, duration } from "../../ui/format.ts";
import type { RunStore } from "../runStore.ts";

/** Plot draws CPU and memory of the run while the page is open. */
export default function Plot({ store }: { store: RunStore }) {
  const place = useRef<HTMLDivElement>(null);
  const dark = useDark();
  // biome-ignore lint/correctness/useExhaustiveDependencies: another theme needs other colours
  useEffect(() => {
    const parent = place.current;
    if (!parent) return;
    const style = getComputedStyle(document.documentElement);
    const color = (name: string) => style.getPropertyValue(name).trim();
    const axis = {
      stroke: color("--muted"),
      grid: { stroke: color("--line"), width: 1 },
      ticks: { stroke: color("--line") },
    };
    const plot = new uPlot(
      {
        width: parent.clientWidth,
        height: 240,
        scales: {
          x: { time: false },
          cpu: { range: (_, __, max) => [0, Math.max(10, max * 1.1)] },
          mem: { range: (_, __, max) => [0, Math.max(1 << 20, max * 1.1)] },
        },
        axes: [
          { ...axis, values: (_, ticks) => ticks.map(seconds) },
          { ...axis, scale: "cpu", values: (_, ticks) => ticks.map((tick) => `${tick}%`), size: 56 },
          { ...axis, scale: "mem", side: 1, grid: { show: false }, values: (_, ticks) => ticks.map(bytes), size: 72 },
        ],
        series: [
          { label: "Elapsed", value: (_, value) => (value === null ? "–" : seconds(value)) },
          {
            label: "CPU (% of one core)",
            scale: "cpu",
            stroke: color("--info"),
            width: 2,
            value: (_, value) => (value === null ? "–" : `${value.toFixed(0)}%`),
          },
          {
            label: "Memory",
            scale: "mem",
            stroke: color("--accent"),
            width: 2,
            dash: [6, 4],
            value: (_, value) => (value === null ? "–" : bytes(value)),
          },
        ],
      },
      data(store),
      parent,
    );
    const stop = store.onSample(() => plot.setData(data(store)));
    const resize = new ResizeObserver(() => plot.setSize({ width: parent.clientWidth, height: 240 }));
    resize.observe(parent);
    return () => {
      stop();
      resize.disconnect();
      plot.destroy();
    };
  }, [store, dark]);
  return <div ref={place} role="img" aria-label="CPU and memory over time" className="[&_.u-legend]:text-[13px]" />;
}

const seconds = (s: number) => duration(s * 1000);

function data(store: RunStore): uPlot.AlignedData {
  const { samples } = store;
  const { startedAt } = store.state.getState().run;
  const start = startedAt ? Date.parse(startedAt) / 1000 : (samples[0]?.at ?? 0);
  return [
    samples.map((sample) => Math.max(0, sample.at - start)),
    samples.map((sample) => sample.cpuPercent),
    samples.map((sample) => sample.memBytes),
  ];
}
