import { Handle, Position } from "@xyflow/react";
import { Code, GitBranch, type LucideIcon, Recycle, ShieldOff, Split, Terminal } from "lucide-react";
import type { ReactNode } from "react";
import { classes } from "../ui/classes.ts";
import type { CardData } from "./flow.ts";
import { card, portY } from "./ports.ts";
import { useLevel } from "./view.ts";

interface NodeCardProps {
  data: CardData;
  selected: boolean;
  connectable: boolean;
  /** A colour for the card's edge: a state, or another person. */
  tint?: string | undefined;
  /** What stands in the head's corner. */
  corner?: ReactNode;
  faded?: boolean;
  /** The second line, in place of the interpreter or image and the marks. */
  line?: ReactNode;
}

const marks: [(data: CardData) => boolean, LucideIcon, string][] = [
  [({ node }) => Boolean(node.scatter), Split, "Runs once per item"],
  [({ node }) => Boolean(node.when), GitBranch, "Runs only if its condition is true"],
  [({ node }) => node.cache === true, Recycle, "Reuses earlier results"],
  [({ node }) => node.allowFailure === true, ShieldOff, "The run continues if this fails"],
];

/** NodeCard is a step on the canvas, the same in the editor and on the run page. */
export function NodeCard({ data, selected, connectable, tint, corner, faded, line }: NodeCardProps) {
  const level = useLevel();
  const { node, ports } = data;
  const Icon = node.interpreter && !/^(ba)?sh$/.test(node.interpreter) ? Code : Terminal;
  return (
    <div
      className={classes(
        "relative h-full rounded-[10px] border-2 text-left text-sm",
        // From afar it is a block of one colour, without a shadow: thousands of them are drawn.
        level === 0 ? (selected ? "bg-accent" : "bg-field-line") : "bg-surface shadow-[0_1px_3px_rgb(0_0_0/10%)]",
        selected ? "border-accent ring-3 ring-accent/25" : level === 2 ? "border-line" : "border-field-line",
        faded && "opacity-35",
      )}
      style={tint ? { borderColor: tint, ...(level === 0 && { background: tint }) } : undefined}
    >
      {level === 1 && (
        <div className="grid h-full place-items-center overflow-hidden px-2 text-center leading-tight font-semibold">
          <span className="line-clamp-2 text-[26px]">{node.name || node.id}</span>
          {corner && <span className="absolute -top-3 -right-3 scale-175 rounded-full bg-surface">{corner}</span>}
        </div>
      )}
      {level === 2 && (
        <>
          <div className="flex items-center gap-2 px-3" style={{ height: card.head - 4 }}>
            <Icon className="size-4 shrink-0 text-muted" aria-hidden />
            <div className="min-w-0 flex-1">
              <p className="truncate leading-tight font-medium">{node.name || node.id}</p>
              <p className="flex items-center gap-1 truncate text-xs text-muted">
                {line ?? <span className="truncate">{node.image || node.interpreter || "bash"}</span>}
                {marks.map(
                  ([holds, Mark, title]) =>
                    !line &&
                    holds(data) && (
                      <span key={title} title={title} className="shrink-0">
                        <Mark className="size-3" aria-label={title} role="img" />
                      </span>
                    ),
                )}
              </p>
            </div>
            {corner}
          </div>
          {ports.inputs.map((port, row) => (
            <p
              key={`in ${port.name}`}
              className="absolute left-3 max-w-[46%] truncate text-xs"
              style={{ top: portY(row) - 11 }}
              title={port.from ? `${port.name} from ${port.from}` : port.name}
            >
              {port.name}
              {port.from && <span className="text-muted"> ← {port.from.replace(/^inputs\./, "")}</span>}
              {port.optional && <span className="text-muted"> ?</span>}
            </p>
          ))}
          {ports.outputs.map((port, row) => (
            <p
              key={`out ${port.name}`}
              className="absolute right-3 max-w-[46%] truncate text-right text-xs"
              style={{ top: portY(row) - 11 }}
              title={port.name}
            >
              {port.name}
              {port.many && <span className="text-muted"> ∗</span>}
              {port.optional && <span className="text-muted"> ?</span>}
            </p>
          ))}
        </>
      )}
      {/* Lines know their ends without them; from afar nobody could take hold of one. */}
      {level === 2 && <Ends data={data} connectable={connectable} />}
    </div>
  );
}

function Ends({ data: { ports }, connectable }: { data: CardData; connectable: boolean }) {
  const common = { isConnectable: connectable };
  return (
    <>
      <Handle type="target" position={Position.Left} className="head" style={{ top: card.head / 2 - 2 }} {...common} />
      <Handle type="source" position={Position.Right} className="head" style={{ top: card.head / 2 - 2 }} {...common} />
      {ports.inputs.map((port, row) => (
        <Handle
          key={port.name}
          id={port.name}
          type="target"
          position={Position.Left}
          style={{ top: portY(row) - 2 }}
          {...common}
        />
      ))}
      {ports.outputs.map((port, row) => (
        <Handle
          key={port.name}
          id={port.name}
          type="source"
          position={Position.Right}
          style={{ top: portY(row) - 2 }}
          {...common}
        />
      ))}
    </>
  );
}

/** NoteCard is a remark beside the steps. */
export function NoteCard({ data, selected, tint }: { data: CardData; selected: boolean; tint?: string | undefined }) {
  const level = useLevel();
  const text = data.node.text || data.node.name;
  return (
    <div
      className={classes(
        "h-full overflow-hidden rounded-[10px] border-2 bg-warn-soft px-3 py-2 text-[13px] whitespace-pre-wrap",
        selected ? "border-accent" : "border-transparent",
      )}
      style={tint ? { borderColor: tint } : undefined}
    >
      {level > 0 && (text || <span className="text-muted">Empty note</span>)}
    </div>
  );
}
