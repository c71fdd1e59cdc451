import { lazy, type ReactNode, Suspense, useState } from "react";
import { Button } from "./Button.tsx";
import type { DialogProps } from "./DialogBody.tsx";
import { Field, Input } from "./Field.tsx";

// Loaded when the first dialog opens: nobody waits for it before.
const DialogBody = lazy(() => import("./DialogBody.tsx"));

/** Dialog asks something over the page: it traps focus, and gives it back. */
export function Dialog(props: DialogProps) {
  if (!props.open) return null;
  return (
    <Suspense fallback={null}>
      <DialogBody {...props} />
    </Suspense>
  );
}

interface ConfirmProps {
  open: boolean;
  onOpenChange: (open: boolean) => void;
  title: string;
  children: ReactNode;
  action: string;
  /** The way out, where "Cancel" would be taken for the action. */
  dismiss?: string;
  /** What must be typed before the action can be taken. */
  phrase?: string;
  phraseLabel?: string;
  danger?: boolean;
  busy?: boolean;
  onConfirm: () => void;
}

/** ConfirmDialog asks before something that cannot be taken back. */
export function ConfirmDialog(props: ConfirmProps) {
  const {
    open,
    onOpenChange,
    title,
    children,
    action,
    dismiss = "Cancel",
    phrase,
    phraseLabel,
    danger = true,
    busy = false,
    onConfirm,
  } = props;
  const [typed, setTyped] = useState("");
  const ready = phrase === undefined || typed === phrase;
  return (
    <Dialog
      open={open}
      onOpenChange={(next) => {
        setTyped("");
        onOpenChange(next);
      }}
      title={title}
      footer={
        <>
          <Button onClick={() => onOpenChange(false)}>{dismiss}</Button>
          <Button
            look={danger ? "danger" : "primary"}
            busy={busy}
            disabledReason={ready ? null : "Type the text above first."}
            onClick={onConfirm}
          >
            {action}
          </Button>
        </>
      }
    >
      <div className="space-y-3 text-sm">{children}</div>
      {phrase !== undefined && (
        <Field label={phraseLabel ?? `Type ${phrase} to confirm`} className="mt-4">
          <Input
            value={typed}
            onChange={(event) => setTyped(event.target.value)}
            autoComplete="off"
            spellCheck={false}
          />
        </Field>
      )}
    </Dialog>
  );
}
