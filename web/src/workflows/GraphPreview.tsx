import { type Box, boxes } from "./model.ts";
import type { Definition } from "./queries.ts";

const width = 200;
const height = 56;

/** line goes from side to side, or from bottom to top where the next box is below. */
function line(from: Box, to: Box): string {
  if (to.x > from.x) {
    const [x1, y1, x2, y2] = [from.x + width, from.y + height / 2, to.x, to.y + height / 2];
    return `M${x1} ${y1} C${x1 + 30} ${y1} ${x2 - 30} ${y2} ${x2} ${y2}`;
  }
  const [x1, y1, x2, y2] = [from.x + width / 2, from.y + height, to.x + width / 2, to.y];
  return `M${x1} ${y1} C${x1} ${y1 + 20} ${x2} ${y2 - 20} ${x2} ${y2}`;
}

/** GraphPreview is a definition as a small picture, at most as large as on the canvas. */
export function GraphPreview({
  definition,
  label,
  className,
}: {
  definition: Definition;
  label: string;
  className?: string;
}) {
  const nodes = boxes(definition);
  if (nodes.length === 0) return <p className="text-sm text-muted">No steps yet.</p>;
  const at = new Map(nodes.map((node) => [node.id, node]));
  const left = Math.min(...nodes.map((node) => node.x)) - 12;
  const top = Math.min(...nodes.map((node) => node.y)) - 12;
  const right = Math.max(...nodes.map((node) => node.x)) + width + 12;
  const bottom = Math.max(...nodes.map((node) => node.y)) + height + 12;
  return (
    <svg
      role="img"
      aria-label={label}
      viewBox={`${left} ${top} ${right - left} ${bottom - top}`}
      className={className}
      style={{ maxWidth: right - left }}
      preserveAspectRatio="xMidYMid meet"
    >
      {(definition.edges ?? []).map((edge) => {
        const from = at.get(edge.source);
        const to = at.get(edge.target);
        if (!from || !to) return null;
        return <path key={edge.id} d={line(from, to)} fill="none" stroke="var(--muted)" strokeWidth={2} />;
      })}
      {nodes.map((node) => (
        <g key={node.id}>
          <rect
            x={node.x}
            y={node.y}
            width={width}
            height={height}
            rx={9}
            fill="var(--surface)"
            stroke="var(--accent)"
            strokeWidth={2}
          />
          <text
            x={node.x + width / 2}
            y={node.y + height / 2}
            dominantBaseline="central"
            textAnchor="middle"
            fontSize={17}
            fill="var(--ink)"
          >
            {node.label.length > 20 ? `${node.label.slice(0, 19)}…` : node.label}
          </text>
        </g>
      ))}
    </svg>
  );
}
