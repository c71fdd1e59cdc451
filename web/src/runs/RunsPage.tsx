import { Page } from "../app/Page.tsx";

export function RunsPage() {
  return <Page title="Runs">{null}</Page>;
}
