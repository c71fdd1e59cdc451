import { useNavigate, useSearch } from "@tanstack/react-router";
import { isRecord } from "../../api/failure.ts";
import { useTitle } from "../../page/Page.tsx";
import { RunDialog } from "./RunDialog.tsx";

/** LaunchPage opens the run dialog with the values in its URL. */
export function LaunchPage() {
  const search = useSearch({ from: "/inside/launch" });
  const navigate = useNavigate();
  const parameters = readRecord(search.parameters);
  const inputs = readRecord(search.inputs) as Record<string, string | string[]> | undefined;
  useTitle("Launch");
  return (
    <RunDialog
      workflowId={search.workflow ?? ""}
      open
      onOpenChange={(open) => !open && void navigate({ to: "/workflows", search: {} })}
      {...(parameters && { parameters })}
      {...(inputs && { inputs })}
    />
  );
}

/** readRecord parses an object from a URL parameter, or returns undefined. */
function readRecord(text: string | undefined): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text ?? "");
    return isRecord(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
