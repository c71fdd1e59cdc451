// Fields say themselves what is wrong with them, and offer the fix where the server
// knows one.
import {
  createContext,
  type ReactNode,
  use,
  useCallback,
  useEffect,
  useId,
  useLayoutEffect,
  useReducer,
  useRef,
  useState,
} from "react";
import { sentence } from "../api/failure.ts";
import { type Finding, isAt } from "../definition/problems.ts";
import { Button } from "../ui/Button.tsx";
import { classes } from "../ui/classes.ts";
import { Notice } from "../ui/Notice.tsx";
import { useCanEdit, useGraph, useWorkspace } from "./context.ts";

interface Place {
  field: string;
  only: boolean;
}

const shows = ({ field, only }: Place, finding: Finding) => (only ? finding.field === field : isAt(finding, field));

/** The problems and warnings of the step, or of the workflow, whose fields are shown. */
const Findings = createContext<readonly Finding[]>([]);
/** Registers a field that shows its findings itself. */
const Registering = createContext<(place: Place) => () => void>(() => () => {});

/** WithFindings has every finding shown: by the Marked field inside that has it, else above the fields. */
export function WithFindings({ findings, children }: { findings: readonly Finding[]; children: ReactNode }) {
  const [places] = useState(() => new Set<Place>());
  const [, look] = useReducer((count: number) => count + 1, 0);
  const register = useCallback(
    (place: Place) => {
      places.add(place);
      look();
      return () => {
        places.delete(place);
        look();
      };
    },
    [places],
  );
  const others = findings.filter((finding) => ![...places].some((place) => shows(place, finding)));
  return (
    <Findings value={findings}>
      <Registering value={register}>
        {others.length > 0 && <Others findings={others} />}
        {children}
      </Registering>
    </Findings>
  );
}

function Others({ findings }: { findings: readonly Finding[] }) {
  const element = useRef<HTMLDivElement>(null);
  useSought(findings, element);
  return (
    <div ref={element}>
      <Notice tone="warn">
        {findings.map((finding) => (
          <FindingText key={finding.path + finding.message} finding={finding} className="text-ink!" />
        ))}
      </Notice>
    </div>
  );
}

interface Mark {
  "aria-invalid"?: true;
  "aria-describedby"?: string;
}

const Marking = createContext<Mark>({});

/** useMark returns what a control needs that stands for a field with a problem. */
export function useMark(): Mark {
  return use(Marking);
}

interface MarkedProps {
  field: string;
  /** Fields inside of it show their problems themselves. */
  only?: boolean;
  children: ReactNode;
  className?: string;
}

/** Marked shows what is wrong with a field below it, and marks the controls inside. */
export function Marked({ field, only = false, children, className }: MarkedProps) {
  const list = use(Findings).filter((each) => shows({ field, only }, each));
  const register = use(Registering);
  useLayoutEffect(() => register({ field, only }), [register, field, only]);
  const id = useId();
  const element = useRef<HTMLDivElement>(null);
  useSought(list, element);
  const mark: Mark =
    list.length === 0
      ? {}
      : { "aria-describedby": id, ...(list.some((each) => !each.warning) && { "aria-invalid": true as const }) };
  return (
    <div ref={element} className={className}>
      <Marking value={mark}>{children}</Marking>
      {list.length > 0 && (
        <div id={id} data-marked={field} className="mt-1 space-y-1">
          {list.map((finding) => (
            <FindingText key={finding.path + finding.message} finding={finding} />
          ))}
        </div>
      )}
    </div>
  );
}

/** useSought scrolls to a field that somebody was led to, and gives it the keyboard. */
function useSought(list: readonly Finding[], element: React.RefObject<HTMLElement | null>): void {
  const { sought } = useWorkspace();
  const paths = list.map((each) => each.path).join("\n");
  useEffect(() => {
    const look = () => {
      const { finding } = sought.getState();
      if (!finding || !paths.split("\n").includes(finding.path) || !element.current) return;
      sought.setState({ finding: null });
      element.current.scrollIntoView({ block: "center" });
      element.current.querySelector<HTMLElement>("input, textarea, select, [contenteditable=true]")?.focus();
    };
    look();
    return sought.subscribe(look);
  }, [sought, paths, element]);
}

/** FindingText says what is wrong, and offers the fix. */
export function FindingText({ finding, className }: { finding: Finding; className?: string }) {
  return (
    <div className={classes("text-[13px]", finding.warning ? "text-muted" : "text-danger", className)}>
      <span className="break-words">{sentence(finding.message)}</span> <FixButton finding={finding} />
    </div>
  );
}

/** FixButton makes the edits that solve a problem; undo takes them back. */
export function FixButton({ finding }: { finding: Finding }) {
  const { document } = useGraph();
  const canEdit = useCanEdit();
  // What is solved is still listed until the server has looked again.
  const [applied, setApplied] = useState<Finding | null>(null);
  if (!finding.fix || !canEdit) return null;
  const { label, edits } = finding.fix;
  return (
    <Button
      size="sm"
      className="mt-0.5 h-7!"
      busy={applied === finding}
      onClick={() => {
        document.apply(edits);
        setApplied(finding);
      }}
    >
      {label}
    </Button>
  );
}
