import { Page } from "../app/Page.tsx";

export function WorkflowsPage() {
  return <Page title="Workflows">{null}</Page>;
}
