import { useParams } from "@tanstack/react-router";
import { useTitle } from "../app/Page.tsx";

/** EditorPage is the canvas of one workflow. It takes the whole width and height beside the rail. */
export function EditorPage() {
  const { workflowId } = useParams({ from: "/inside/workflows/$workflowId" });
  useTitle("Workflow");
  return (
    <div className="p-8">
      <h1>Workflow</h1>
      <p className="text-muted">{workflowId}</p>
    </div>
  );
}
