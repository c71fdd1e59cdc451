import { Dialog } from "../ui/Dialog.tsx";

export interface RunDialogProps {
  workflowId: string;
  open: boolean;
  onOpenChange: (open: boolean) => void;
  /** Values to begin with: of an earlier run, or from a launch link. */
  parameters?: Record<string, unknown>;
  inputs?: Record<string, string | string[]>;
}

/** RunDialog asks what a run needs and starts it. */
export function RunDialog({ open, onOpenChange }: RunDialogProps) {
  return (
    <Dialog open={open} onOpenChange={onOpenChange} title="Run">
      {null}
    </Dialog>
  );
}
