// Controls that write into the shared document: a draft while somebody types, kept
// after a pause or on leaving.
import { Plus, Trash2 } from "lucide-react";
import { type ComponentProps, type ReactNode, useEffect, useId, useRef, useState } from "react";
import { mergeText } from "../definition/merge.ts";
import { namePattern } from "../definition/names.ts";
import { Button, IconButton } from "../ui/Button.tsx";
import { classes } from "../ui/classes.ts";
import { Input, Textarea } from "../ui/Field.tsx";
import { useMark } from "./Marked.tsx";

interface DraftProps {
  value: string;
  /** While a promise is pending, the draft is still shown. */
  onKeep: (value: string) => void | Promise<void>;
  /** A reason not to keep it; it stays a draft, until it is put right or Escape discards it. */
  refuse?: (value: string) => string | null;
  /** Kept on leaving alone, not after a pause. */
  whole?: boolean;
  /** What others write into the value meanwhile is kept, too. */
  merges?: boolean;
}

interface Draft {
  text: string;
  /** The value that the draft began from, or was kept as. */
  base: string;
  /** Whether the value that this draft was kept as is still to come. */
  expects: boolean;
}

const pause = 500;

function useDraft({ value, onKeep, refuse, whole = false, merges = false }: DraftProps) {
  const [draft, setDraft] = useState<Draft | null>(null);
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  const latest = useRef({ value, onKeep, refuse, draft });
  useEffect(() => {
    latest.current = { value, onKeep, refuse, draft };
  });
  const keep = () => {
    clearTimeout(timer.current);
    const now = latest.current;
    if (!now.draft || now.draft.text === now.draft.base || now.refuse?.(now.draft.text)) return;
    const { text, base } = now.draft;
    const kept = merges ? mergeText(base, text, now.value) : text;
    const next = { text: kept, base: kept, expects: kept !== now.value };
    latest.current = { ...now, draft: next };
    setDraft(next);
    if (kept !== now.value) return now.onKeep(kept);
  };
  // A draft that was kept gives way to what somebody else writes.
  const seen = useRef(value);
  useEffect(() => {
    if (seen.current === value) return;
    seen.current = value;
    setDraft((old) => {
      if (!old || old.text !== old.base) return old;
      return old.expects ? { ...old, expects: false } : null;
    });
  }, [value]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: what is typed is kept when the control goes away
  useEffect(() => () => void keep(), []);
  const wrong = draft !== null && draft.text !== value ? (refuse?.(draft.text) ?? null) : null;
  const mark = useMark();
  return {
    wrong,
    reset: () => {
      clearTimeout(timer.current);
      setDraft(null);
    },
    props: {
      ...mark,
      value: draft?.text ?? value,
      ...(wrong && { "aria-invalid": true }),
      onChange: (event: { target: { value: string } }) => {
        const text = event.target.value;
        setDraft((old) => ({ text, base: old?.base ?? value, expects: false }));
        clearTimeout(timer.current);
        if (!whole) timer.current = setTimeout(() => void keep(), pause);
      },
      onBlur: async () => {
        const kept = keep();
        if (kept) await kept;
        if (!wrong) setDraft((now) => (now && now.text !== now.base ? now : null));
      },
    },
  };
}

type DraftInputProps = DraftProps & Omit<ComponentProps<"input">, "value" | "onChange" | "onBlur">;

export function DraftInput({ value, onKeep, refuse, whole = false, merges = false, ...rest }: DraftInputProps) {
  const { props, wrong, reset } = useDraft({ value, onKeep, whole, merges, ...(refuse && { refuse }) });
  const about = useId();
  return (
    <>
      <Input
        {...rest}
        {...props}
        {...(wrong && { "aria-describedby": about })}
        onKeyDown={(event) => {
          if (event.key === "Enter") event.currentTarget.blur();
          if (event.key === "Escape") reset();
        }}
      />
      {wrong && (
        <span id={about} className="block text-[13px] text-danger">
          {wrong}
        </span>
      )}
    </>
  );
}

type DraftAreaProps = DraftProps & Omit<ComponentProps<"textarea">, "value" | "onChange" | "onBlur">;

export function DraftArea({ value, onKeep, refuse, merges = true, ...rest }: DraftAreaProps) {
  const { props, wrong } = useDraft({ value, onKeep, merges, ...(refuse && { refuse }) });
  const about = useId();
  return (
    <>
      <Textarea {...rest} {...props} {...(wrong && { "aria-describedby": about })} />
      {wrong && (
        <span id={about} className="block text-[13px] text-danger">
          {wrong}
        </span>
      )}
    </>
  );
}

/** refuseName says what is wrong with a name. */
export function refuseName(taken: (name: string) => boolean): (name: string) => string | null {
  return (name) => {
    if (!namePattern.test(name)) return "Use letters, digits and _, not starting with a digit, up to 63 characters.";
    return taken(name) ? "This name is already used." : null;
  };
}

/** numberOf reads an optional number. */
export function numberOf(text: string): number | undefined {
  const value = Number(text);
  return text.trim() === "" || !Number.isFinite(value) ? undefined : value;
}

export const refuseNumber = (text: string): string | null =>
  text.trim() === "" || Number.isFinite(Number(text)) ? null : "Not a number.";

/** Rows is a list of named things with a way to add and to remove. */
export function Rows({
  title,
  about,
  empty,
  names,
  onAdd,
  addLabel,
  children,
  locked,
}: {
  title: string;
  about?: ReactNode;
  empty: string;
  names: string[];
  onAdd: () => void;
  addLabel: string;
  children: (name: string) => ReactNode;
  locked: boolean;
}) {
  return (
    <section className="space-y-2">
      <header className="flex items-center justify-between gap-2">
        <h3 className="text-sm">{title}</h3>
        <Button
          size="sm"
          look="quiet"
          icon={<Plus className="size-4" aria-hidden />}
          disabled={locked}
          onClick={onAdd}
          aria-label={addLabel}
        >
          Add
        </Button>
      </header>
      {about && <p className="text-[13px] text-muted">{about}</p>}
      {names.length === 0 ? (
        <p className="text-[13px] text-muted">{empty}</p>
      ) : (
        <ul className="space-y-2">
          {names.map((name) => (
            <li key={name} className="rounded-lg border p-2">
              {children(name)}
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}

export function RemoveButton({ label, onClick, locked }: { label: string; onClick: () => void; locked: boolean }) {
  return (
    <IconButton
      size="sm"
      label={label}
      disabled={locked}
      icon={<Trash2 className="size-4" aria-hidden />}
      onClick={onClick}
    />
  );
}

/** NameRow edits a name, and removes what it names. */
export function NameRow({
  what,
  name,
  locked,
  taken,
  onRename,
  onRemove,
}: {
  what: string;
  name: string;
  locked: boolean;
  taken: (name: string) => boolean;
  onRename: (name: string) => void | Promise<void>;
  onRemove: () => void;
}) {
  return (
    <div className="flex items-start gap-1.5">
      <div className="min-w-0 flex-1">
        <DraftInput
          aria-label={`Name of the ${what}`}
          className="font-mono"
          disabled={locked}
          value={name}
          refuse={refuseName((next) => next !== name && taken(next))}
          // Half a name would move its row away from under the cursor.
          whole
          onKeep={onRename}
        />
      </div>
      <RemoveButton label={`Remove the ${what} ${name}`} locked={locked} onClick={onRemove} />
    </div>
  );
}

/** Small is a label beside a small control. */
export function Small({ label, children, className }: { label: string; children: ReactNode; className?: string }) {
  return (
    // biome-ignore lint/a11y/noLabelWithoutControl: the control is its child
    <label className={classes("block text-[13px]", className)}>
      <span className="mb-0.5 block text-muted">{label}</span>
      {children}
    </label>
  );
}
